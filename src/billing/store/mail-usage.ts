import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { BilledUse } from '../rules';

/**
 * The counters of accepted recipients (`mail_usage`, one row per mail service and period) are mail's; billing reads how they
 * grow and writes what they may come to (contract billing.md §1 Metrics, §4 Overage; mail.md §7).
 */
export const recipientsMetric = 'mail.recipients';

export type Growth = {
  orgId: string; resourceId: string; periodKey: string; periodStart: Date; /** The instant the growth is booked at. */ at: Date; final: boolean; quantity: string;
};
export type GrowthKey = { resourceId: string; periodStart: Date };

/**
 * Counters that say more than the events stored of them, after the key. What has grown is booked at the last closed hour, or
 * at the end of the period when its last hour has been booked already and no request of that period can still be at work.
 */
export function readGrowth(tx: Tx, after: GrowthKey | null, limit: number): Promise<Growth[]> {
  return rows<Growth>(tx, `
    with counter as (
      select m.org_id, u.mail_service_id, u.period_start, u.period_end, u.recipients,
        greatest(u.period_start, least(date_trunc('hour', now(), 'UTC') - interval '1 hour', date_trunc('hour', u.period_end - interval '1 millisecond', 'UTC'))) as at
      from mail_usage u join mail_service m on m.id = u.mail_service_id
      where u.recipients > 0 and u.period_end > now() - interval '34 days' and u.period_start < date_trunc('hour', now(), 'UTC')
        and ($1::text is null or (u.mail_service_id, u.period_start) > ($1::text, $2::timestamptz))),
    grown as (
      select c.*, c.recipients - coalesce(e.quantity, 0) as quantity, coalesce(e.last_at >= c.at, false) as booked from counter c
        left join lateral (select sum(e.quantity) as quantity, max(e.occurred_at) as last_at from usage_event e
          where e.source = 'mail' and e.resource_id = c.mail_service_id and e.occurred_at >= c.period_start and e.occurred_at < c.period_end) e on true)
    select g.org_id as "orgId", g.mail_service_id as "resourceId", p.key as "periodKey", g.period_start as "periodStart", g.booked as final, g.quantity::text,
      case when g.booked then g.period_end - interval '1 millisecond' else g.at end as at
    from grown g join billing_period p on p.org_id = g.org_id and p.start_at = g.period_start
    where g.quantity > 0 and (not g.booked or g.period_end < now() - interval '1 hour')
    order by g.mail_service_id, g.period_start limit $3::int`, after?.resourceId ?? null, after?.periodStart ?? null, limit);
}

/** One collection at a time: two would book the same growth under two keys. */
export async function lockCollection(tx: Tx): Promise<void> {
  await execute(tx, `select pg_advisory_xact_lock(hashtext('holdfast-mail-usage'))`);
}

export type Counter = {
  subscriptionId: string; resourceId: string; periodStart: Date; used: string; overage: boolean; included: number; /** Price of one beyond what is included; null: none is sold. */ unitPrice: string | null;
};

/** Counters of the organisation's mail services in the running period. `lock`: sends wait until the transaction ends. */
export async function readCounters(db: Db, orgId: string, lock: 'lock' | 'read' = 'read'): Promise<Counter[]> {
  if (lock === 'lock') await execute(db, `select from mail_usage u join mail_service m on m.id = u.mail_service_id
    where m.org_id = $1 and u.period_start <= now() and now() < u.period_end order by u.mail_service_id for update of u`, orgId);
  return rows<Counter>(db, `
    select s.id as "subscriptionId", u.mail_service_id as "resourceId", u.period_start as "periodStart", u.recipients::text as used, s.overage and s.status <> 'canceled' as overage,
      coalesce((p.included ->> '${recipientsMetric}')::float8, 0) as included, p.overage ->> '${recipientsMetric}' as "unitPrice"
    from mail_service m join mail_usage u on u.mail_service_id = m.id and u.period_start <= now() and now() < u.period_end
      cross join lateral (select * from subscription s where s.resource_id = m.id order by s.created_at desc, s.id desc limit 1) s
      join plan p on p.product = s.product and p.code = s.plan and p.version = s.plan_version
    where m.org_id = $1 order by m.id`, orgId);
}

/** Counters as uses of the period, which know also what no event was stored of yet. */
export function readCounted(db: Db, orgId: string, period: { start: Date; end: Date }): Promise<BilledUse[]> {
  return rows<BilledUse>(db, `
    select s.id as "subscriptionId", '${recipientsMetric}' as metric, u.recipients::text as total, exists (
      select from usage_span o where o.org_id = $1 and o.subscription_id = s.id and o.slot = 'overage' and o.span && tstzrange($2::timestamptz, $3::timestamptz, '[)')) as overage
    from mail_service m join mail_usage u on u.mail_service_id = m.id and u.period_start = $2::timestamptz
      cross join lateral (select s.id from subscription s where s.resource_id = m.id order by s.created_at desc, s.id desc limit 1) s
    where m.org_id = $1 and u.recipients > 0`, orgId, period.start, period.end);
}

export type Ceiling = { resourceId: string; ceiling: string | null; reason: 'included' | 'spend_limit' };

/** What the services may come to in the running period. */
export async function writeCeilings(tx: Tx, ceilings: readonly Ceiling[]): Promise<void> {
  await execute(tx, `
    update mail_usage u set ceiling = v.ceiling, ceiling_reason = v.reason, updated_at = now()
    from unnest($1::text[], $2::bigint[], $3::text[]) as v (id, ceiling, reason)
    where u.mail_service_id = v.id and u.period_start <= now() and now() < u.period_end and (u.ceiling, u.ceiling_reason) is distinct from (v.ceiling, v.reason)`,
  ceilings.map(({ resourceId }) => resourceId), ceilings.map(({ ceiling }) => ceiling), ceilings.map(({ reason }) => reason));
}

/**
 * Running periods follow their subscriptions where no spend limit has a say: what is included, or nothing at all above it
 * with overage. A service whose subscription has ended gets nothing more. Of one service, of one organisation, or of all.
 */
export async function followPlans(db: Db, scope: { resourceId: string } | { orgId: string } | null): Promise<number> {
  const [resourceId, orgId] = [scope && 'resourceId' in scope ? scope.resourceId : null, scope && 'orgId' in scope ? scope.orgId : null];
  return execute(db, `
    with wanted as (
      select u.mail_service_id, u.period_start, coalesce((p.included ->> '${recipientsMetric}')::bigint, 0) as included,
        coalesce(s.overage, false) as overage, a.spend_limit_minor is not null and coalesce(s.overage, false) as limited
      from mail_usage u join mail_service m on m.id = u.mail_service_id
        left join subscription s on s.resource_id = m.id and s.status <> 'canceled'
        left join plan p on p.product = s.product and p.code = s.plan and p.version = s.plan_version
        left join billing_account a on a.org_id = m.org_id
      where u.period_start <= now() and now() < u.period_end and ($1::text is null or m.id = $1) and ($2::text is null or m.org_id = $2)),
    stale as (
      select w.* from wanted w join mail_usage u on u.mail_service_id = w.mail_service_id and u.period_start = w.period_start
      where u.included <> w.included or not w.limited and (u.ceiling, u.ceiling_reason) is distinct from (case when not w.overage then w.included end, 'included'::text)
      order by w.mail_service_id for update of u)
    update mail_usage u set included = w.included, updated_at = now(),
      ceiling = case when w.limited then u.ceiling when not w.overage then w.included end, ceiling_reason = case when w.limited then u.ceiling_reason else 'included' end
    from stale w where u.mail_service_id = w.mail_service_id and u.period_start = w.period_start`, resourceId, orgId);
}

/** Organisations, after the given one, whose spend limit bounds mail that is paid for beyond what is included. */
export async function listLimited(db: Db, after: string | null, limit: number): Promise<string[]> {
  const found = await rows<{ orgId: string }>(db, `
    select a.org_id as "orgId" from billing_account a where a.spend_limit_minor is not null and ($1::text is null or a.org_id > $1)
      and exists (select from subscription s where s.org_id = a.org_id and s.product = 'mail' and s.overage and s.status <> 'canceled')
    order by a.org_id limit $2::int`, after, limit);
  return found.map(({ orgId }) => orgId);
}
