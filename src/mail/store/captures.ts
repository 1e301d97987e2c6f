import { execute, prepared, rows, type Database, type Db } from '../../db/client';

export type CapturedEnvelope = { messageId: string; recipientId: string; envelopeFrom: string; recipient: string; attempt: number };

/** The bytes are kept once per message; an envelope beside them for each recipient that took it. Safe twice; nothing for a message that is gone. */
export async function keepCapture(database: Database, mime: Buffer, envelope: CapturedEnvelope, accepted: boolean): Promise<void> {
  const { messageId, recipientId, envelopeFrom, recipient, attempt } = envelope;
  await prepared(database, `with message as (select id, mail_service_id from mail_message where id = $1),
      kept as (insert into mail_capture (message_id, mail_service_id, mime) select id, mail_service_id, $2::bytea from message on conflict (message_id) do nothing)
    insert into mail_capture_envelope (message_id, recipient_id, envelope_from, recipient, attempt)
    select id, $3::text, $4::text, $5::text, $6::int from message where $7::boolean on conflict (message_id, recipient_id) do nothing`,
  [messageId, mime, recipientId, envelopeFrom, recipient, attempt, accepted]);
}

export type PlannedReport = { messageId: string; recipientId: string; kind: 'dsn' | 'arf'; envelopeTo: string; mime: Buffer; delaySeconds: number };

/** A report of each kind once per recipient. */
export async function planReport(database: Database, { messageId, recipientId, kind, envelopeTo, mime, delaySeconds }: PlannedReport): Promise<void> {
  await prepared(database, `insert into mail_capture_report (message_id, recipient_id, kind, envelope_to, mime, due_at)
    select id, $2::text, $3::text, $4::text, $5::bytea, now() + $6::float8 * interval '1 second' from mail_message where id = $1 on conflict do nothing`,
  [messageId, recipientId, kind, envelopeTo, mime, delaySeconds]);
}

export type DueReport = { id: string; envelopeTo: string; mime: Buffer };

/** Up to `limit` reports whose time has come, for a minute nobody else's. */
export function claimDueReports(db: Db, limit: number): Promise<DueReport[]> {
  return rows<DueReport>(db, `update mail_capture_report set lease_until = now() + interval '1 minute' where id in (
      select id from mail_capture_report where done_at is null and due_at <= now() and (lease_until is null or lease_until < now())
      order by due_at limit $1::int for update skip locked)
    returning id::text, envelope_to as "envelopeTo", mime`, limit);
}

/** Milliseconds until the next report is due or its claim ends; null when none waits. */
export async function nextReportInMs(db: Db): Promise<number | null> {
  const [row] = await rows<{ ms: number | null }>(db, `select extract(epoch from min(greatest(due_at, coalesce(lease_until, due_at))) - now())::float8 * 1000 as ms
    from mail_capture_report where done_at is null`);
  return row?.ms ?? null;
}

export async function markReportDone(db: Db, id: string): Promise<void> {
  await execute(db, 'update mail_capture_report set done_at = now(), lease_until = null where id = $1::bigint', id);
}
