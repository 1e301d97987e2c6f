import type { PageKey } from '../../core/cursor';
import { execute, rows, type Db } from '../../db/client';
import type { deliveryStates } from '../state';
import type { WebhookEventType } from '../schemas/webhooks';

export type DeliveryState = (typeof deliveryStates)[number];

export type DeliveryRow = {
  webhookId: string; eventId: string; type: WebhookEventType; state: DeliveryState; attempts: number; nextAttemptAt: Date | null;
  lastStatus: number | null; lastError: string | null; responseExcerpt: string | null; createdAt: Date; updatedAt: Date;
};

const columns = `d.webhook_id as "webhookId", d.event_id as "eventId", d.type, d.state, d.attempts, d.next_attempt_at as "nextAttemptAt", d.last_status as "lastStatus",
  d.last_error as "lastError", d.response_excerpt as "responseExcerpt", d.created_at as "createdAt", d.updated_at as "updatedAt"`;

export type NewDelivery = { eventId: string; type: string; mailServiceId: string; messageId: string | null; body: string };

/** One row per event and active webhook that wants its type. The rows are the queue: whoever sends is told by NOTIFY. */
export async function insertDeliveries(tx: Db, deliveries: readonly NewDelivery[]): Promise<void> {
  await execute(tx, `with event as (
      select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as e(event_id, type, mail_service_id, message_id, body)),
    made as (
      insert into mail_webhook_delivery (webhook_id, event_id, mail_service_id, type, message_id, body)
      select w.id, e.event_id, e.mail_service_id, e.type, e.message_id, e.body from event e
      join mail_webhook w on w.mail_service_id = e.mail_service_id and w.status = 'active' and e.type = any(w.events)
        join mail_service s on s.id = w.mail_service_id and s.deleted_at is null
      on conflict do nothing returning 1)
    select pg_notify('mail_webhook', '') where exists (select from made)`,
  deliveries.map((d) => d.eventId), deliveries.map((d) => d.type), deliveries.map((d) => d.mailServiceId), deliveries.map((d) => d.messageId), deliveries.map((d) => d.body));
}

/** A delivery to this webhook alone, whatever it wants: a test. */
export async function insertDelivery(tx: Db, webhookId: string, delivery: NewDelivery): Promise<DeliveryRow | null> {
  const [row] = await rows<DeliveryRow>(tx, `insert into mail_webhook_delivery as d (webhook_id, event_id, mail_service_id, type, message_id, body)
    values ($1, $2, $3, $4, $5, $6) returning ${columns}`, webhookId, delivery.eventId, delivery.mailServiceId, delivery.type, delivery.messageId, delivery.body);
  await execute(tx, `select pg_notify('mail_webhook', '')`);
  return row ?? null;
}

/** Deliveries of a webhook, newest first, after the key. */
export function listDeliveries(db: Db, filter: { webhookId: string; state: DeliveryState | null }, page: { after: PageKey | null; limit: number }): Promise<DeliveryRow[]> {
  const [createdAt, eventId] = page.after ?? [null, null];
  return rows<DeliveryRow>(db, `select ${columns} from mail_webhook_delivery d where d.webhook_id = $1 and ($2::text is null or d.state = $2)
      and ($3::timestamptz is null or (d.created_at, d.event_id) < ($3::timestamptz, $4::text))
    order by d.created_at desc, d.event_id desc limit $5::int`, filter.webhookId, filter.state, createdAt, eventId, page.limit);
}

/** Due at once, with a new ladder; the event keeps its id and bytes. An attempt that runs changes nothing any more. Null when absent. */
export async function replayDelivery(tx: Db, webhookId: string, eventId: string): Promise<DeliveryRow | null> {
  const [row] = await rows<DeliveryRow>(tx, `update mail_webhook_delivery d set state = 'pending', attempts = 0, next_attempt_at = now(), lease_until = null,
      fence = fence + 1, updated_at = now() where webhook_id = $1 and event_id = $2 returning ${columns}`, webhookId, eventId);
  if (row) await execute(tx, `select pg_notify('mail_webhook', '')`);
  return row ?? null;
}

/** What one attempt needs; `attempt` counts from 1. */
export type ClaimedDelivery = {
  webhookId: string; eventId: string; body: string; attempt: number; fence: number;
  url: string; secret: string; formerSecret: string | null;
};

/**
 * Up to `limit` due deliveries of active webhooks of living services, at most `perWebhook` in flight at one of them, for `leaseSeconds`
 * nobody else's. Each webhook has its turn: the oldest due of every webhook come before the second of any.
 */
export function claimDeliveries(tx: Db, { limit, perWebhook, leaseSeconds }: { limit: number; perWebhook: number; leaseSeconds: number }): Promise<ClaimedDelivery[]> {
  return rows<ClaimedDelivery>(tx, `with hook as materialized (
      select w.id, w.url, w.secret, case when w.former_until > now() then w.former_secret end as former_secret,
        $2::int - (select count(*)::int from mail_webhook_delivery f where f.webhook_id = w.id and f.state = 'pending' and f.lease_until > now()) as room
      from mail_webhook w join mail_service s on s.id = w.mail_service_id and s.deleted_at is null where w.status = 'active' and exists (
        select from mail_webhook_delivery q where q.webhook_id = w.id and q.state = 'pending' and q.next_attempt_at <= now() and (q.lease_until is null or q.lease_until <= now()))
      order by w.id for update of w skip locked),
    due as (
      select d.webhook_id, d.event_id, d.place, hook.url, hook.secret, hook.former_secret from hook, lateral (
        select q.webhook_id, q.event_id, row_number() over (order by q.next_attempt_at, q.event_id) as place from mail_webhook_delivery q
        where q.webhook_id = hook.id and q.state = 'pending' and q.next_attempt_at <= now() and (q.lease_until is null or q.lease_until <= now())
        order by q.next_attempt_at, q.event_id limit greatest(hook.room, 0)) d
      order by d.place limit $1::int)
    update mail_webhook_delivery m set lease_until = now() + $3::float8 * interval '1 second', fence = m.fence + 1, attempts = m.attempts + 1, updated_at = now()
    from due where m.webhook_id = due.webhook_id and m.event_id = due.event_id
    returning m.webhook_id as "webhookId", m.event_id as "eventId", m.body, m.attempts as attempt, m.fence, due.url, due.secret, due.former_secret as "formerSecret"`,
  limit, perWebhook, leaseSeconds);
}

/** Milliseconds until a delivery of an active webhook is due and free; null when none waits. */
export async function nextDeliveryInMs(db: Db): Promise<number | null> {
  const [row] = await rows<{ ms: number | null }>(db, `select extract(epoch from min(greatest(d.next_attempt_at, coalesce(d.lease_until, d.next_attempt_at))) - now())::float8 * 1000 as ms
    from mail_webhook_delivery d join mail_webhook w on w.id = d.webhook_id and w.status = 'active'
      join mail_service s on s.id = w.mail_service_id and s.deleted_at is null where d.state = 'pending'`);
  return row?.ms ?? null;
}

export type AttemptOutcome = {
  webhookId: string; eventId: string; fence: number; state: DeliveryState; waitSeconds: number | null;
  status: number | null; error: string | null; excerpt: string | null;
};

/** The attempt's end; false when the lease was lost meanwhile and nothing was written. */
export async function settleAttempt(tx: Db, { webhookId, eventId, fence, state, waitSeconds, status, error, excerpt }: AttemptOutcome): Promise<boolean> {
  return await execute(tx, `update mail_webhook_delivery set state = $4, lease_until = null, next_attempt_at = now() + $5::float8 * interval '1 second',
      last_status = $6::int, last_error = $7, response_excerpt = $8, updated_at = now()
    where webhook_id = $1 and event_id = $2 and fence = $3::int and lease_until is not null`, webhookId, eventId, fence, state, waitSeconds, status, error, excerpt) > 0;
}
