import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

/** Marks up to `limit` unsettled messages of a service to be cancelled and answers them; none left: none. */
export async function takeUnsettled(tx: Tx, serviceId: string, limit: number): Promise<string[]> {
  const page = await rows<{ id: string }>(tx, `
    with page as materialized (select id from mail_message where mail_service_id = $1 and settled_at is null and cancel_requested_at is null order by created_at, id limit $2::int),
    locked as materialized (select m.id from mail_message m where m.id in (select id from page) order by m.id for no key update)
    update mail_message set cancel_requested_at = now(), updated_at = now() where id in (select id from locked) returning id`, serviceId, limit);
  return page.map(({ id }) => id);
}

export type PageOfMessages = { createdAt: Date; id: string };

/** The bodies and captures of the next `limit` messages of a service are gone; answers the last of them, null when there was none. */
export async function purgeContentPage(tx: Tx, serviceId: string, after: PageOfMessages | null, limit: number): Promise<PageOfMessages | null> {
  const page = await rows<PageOfMessages>(tx, `select id, created_at as "createdAt" from mail_message where mail_service_id = $1
    and ($2::timestamptz is null or (created_at, id) > ($2::timestamptz, $3::text)) order by created_at, id limit $4::int`, serviceId, after?.createdAt ?? null, after?.id ?? null, limit);
  const ids = page.map(({ id }) => id);
  if (ids.length === 0) return null;
  for (const table of ['mail_content', 'mail_capture', 'mail_capture_report']) await execute(tx, `delete from ${table} where message_id = any($1::text[])`, ids);
  await execute(tx, 'update mail_message set content_purged_at = now() where id = any($1::text[]) and content_purged_at is null', ids);
  return page.at(-1) ?? null;
}

const rowsOfService = [['mail_webhook_delivery', 'webhook_id, event_id'], ['mail_webhook', 'id'], ['mail_suppression', 'id']] as const;

/** Up to `limit` deliveries, webhooks or suppressions of a service are gone, in this order; how many; none left: 0. */
export async function purgeRowsPage(db: Db, serviceId: string, limit: number): Promise<number> {
  for (const [table, key] of rowsOfService) {
    const count = await execute(db, `delete from ${table} where (${key}) in (select ${key} from ${table} where mail_service_id = $1 limit $2::int)`, serviceId, limit);
    if (count > 0) return count;
  }
  return 0;
}
