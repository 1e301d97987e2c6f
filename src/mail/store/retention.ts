import { execute, rows, type Db } from '../../db/client';

/** Removes up to `limit` rows and answers how many it did. */
type Purge = (db: Db, limit: number) => Promise<number>;

/** Tables whose rows are simply too old. */
const ages = [
  ['mail_webhook_delivery', 'webhook_id, event_id', 'created_at', '30 days'], ['mail_provider_event', 'provider, provider_event_id, recipient', 'received_at', '30 days'],
  ['mail_provider_token', 'provider, token', 'received_at', '30 days'], ['mail_unmatched_event', 'provider, provider_event_id, recipient', 'received_at', '72 hours'],
  ['mail_capture', 'message_id', 'captured_at', '7 days'], ['mail_capture_report', 'id', 'due_at', '7 days'],
] as const;

/** How long the plan of service `s` keeps messages, and what happened to them. */
const planAge = `case s.plan when 'launch' then interval '30 days' when 'growth' then interval '90 days' else interval '365 days' end`;

export function purgeSteps(contentDays: number): readonly Purge[] {
  const content: Purge = (db, limit) => execute(db, `
    with due as (select id from mail_message where content_purged_at is null and settled_at < now() - $1::int * interval '1 day' order by settled_at limit $2::int for update skip locked),
    gone as (delete from mail_content c using due where c.message_id = due.id)
    update mail_message m set content_purged_at = now() from due where m.id = due.id`, contentDays, limit);
  const messages: Purge = (db, limit) => execute(db, `
    delete from mail_message where id in (
      select m.id from mail_service s cross join lateral (
        select id from mail_message where mail_service_id = s.id and settled_at is not null
          and created_at < now() - ${planAge}
          and settled_at < now() - interval '1 day' order by created_at limit $1::int) m limit $1::int)`, limit);
  const events: Purge = (db, limit) => execute(db, `
    delete from mail_event where (received_at, id) in (
      select e.received_at, e.id from mail_service s cross join lateral (
        select received_at, id from mail_event where mail_service_id = s.id and received_at < now() - ${planAge}
          and not exists (select from mail_message m where m.id = mail_event.message_id) order by received_at limit $1::int) e limit $1::int)`, limit);
  const suppressions: Purge = (db, limit) => execute(db, `delete from mail_suppression where id in (select id from mail_suppression where expires_at < now() order by expires_at limit $1::int)`, limit);
  const aged = ages.map(([table, key, column, age]): Purge => (db, limit) => execute(db, `
    delete from ${table} where (${key}) in (select ${key} from ${table} where ${column} < now() - interval '${age}' order by ${column} limit $1::int)`, limit));
  return [content, messages, events, suppressions, ...aged];
}

export async function ensurePartitions(db: Db): Promise<void> {
  await rows(db, `select ensure_mail_partitions(now(), now() + interval '3 months')::text`);
}

/** Months of events that no plan keeps: older than 365 days whole. */
export async function dropOldEvents(db: Db): Promise<void> {
  const old = await rows<{ name: string }>(db, `
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'mail_event'::regclass
      and c.relname ~ '^mail_event_\\d{4}_\\d{2}$' and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' < now() - interval '366 days'`);
  for (const { name } of old) await execute(db, `drop table ${name}`);
}
