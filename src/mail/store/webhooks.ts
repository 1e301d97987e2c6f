import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { webhookDisabledReasons, webhookStatuses } from '../state';
import type { WebhookEventType } from '../schemas/webhooks';

export type WebhookStatus = (typeof webhookStatuses)[number];
export type DisabledReason = (typeof webhookDisabledReasons)[number];

export type WebhookRow = {
  id: Id<'whk'>; mailServiceId: string; orgId: Id<'org'>; projectId: Id<'prj'>; url: string; events: WebhookEventType[]; description: string | null; status: WebhookStatus;
  disabledReason: DisabledReason | null; lastSuccessAt: Date | null; lastFailureAt: Date | null; createdAt: Date; updatedAt: Date;
};

const columns = `w.id, w.mail_service_id as "mailServiceId", s.org_id as "orgId", s.project_id as "projectId", w.url, w.events, w.description, w.status, w.disabled_reason as "disabledReason",
  w.last_success_at as "lastSuccessAt", w.last_failure_at as "lastFailureAt", w.created_at as "createdAt", w.updated_at as "updatedAt"`;
const source = 'mail_webhook w join mail_service s on s.id = w.mail_service_id and s.deleted_at is null';

export type NewWebhook = { id: Id<'whk'>; mailServiceId: string; url: string; events: readonly string[]; description: string | null; secret: string };

export async function insertWebhook(tx: Tx, { id, mailServiceId, url, events, description, secret }: NewWebhook): Promise<void> {
  await execute(tx, `insert into mail_webhook (id, mail_service_id, url, events, description, secret) values ($1, $2, $3, $4::text[], $5, $6)`, id, mailServiceId, url, events, description, secret);
}

/** A webhook of a living service of the project; null when absent or foreign. */
export async function findWebhook(db: Db, projectId: string, webhookId: string): Promise<WebhookRow | null> {
  const [row] = await rows<WebhookRow>(db, `select ${columns} from ${source} where w.id = $1 and s.project_id = $2`, webhookId, projectId);
  return row ?? null;
}

/** The same, locked until the transaction ends. */
export async function lockWebhook(tx: Tx, projectId: string, webhookId: string): Promise<WebhookRow | null> {
  await execute(tx, 'select from mail_webhook where id = $1 for update', webhookId);
  return findWebhook(tx, projectId, webhookId);
}

/** Webhooks of a service, newest first, after the key. */
export function listWebhooks(db: Db, mailServiceId: string, page: { after: PageKey | null; limit: number }): Promise<WebhookRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<WebhookRow>(db, `select ${columns} from ${source} where w.mail_service_id = $1
    and ($2::timestamptz is null or (w.created_at, w.id) < ($2::timestamptz, $3::text)) order by w.created_at desc, w.id desc limit $4::int`, mailServiceId, createdAt, id, page.limit);
}

export type WebhookSettings = Pick<WebhookRow, 'url' | 'events' | 'description' | 'status'>;

/** Switched on it begins without a history of failures; switched off it was by hand, unless it was off already. */
export async function setWebhook(tx: Tx, webhookId: string, { url, events, description, status }: WebhookSettings): Promise<void> {
  await execute(tx, `update mail_webhook set url = $2, events = $3::text[], description = $4, status = $5,
    disabled_reason = case when $5 = 'disabled' then coalesce(disabled_reason, 'manual') end, failing_since = case when $5 = status then failing_since end, updated_at = now() where id = $1`,
  webhookId, url, events, description, status);
  if (status === 'active') await execute(tx, `select pg_notify('mail_webhook', '')`);
}

/** Its deliveries go with it. */
export async function deleteWebhook(tx: Tx, webhookId: string): Promise<void> {
  await execute(tx, 'delete from mail_webhook where id = $1', webhookId);
}

/** The secret before signs beside the new one for a day. */
export async function replaceSecret(tx: Tx, webhookId: string, secret: string): Promise<void> {
  await execute(tx, `update mail_webhook set former_secret = secret, former_until = now() + interval '24 hours', secret = $2, updated_at = now() where id = $1`, webhookId, secret);
}

export async function markSuccess(tx: Tx, webhookId: string): Promise<void> {
  await execute(tx, 'update mail_webhook set last_success_at = now(), failing_since = null where id = $1', webhookId);
}

/** `gone`: it is switched off; else it is when it has known nothing but failures for `failingAfterHours`. */
export async function markFailure(tx: Tx, webhookId: string, { gone, failingAfterHours }: { gone: boolean; failingAfterHours: number }): Promise<void> {
  await execute(tx, `update mail_webhook set last_failure_at = now(), failing_since = coalesce(failing_since, now()),
      status = case when verdict.reason is null then status else 'disabled' end, disabled_reason = coalesce(disabled_reason, verdict.reason)
    from (select case when $2::boolean then 'gone' when failing_since <= now() - $3::int * interval '1 hour' then 'failing' end as reason from mail_webhook where id = $1) verdict
    where id = $1`, webhookId, gone, failingAfterHours);
}

/** An event of its own for a delivery that only tests. */
export async function insertTestEvent(tx: Tx, eventId: string, mailServiceId: string): Promise<void> {
  await execute(tx, `insert into mail_event (id, mail_service_id, type, source, occurred_at) values ($1, $2, 'webhook.test', 'api', now())`, eventId, mailServiceId);
}
