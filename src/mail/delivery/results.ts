import type { Log } from '../../core/log';
import { newId } from '../../core/ids';
import type { Database } from '../../db/client';
import { violates } from '../../db/errors';
import { inTransaction, type Tx } from '../../db/transaction';
import { toldOf, writeChanges, type Change, type Told } from '../changes';
import { matchWaitingEvents } from '../facts';
import type { TransportResult } from '../ports';
import { nextAttemptAt } from '../rules/retries';
import { factOf, replyFields, withFact } from '../rules/outcomes';
import type { RecipientRow } from '../rules/recipients';
import { lockMessages, type LockedMessage } from '../store/changes';
import { recipientsOfMessages } from '../store/recipients';
import { suppressBounced } from '../suppress';
import type { Claimed } from './claim';

/** What an attempt has come to. */
export type AttemptResult = { claimed: Claimed; result: TransportResult; transport: { name: string; acceptedMeans: 'delivered' | 'sent' } };

/** Writes results of attempts, many at a time. */
export interface ResultWriter {
  /** Resolves when the result is durable, or when it came too late to count. Errors: those of the database. */
  write(result: AttemptResult): Promise<void>;
}

const groupMax = 50;
const lingerMs = 50;

type Item = { result: AttemptResult; settle: () => void; fail: (error: unknown) => void };
export type ResultDeps = { db: Pick<Database, 'pool'>; log: Log; config: { MAIL_RETRY_SCHEDULE_SECONDS: readonly number[] } };

/**
 * Groups of up to 50: results that come while a write runs, or within 50 ms while other attempts are under way (`expected`
 * counts them), go together. A group that fails is tried again one by one.
 */
export function createResultWriter(deps: ResultDeps, expected: () => number): ResultWriter {
  const waiting: Item[] = [];
  let running = false;
  let timer: NodeJS.Timeout | null = null;
  const flush = async () => {
    if (running) return;
    running = true;
    while (waiting.length > 0) await settle(deps, waiting.splice(0, groupMax));
    running = false;
  };
  const flushSoon = () => {
    if (running) return;
    if (waiting.length >= groupMax || expected() === 0) {
      if (timer) clearTimeout(timer);
      timer = null;
      void flush();
      return;
    }
    timer ??= setTimeout(() => {
      timer = null;
      void flush();
    }, lingerMs);
  };
  return {
    write: (result) => new Promise((done, fail) => {
      waiting.push({ result, settle: done, fail });
      flushSoon();
    }),
  };
}

/** Never rejects. */
async function settle(deps: ResultDeps, group: readonly Item[]): Promise<void> {
  try {
    await inTransaction(deps.db, (tx) => writeResults(tx, deps, group.map(({ result }) => result)));
    group.forEach((item) => item.settle());
  } catch (error) {
    const [first] = group;
    if (first && group.length === 1) return violates(error, 'mail_recipient_at_provider') ? settle(deps, [withoutProviderId(first)]) : first.fail(error);
    deps.log.warn({ err: error, size: group.length }, 'a group of results is written one by one');
    for (const item of group) await settle(deps, [item]);
  }
}

/** A provider that gives one id twice is not found by it: the delivery itself is what counts. */
function withoutProviderId({ result, ...item }: Item): Item {
  const { providerMessageId: _, ...rest } = result.result;
  return { ...item, result: { ...result, result: rest } };
}

/** Step 3 of attemptMessages (contract mail.md §5). A result whose fence another run has taken writes nothing. */
export async function writeResults(tx: Tx, deps: Pick<ResultDeps, 'config'>, results: readonly AttemptResult[]): Promise<void> {
  const messages = await lockMessages(tx, [...new Set(results.map(({ claimed }) => claimed.message.id))]);
  const rows = new Map((await recipientsOfMessages(tx, [...messages.keys()])).map((row) => [row.id, row]));
  const changes = results.flatMap((result): Change[] => {
    const row = rows.get(result.claimed.recipient.id);
    const message = messages.get(result.claimed.message.id);
    return row && message && row.fence === result.claimed.recipient.fence ? [changeOf(deps, result, { row, message })] : [];
  });
  await writeChanges(tx, changes);
  await suppressBounced(tx, changes);
  await matchWaitingEvents(tx, changes);
}

type Found = { row: RecipientRow; message: LockedMessage };

function changeOf({ config }: Pick<ResultDeps, 'config'>, { result, transport }: AttemptResult, { row, message }: Found): Change {
  const { now } = message;
  const eventId = newId('evt');
  const fact = factOf(result, transport.acceptedMeans, { eventId, now });
  const known = { ...row, ...(result.providerMessageId === undefined ? {} : { provider: transport.name, providerMessageId: result.providerMessageId }) };
  if (!fact) return deferral({ config }, result, { row, message });
  const merged = withFact(known, fact);
  const after = merged === known && known.providerMessageId === row.providerMessageId ? row : merged;
  const facts = fact.type === 'bounced' ? { bounce: { class: fact.bounce?.class ?? 'undetermined', subType: null } } : null;
  return { message, before: row, after, told: [toldOf({ ...row, ...replyFields(result) }, fact.type, now, { id: eventId, applied: merged !== known, facts })] };
}

/** Ours to try again, unless somebody asked to stop, or the next attempt would come too late. */
function deferral({ config }: Pick<ResultDeps, 'config'>, result: TransportResult, { row, message }: Found): Change {
  const { now, expiresAt } = message;
  const fields = replyFields(result);
  const holds = row.status === 'sending';
  const type = result.outcome === 'interrupted' ? 'interrupted' as const : 'deferred' as const;
  const told: Told[] = [toldOf({ ...row, ...fields }, type, now, { applied: holds })];
  if (!holds) return { message, before: row, after: row, told };
  const idle = { ...row, ...fields, leaseUntil: null };
  const next = nextAttemptAt({ scheduleSeconds: config.MAIL_RETRY_SCHEDULE_SECONDS }, {
    attempt: row.attemptNo, now, expiresAt, text: result.text, retryAfterSeconds: result.retryAfterSeconds,
  });
  const ended = message.cancelRequested ? { status: 'cancelled' as const, statusReason: null } : next === null ? { status: 'failed' as const, statusReason: 'expired' as const } : null;
  if (!ended) return { message, before: row, after: { ...idle, status: 'deferred', retryOwner: 'us', nextAttemptAt: next }, told };
  return { message, before: row, after: { ...idle, ...ended, nextAttemptAt: null }, told: [...told, toldOf({ ...row, ...fields }, ended.status, now)] };
}
