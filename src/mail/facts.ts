import { newId } from '../core/ids';
import type { Tx } from '../db/transaction';
import { toldOf, writeChanges, type Change } from './changes';
import type { CanonicalEvent } from './ports';
import { replyFields, withFact, type ReportedFact } from './rules/outcomes';
import type { FactType } from './rules/recipients';
import { lockMessages } from './store/changes';
import { takeWaitingEvents } from './store/provider-events';
import { recipientsOfMessages, type RecipientRow } from './store/recipients';
import { suppressBounced, suppressComplained } from './suppress';

/** What somebody outside reports of recipients of a message that is ours. */
export type Report = {
  messageId: string;
  /** Of whom; none: of everybody whose status is not final (contract mail.md §2.1). */
  recipientIds?: readonly string[];
  /** `null`: told, but it changes nothing (delayed, relayed, expanded). */
  fact: Omit<ReportedFact, 'eventId'> | null;
  type: FactType;
  /** The reporter's own name for it: of facts of one time it decides, so that the order they came in does not. */
  key: string;
  source: `provider:${string}` | 'dsn' | 'arf';
};

const final = ['complained', 'suppressed', 'cancelled'];

/**
 * Reports become events and, by rank, what recipients are; suppressions, statistics and webhooks with them. Safe in any
 * order; repetition is for the caller to notice. Answers how many events were written.
 */
export async function applyReports(tx: Tx, reports: readonly Report[]): Promise<number> {
  const messages = await lockMessages(tx, [...new Set(reports.map(({ messageId }) => messageId))]);
  const rows = new Map((await recipientsOfMessages(tx, [...messages.keys()])).map((row) => [row.id, row]));
  const told = reports.flatMap((report) => {
    const message = messages.get(report.messageId);
    if (!message) return [];
    const about = [...rows.values()].filter((row) => row.messageId === report.messageId
      && (report.recipientIds ? report.recipientIds.includes(row.id) : !final.includes(row.status)));
    const changes = about.map((row): Change => changeOf(report, row, message));
    for (const { after } of changes) rows.set(after.id, after);
    return [{ report, changes }];
  });
  const changes = told.flatMap((one) => one.changes);
  await writeChanges(tx, changes);
  for (const one of told) await suppressBounced(tx, one.changes, providerOf(one.report));
  await suppressComplained(tx, changes);
  return changes.length;
}

function changeOf(report: Report, row: RecipientRow, message: Change['message']): Change {
  const { fact, type, source, key } = report;
  const eventId = newId('evt');
  const after = fact ? withFact(row, { ...fact, eventId: `${source} ${key}` }) : row;
  const told = toldOf({ ...row, ...replyFields(fact?.reply) }, type, fact?.occurredAt ?? message.now, { id: eventId, source, attempt: null, applied: after !== row, facts: factsOf(fact) });
  return { message, before: row, after, told: [told] };
}

function factsOf(fact: Report['fact']): object | null {
  if (fact?.bounce) return { bounce: { class: fact.bounce.class, subType: fact.bounce.subType ?? null } };
  return fact?.complaint ? { complaint: { feedbackType: fact.complaint.feedbackType ?? null } } : null;
}

/** A provider's word on permanence; our own attempts and delivery status notifications speak SMTP. */
function providerOf({ source, fact }: Report): { permanent: boolean; subType?: string | undefined } | undefined {
  return source.startsWith('provider:') ? { permanent: fact?.bounce?.class === 'hard', subType: fact?.bounce?.subType } : undefined;
}

const factTypes = { delivered: 'delivered', deferred: 'deferred', bounced: 'bounced', complained: 'complained', rejected: 'failed' } as const satisfies Record<Exclude<CanonicalEvent['type'], 'other'>, FactType>;
const aheadMaxMs = 5 * 60_000;

/** A provider's event as a report; null for `other`. A time that is absent or lies ahead is that of the receipt. */
export function reportOf(provider: string, event: CanonicalEvent, about: { messageId: string; recipientIds?: readonly string[] | undefined; receivedAt: Date }): Report | null {
  if (event.type === 'other') return null;
  const type = factTypes[event.type];
  const occurredAt = event.occurredAt && event.occurredAt.getTime() <= about.receivedAt.getTime() + aheadMaxMs ? event.occurredAt : about.receivedAt;
  return {
    messageId: about.messageId, ...(about.recipientIds ? { recipientIds: about.recipientIds } : {}), type, key: event.providerEventId, source: `provider:${provider}`,
    fact: {
      type, occurredAt, reply: event.reply, ...(type === 'failed' ? { statusReason: 'provider_rejected' as const } : {}),
      ...(event.bounce ? { bounce: event.bounce } : {}), ...(event.complaint ? { complaint: event.complaint } : {}),
    },
  };
}

/** Events that came before their message was known to its provider are matched now that these recipients have an id there. */
export async function matchWaitingEvents(tx: Tx, changes: readonly Change[]): Promise<void> {
  const named = changes.map(({ after }) => after).filter((row) => row.providerMessageId !== null);
  if (named.length === 0) return;
  const reports = (await takeWaitingEvents(tx, named)).flatMap(({ provider, event, messageId, recipientId, receivedAt }) => {
    const report = reportOf(provider, event, { messageId, recipientIds: [recipientId], receivedAt });
    return report ? [report] : [];
  });
  if (reports.length > 0) await applyReports(tx, reports);
}
