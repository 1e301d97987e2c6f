import { newId } from '../core/ids';
import type { Tx } from '../db/transaction';
import type { EventType } from './state';
import { addToHour, insertEvents, refreshMessages, tallyColumns, type EventRow, type Attempted, type LockedMessage, type Tally, type TallyColumn } from './store/changes';
import { writeRecipients, type RecipientRow } from './store/recipients';
import { tellWebhooks } from './webhooks/outbox';

/** What is told of one recipient, by whom and when. */
export type Told = {
  id: string; type: Extract<EventType, RecipientRow['status'] | 'interrupted'>; applied: boolean; source: string; occurredAt: Date; attempt: number | null;
  smtpCode: number | null; enhancedCode: string | null; diagnostic: string | null; facts?: object | null;
};

/** A recipient before and after, with what is told of it; of a message that the transaction has locked. */
export type Change = { message: LockedMessage; before: RecipientRow; after: RecipientRow; told: readonly Told[] };

export function toldOf(row: Pick<RecipientRow, 'smtpCode' | 'enhancedCode' | 'diagnostic' | 'attemptNo'>, type: Told['type'], now: Date, more: Partial<Told> = {}): Told {
  const { smtpCode, enhancedCode, diagnostic, attemptNo } = row;
  return { id: newId('evt'), type, applied: true, source: 'delivery', occurredAt: now, attempt: attemptNo === 0 ? null : attemptNo, smtpCode, enhancedCode, diagnostic, ...more };
}

/**
 * Recipients, events, messages, statistics and webhook deliveries of these changes, in this order, within the caller's
 * transaction. Several changes of one recipient follow each other; the last one stands. `attempted`: of which messages an attempt begins.
 */
export async function writeChanges(tx: Tx, changes: readonly Change[], attempted: Attempted | null = null): Promise<void> {
  if (changes.length === 0) return;
  const last = new Map(changes.filter(({ before, after }) => before !== after).map(({ after }) => [after.id, after]));
  const { events, sequences } = numbered(changes);
  await writeRecipients(tx, [...last.values()]);
  await insertEvents(tx, events.map(({ row }) => row));
  await refreshMessages(tx, [...new Set(changes.map(({ message }) => message.id))], { sequences, attempted });
  await tellWebhooks(tx, events.filter(({ row }) => row.applied && row.type !== 'interrupted').map(({ row, change }) => webhookEvent(row, change)));
  await addToHour(tx, talliesOf(changes));
}

type Numbered = { row: EventRow; change: Change };

/** Numbers rise per message, under its lock. */
function numbered(changes: readonly Change[]): { events: Numbered[]; sequences: Map<string, number> } {
  const sequences = new Map<string, number>();
  const events = changes.flatMap((change) => change.told.map((told) => {
    const { message, after } = change;
    const sequence = (sequences.get(message.id) ?? message.eventSequence) + 1;
    sequences.set(message.id, sequence);
    const { facts = null, ...rest } = told;
    return { change, row: { ...rest, facts, sequence, mailServiceId: message.mailServiceId, messageId: message.id, recipientId: after.id, recipient: after.address } };
  }));
  return { events, sequences };
}

function webhookEvent(row: EventRow, { message, after }: Change): Parameters<typeof tellWebhooks>[1][number] {
  const { id, smtpCode, enhancedCode, diagnostic, occurredAt, sequence, recipient, type } = row;
  return {
    eventId: id, type: `message.${webhookTypeOf(type)}`, mailServiceId: message.mailServiceId, occurredAt, messageId: message.id, recipient, status: type, sequence,
    smtp: smtpCode === null && enhancedCode === null && diagnostic === null ? null : { code: smtpCode, enhancedCode, diagnostic },
    bounce: type === 'bounced' && after.bounceClass !== null ? { class: after.bounceClass, subType: after.bounceSubType } : null,
    metadata: message.metadata,
  };
}

const webhookTypes = ['sent', 'delivered', 'deferred', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled'] as const;

function webhookTypeOf(type: EventType): (typeof webhookTypes)[number] {
  const found = webhookTypes.find((one) => one === type);
  if (!found) throw new Error(`Webhooks are not told of ${type}.`);
  return found;
}

function talliesOf(changes: readonly Change[]): Tally[] {
  const tallies = new Map<string, Tally>();
  const add = ({ mailServiceId }: LockedMessage, column: TallyColumn, n = 1) => {
    const tally = tallies.get(mailServiceId) ?? { mailServiceId };
    tally[column] = (tally[column] ?? 0) + n;
    tallies.set(mailServiceId, tally);
  };
  for (const { message, before, after, told } of changes) {
    for (const { type, applied } of told) {
      const column = tallyColumns.find((one) => one === type);
      if (applied && column) add(message, column);
    }
    if (message.mode !== 'live') continue;
    if (before.attemptNo === 0 && after.attemptNo === 1) add(message, 'live_attempted');
    if (before.attemptNo === 1 && after.attemptNo === 0) add(message, 'live_attempted', -1);
    if (before.status !== 'bounced' && after.status === 'bounced' && after.bounceClass === 'hard') add(message, 'live_hard_bounced');
    if (before.status !== 'complained' && after.status === 'complained') add(message, 'live_complained');
  }
  return [...tallies.values()].toSorted((a, b) => (a.mailServiceId < b.mailServiceId ? -1 : 1));
}
