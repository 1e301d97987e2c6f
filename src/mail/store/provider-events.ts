import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { CanonicalEvent } from '../ports';
import type { RecipientRow } from './recipients';

export type ReceivedEvent = { provider: string; event: CanonicalEvent; recipientKey: string; payload: object };

/** Notes events that were not told before, in the order of their ids; answers which are new, by index. */
export async function noteEvents(tx: Tx, received: readonly ReceivedEvent[]): Promise<Set<number>> {
  const found = await rows<{ at: number }>(tx, `
    with given as (
      select * from json_to_recordset($1::json) as v (at int, provider text, id text, recipient text, type text, "messageId" text, payload json)),
    noted as (
      insert into mail_provider_event (provider, provider_event_id, recipient, type, message_id, payload)
      select provider, id, recipient, type, "messageId", payload from given order by provider, id, recipient on conflict do nothing returning provider, provider_event_id, recipient)
    select min(g.at) as at from noted n join given g on g.provider = n.provider and g.id = n.provider_event_id and g.recipient = n.recipient group by n.provider, n.provider_event_id, n.recipient`,
  JSON.stringify(received.map(({ provider, event, recipientKey, payload }, at) => ({
    at, provider, id: event.providerEventId, recipient: recipientKey, type: event.type, messageId: event.messageId ?? null, payload,
  }))));
  return new Set(found.map(({ at }) => at));
}

/** False when the token came before with another event: then the body was exchanged under a signature that does not cover it. */
export async function claimToken(tx: Tx, { provider, token, eventId }: { provider: string; token: string; eventId: string }): Promise<boolean> {
  const [row] = await rows<{ eventId: string }>(tx, `
    with made as (insert into mail_provider_token (provider, token, provider_event_id) values ($1, $2, $3) on conflict do nothing returning provider_event_id)
    select provider_event_id as "eventId" from made
    union all select provider_event_id from mail_provider_token where provider = $1 and token = $2`, provider, token, eventId);
  return row?.eventId === eventId;
}

export type Match = { messageId: string; recipientIds: string[] | null };

/**
 * The message an event is about, by our id, else by its provider's, and its recipients; `recipientIds` null: the event
 * names none and means them all. Null when no message of ours is meant, or the named one is not among its recipients.
 */
export async function matchEvent(db: Db, provider: string, { messageId, providerMessageId, recipient }: Pick<CanonicalEvent, 'messageId' | 'providerMessageId' | 'recipient'>): Promise<Match | null> {
  const found = await rows<{ id: string; messageId: string; addressKey: string; own: boolean | null }>(db, `
    select r.id, r.message_id as "messageId", r.address_key as "addressKey", r.message_id = $1 as own from mail_recipient r
    where r.message_id = $1 or r.provider_message_id = $3 and ($2 = 'generic' or r.provider = $2) order by own desc nulls last`,
  messageId ?? null, provider, providerMessageId ?? null);
  const [first] = found;
  if (!first) return null;
  const about = found.filter((row) => row.messageId === first.messageId && (recipient === undefined || row.addressKey === recipient.toLowerCase()));
  if (about.length === 0) return null;
  return { messageId: first.messageId, recipientIds: recipient === undefined && first.own ? null : about.map(({ id }) => id) };
}

export async function keepUnmatched(tx: Tx, { provider, event, recipientKey }: ReceivedEvent): Promise<void> {
  await execute(tx, `insert into mail_unmatched_event (provider, provider_event_id, recipient, message_id, provider_message_id, event) values ($1, $2, $3, $4, $5, $6::json) on conflict do nothing`,
    provider, event.providerEventId, recipientKey, event.messageId ?? null, event.providerMessageId ?? null, JSON.stringify(event));
}

export type WaitingEvent = { provider: string; event: CanonicalEvent; messageId: string; recipientId: string; receivedAt: Date };
type WaitingRow = Omit<WaitingEvent, 'event'> & { event: Omit<CanonicalEvent, 'occurredAt'> & { occurredAt?: string } };

/** Takes the events that waited for these ids of a provider. */
export async function takeWaitingEvents(tx: Tx, named: readonly RecipientRow[]): Promise<WaitingEvent[]> {
  const found = await rows<WaitingRow>(tx, `
    with named as (select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as n (provider, provider_message_id, address_key, recipient_id, message_id))
    delete from mail_unmatched_event e using named n
    where e.provider_message_id = n.provider_message_id and (e.provider = n.provider or e.provider = 'generic') and e.recipient in ('', n.address_key)
    returning e.provider, e.event, n.message_id as "messageId", n.recipient_id as "recipientId", e.received_at as "receivedAt"`,
  named.map((row) => row.provider), named.map((row) => row.providerMessageId), named.map((row) => row.addressKey), named.map((row) => row.id), named.map((row) => row.messageId));
  return found.map((row) => ({ ...row, event: revived(row.event) }));
}

export type UnmatchedEvent = { provider: string; providerEventId: string; recipientKey: string; event: CanonicalEvent; receivedAt: Date };
type UnmatchedRow = Omit<UnmatchedEvent, 'event'> & { event: WaitingRow['event'] };

/** Locks a page of events that wait, the oldest first, after the last of the page before. */
export async function unmatchedPage(tx: Tx, after: Date | null, limit: number): Promise<UnmatchedEvent[]> {
  const found = await rows<UnmatchedRow>(tx, `
    select provider, provider_event_id as "providerEventId", recipient as "recipientKey", event, received_at as "receivedAt" from mail_unmatched_event
    where $1::timestamptz is null or received_at > $1 order by received_at limit $2::int for update skip locked`, after, limit);
  return found.map((row) => ({ ...row, event: revived(row.event) }));
}

export async function dropUnmatched(tx: Tx, { provider, providerEventId, recipientKey }: Pick<UnmatchedEvent, 'provider' | 'providerEventId' | 'recipientKey'>): Promise<void> {
  await execute(tx, 'delete from mail_unmatched_event where provider = $1 and provider_event_id = $2 and recipient = $3', provider, providerEventId, recipientKey);
}

function revived({ occurredAt, ...event }: WaitingRow['event']): CanonicalEvent {
  return { ...event, ...(occurredAt === undefined ? {} : { occurredAt: new Date(occurredAt) }) };
}
