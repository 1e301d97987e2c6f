import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

/**
 * Unsettled messages of a service that goes are cancelled, as far as no attempt is running: that one's result still counts, and a
 * deferral becomes a cancellation. How many messages; none left: 0.
 */
export async function cancelMessagesPage(tx: Tx, serviceId: string, limit: number): Promise<number> {
  const page = await rows<{ id: string }>(tx, `update mail_message set cancel_requested_at = now(), updated_at = now() where id in (
      select id from mail_message where mail_service_id = $1 and settled_at is null and cancel_requested_at is null order by created_at, id limit $2::int for update skip locked)
    returning id`, serviceId, limit);
  const ids = page.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await execute(tx, `update mail_recipient set status = 'cancelled', status_reason = 'service_deleted', next_attempt_at = null, updated_at = now()
    where message_id = any($1::text[]) and (status = 'queued' or (status = 'deferred' and retry_owner = 'us'))`, ids);
  await execute(tx, recount, ids);
  return ids.length;
}

/** Counts, status and settlement of messages follow their recipients (contract mail.md §2.1). */
const recount = `
  update mail_message m set counts = r.counts, status = r.status, status_reason = r.reason, settled_at = case when r.open = 0 then coalesce(m.settled_at, now()) end
  from (
    select message_id, (array_agg(status order by array_position(array['complained', 'bounced', 'failed', 'deferred', 'sending', 'queued', 'sent', 'delivered', 'suppressed', 'cancelled'], status)))[1] as status,
      (array_agg(status_reason order by array_position(array['complained', 'bounced', 'failed', 'deferred', 'sending', 'queued', 'sent', 'delivered', 'suppressed', 'cancelled'], status)))[1] as reason,
      sum(open)::int as open, jsonb_object_agg(status, n) as counts
    from (
      select message_id, status, min(status_reason) as status_reason, count(*) as n,
        count(*) filter (where status in ('queued', 'sending') or (status = 'deferred' and retry_owner = 'us')) as open
      from mail_recipient where message_id = any($1::text[]) group by message_id, status) s group by message_id) r
  where m.id = r.message_id`;

/** Bodies and captured mail of a page of messages are gone; how many rows; none left: 0. */
export async function purgeContentPage(tx: Tx, serviceId: string, limit: number): Promise<number> {
  const bodies = await execute(tx, `delete from mail_content where message_id in (
    select c.message_id from mail_message m join mail_content c on c.message_id = m.id where m.mail_service_id = $1 limit $2::int)`, serviceId, limit);
  const captured = await execute(tx, 'delete from mail_capture where message_id in (select message_id from mail_capture where mail_service_id = $1 limit $2::int)', serviceId, limit);
  return bodies + captured;
}

/** Webhooks with their deliveries, and suppressions. */
export async function purgeServiceRows(db: Db, serviceId: string): Promise<void> {
  await execute(db, 'update mail_message set content_purged_at = now() where mail_service_id = $1 and content_purged_at is null', serviceId);
  await execute(db, 'delete from mail_capture_report r using mail_message m where m.id = r.message_id and m.mail_service_id = $1', serviceId);
  await execute(db, 'delete from mail_webhook where mail_service_id = $1', serviceId);
  await execute(db, 'delete from mail_suppression where mail_service_id = $1', serviceId);
}
