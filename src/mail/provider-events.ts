import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../core/clock';
import { AppError, notFound } from '../core/errors';
import { isStorable } from '../core/fields';
import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { applyReports, reportOf, type Report } from './facts';
import type { CanonicalEvent, ProviderEvents } from './ports';
import { claimToken, dropUnmatched, keepUnmatched, matchEvent, noteEvents, unmatchedPage, type ReceivedEvent } from './store/provider-events';

/** A provider whose webhooks are taken, with the secrets that may sign them; without one it does not exist. */
export type EventSource = { readonly adapter: ProviderEvents; readonly secrets: readonly string[] };
export type ProviderEventDeps = { readonly db: Database; readonly clock: Clock; readonly eventSources: ReadonlyMap<string, EventSource> };
export type Counts = { received: number; duplicates: number; unmatched: number; ignored: number };

/**
 * Events of a provider are durable, each once. Errors: `not_found` for a provider that is not configured,
 * `invalid_signature` (nothing is stored), `invalid_json`, `validation_error`.
 */
export async function receiveEvents(deps: ProviderEventDeps, provider: string, raw: Buffer, headers: IncomingHttpHeaders): Promise<Counts> {
  const source = deps.eventSources.get(provider);
  if (!source || source.secrets.length === 0) throw notFound('Provider');
  const { adapter, secrets } = source;
  if (!adapter.verify(raw, headers, [...secrets], deps.clock.now())) throw invalidSignature();
  const body = readJson(raw);
  const events = adapter.parse(body, headers);
  const token = adapter.oneTimeToken?.(body) ?? null;
  return inTransaction(deps.db, async (tx) => {
    if (token && !await claimToken(tx, { provider, ...token })) throw invalidSignature();
    return storeEvents(tx, provider, events);
  });
}

async function storeEvents(tx: Tx, provider: string, events: readonly CanonicalEvent[]): Promise<Counts> {
  const received = events.map((event): ReceivedEvent => ({ provider, event, recipientKey: event.recipient?.toLowerCase() ?? '', payload: redacted(event) }));
  const fresh = await noteEvents(tx, received);
  const counts = { received: events.length, duplicates: events.length - fresh.size, unmatched: 0, ignored: 0 };
  const reports: Report[] = [];
  for (const one of received.filter((_, at) => fresh.has(at))) {
    if (one.event.type === 'other') counts.ignored += 1;
    else reports.push(...await reportsOf(tx, one, () => { counts.unmatched += 1; }));
  }
  await applyReports(tx, reports);
  return counts;
}

async function reportsOf(tx: Tx, one: ReceivedEvent, unmatched: () => void): Promise<Report[]> {
  const match = await matchEvent(tx, one.provider, one.event);
  if (!match) {
    unmatched();
    await keepUnmatched(tx, one);
    return [];
  }
  const report = reportOf(one.provider, one.event, { messageId: match.messageId, recipientIds: match.recipientIds ?? undefined, receivedAt: new Date() });
  return report ? [report] : [];
}

const pageMax = 200;

/** Events that came before their message was known are matched again; answers how many were. */
export async function rematchEvents(database: Pick<Database, 'pool'>): Promise<number> {
  let matched = 0;
  for (let after: Date | null = null; ;) {
    const page = await inTransaction(database, (tx) => rematchPage(tx, after, pageMax));
    matched += page.matched;
    if (page.count < pageMax || page.last === null) return matched;
    after = page.last;
  }
}

/** One page of them, the oldest first after `after`; `last` is where the next page begins. */
export async function rematchPage(tx: Tx, after: Date | null, limit: number): Promise<{ matched: number; count: number; last: Date | null }> {
  const waiting = await unmatchedPage(tx, after, limit);
  let matched = 0;
  for (const one of waiting) {
    const match = await matchEvent(tx, one.provider, one.event);
    const report = match && reportOf(one.provider, one.event, { messageId: match.messageId, recipientIds: match.recipientIds ?? undefined, receivedAt: one.receivedAt });
    if (!report) continue;
    await applyReports(tx, [report]);
    await dropUnmatched(tx, one);
    matched += 1;
  }
  return { matched, count: waiting.length, last: waiting.at(-1)?.receivedAt ?? null };
}

/** What is kept of an event: no words of a server, which may quote the mail, and of addresses the domain alone. */
function redacted({ recipient, reply, occurredAt, ...event }: CanonicalEvent): object {
  return {
    ...event, recipient: recipient === undefined ? null : `…@${recipient.slice(recipient.lastIndexOf('@') + 1)}`, occurredAt: occurredAt?.toISOString() ?? null,
    reply: reply ? { code: reply.code ?? null, enhancedCode: reply.enhancedCode ?? null } : null,
  };
}

function readJson(raw: Buffer): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(raw);
    if (!isStorable(text) || /\\u0000/i.test(text)) throw new Error('not storable');
    return JSON.parse(text);
  } catch (error) {
    throw new AppError('invalid_json', 'The body is not valid JSON in UTF-8.', {}, { cause: error });
  }
}

function invalidSignature(): AppError {
  return new AppError('invalid_signature', 'The signature does not fit the body, its secret or the time.');
}
