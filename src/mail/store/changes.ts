import { rows } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { worstFirst } from '../rules/recipients';
import type { EventType } from '../state';

/** A message whose row the transaction holds: every change of its recipients goes under this lock, in the order of ids. */
export type LockedMessage = {
  id: string; mailServiceId: string; domainId: string; mode: 'live' | 'test'; transport: string; metadata: Record<string, unknown> | null; eventSequence: number;
  cancelRequested: boolean; selector: string | null; expiresAt: Date; createdAt: Date; settledAt: Date | null; /** The transaction's time. */ now: Date;
};

export async function lockMessages(tx: Tx, messageIds: readonly string[]): Promise<Map<string, LockedMessage>> {
  const found = await rows<LockedMessage>(tx, `
    select id, mail_service_id as "mailServiceId", domain_id as "domainId", mode, transport, metadata, event_sequence as "eventSequence",
      cancel_requested_at is not null as "cancelRequested", selector, expires_at as "expiresAt", created_at as "createdAt", settled_at as "settledAt", date_trunc('milliseconds', now()) as now
    from mail_message where id = any($1::text[]) order by id for no key update`, messageIds);
  return new Map(found.map((message) => [message.id, message]));
}

export type EventRow = {
  id: string; mailServiceId: string; messageId: string; recipientId: string; recipient: string; type: EventType; attempt: number | null; sequence: number;
  applied: boolean; source: string; smtpCode: number | null; enhancedCode: string | null; diagnostic: string | null; facts: object | null; occurredAt: Date;
};

export async function insertEvents(tx: Tx, events: readonly EventRow[]): Promise<void> {
  if (events.length === 0) return;
  await rows(tx, `
    insert into mail_event (id, mail_service_id, message_id, recipient_id, recipient, type, attempt, sequence, applied, source, smtp_code, enhanced_code, diagnostic, facts, occurred_at)
    select v.id, v."mailServiceId", v."messageId", v."recipientId", v.recipient, v.type, v.attempt, v.sequence, v.applied, v.source, v."smtpCode", v."enhancedCode", v.diagnostic,
      v.facts, v."occurredAt"
    from json_to_recordset($1::json) as v (id text, "mailServiceId" text, "messageId" text, "recipientId" text, recipient text, type text, attempt int, sequence int, applied boolean,
      source text, "smtpCode" int, "enhancedCode" text, diagnostic text, facts json, "occurredAt" timestamptz)`, JSON.stringify(events));
}

/** A run that tries these messages; their DKIM selectors are fixed with the first attempt. */
export type Attempted = { workflowId: string; selectors: ReadonlyMap<string, string | null> };

/**
 * Counts, status, its reason and settlement say what the recipients say; `sequences` are the numbers of the messages' newest events. Those
 * that are attempted say by whom, in the same update: every version of a row has its price.
 */
export async function refreshMessages(tx: Tx, messageIds: readonly string[], { sequences, attempted }: { sequences: ReadonlyMap<string, number>; attempted: Attempted | null }): Promise<void> {
  await rows(tx, `
    with one as (
      select message_id, status, count(*)::int as n, bool_or(status in ('queued', 'sending') or status = 'deferred' and retry_owner = 'us') as open,
        (array_agg(status_reason order by position))[1] as reason
      from mail_recipient where message_id = any($1::text[]) group by message_id, status),
    tally as (
      select message_id, jsonb_object_agg(status, n) as counts, bool_or(open) as open,
        (array_agg(status order by array_position($2::text[], status)))[1] as worst, (array_agg(reason order by array_position($2::text[], status)))[1] as reason
      from one group by message_id)
    update mail_message m set counts = t.counts, status = t.worst, status_reason = t.reason, updated_at = now(), event_sequence = coalesce(s.sequence, m.event_sequence),
      settled_at = case when t.open then null else coalesce(m.settled_at, now()) end, selector = coalesce(m.selector, a.selector), workflow_id = coalesce(a.workflow_id, m.workflow_id),
      first_attempt_at = case when a.id is null then m.first_attempt_at else coalesce(m.first_attempt_at, now()) end,
      dispatched_at = case when a.id is null then m.dispatched_at else coalesce(m.dispatched_at, now()) end
    from tally t left join unnest($3::text[], $4::int[]) as s (id, sequence) on s.id = t.message_id
      left join (select id, selector, $7::text as workflow_id from unnest($5::text[], $6::text[]) as given (id, selector)) a on a.id = t.message_id
    where m.id = t.message_id`,
  messageIds, worstFirst, [...sequences.keys()], [...sequences.values()], [...attempted?.selectors.keys() ?? []], [...attempted?.selectors.values() ?? []], attempted?.workflowId ?? null);
}

/** What is added to the hour of a service. */
export type Tally = { mailServiceId: string } & Partial<Record<TallyColumn, number>>;
export const tallyColumns = ['sent', 'delivered', 'deferred', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled', 'live_attempted', 'live_hard_bounced', 'live_complained'] as const;
export type TallyColumn = (typeof tallyColumns)[number];

/** In the order of services; the last rows a change of messages locks. */
export async function addToHour(tx: Tx, tallies: readonly Tally[]): Promise<void> {
  if (tallies.length === 0) return;
  await rows(tx, `
    insert into mail_stats_hour as s (mail_service_id, hour, ${tallyColumns.join(', ')})
    select v."mailServiceId", date_trunc('hour', now()), ${tallyColumns.map((column) => `coalesce(v.${column}, 0)`).join(', ')}
    from json_to_recordset($1::json) as v ("mailServiceId" text, ${tallyColumns.map((column) => `${column} bigint`).join(', ')}) order by v."mailServiceId"
    on conflict (mail_service_id, hour) do update set ${tallyColumns.map((column) => `${column} = s.${column} + excluded.${column}`).join(', ')}`, JSON.stringify(tallies));
}
