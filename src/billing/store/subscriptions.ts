import type { PageKey } from '../../core/cursor';
import { newId, type Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { PlanCode, Product } from '../schemas';
import type { SubscriptionStatus } from '../state';

export type SubscriptionRow = {
  id: Id<'sub'>; orgId: Id<'org'>; projectId: Id<'prj'> | null; product: Product; resourceId: string; plan: PlanCode; planVersion: number;
  pendingPlan: PlanCode | null; pendingVersion: number | null; status: SubscriptionStatus; overage: boolean; trialExpiresAt: Date | null;
  startedAt: Date | null; canceledAt: Date | null; createdAt: Date; updatedAt: Date;
};
export type NewSubscription = { orgId: string; projectId: string | null; product: Product; resourceId: string; plan: string };
type Slot = 'plan' | 'overage';

const columns = `s.id, s.org_id as "orgId", s.project_id as "projectId", s.product, s.resource_id as "resourceId", s.plan, s.plan_version as "planVersion",
  s.pending_plan as "pendingPlan", s.pending_version as "pendingVersion", s.status, s.overage, s.trial_expires_at as "trialExpiresAt",
  s.started_at as "startedAt", s.canceled_at as "canceledAt", s.created_at as "createdAt", s.updated_at as "updatedAt"`;

/** The account of the organisation and the subscription, in one statement. Null when the plan is not sold. */
export async function insertSubscription(tx: Tx, subscription: NewSubscription): Promise<SubscriptionRow | null> {
  const [row] = await rows<SubscriptionRow>(tx, `
    with account as (
      insert into billing_account (org_id, provider, currency) select $2, provider, currency from billing_setting on conflict do nothing)
    insert into subscription as s (id, org_id, project_id, product, resource_id, plan, plan_version, status, trial_expires_at)
    select $1, $2, $3, p.product, $5, p.code, p.version, case p.code when 'trial' then 'trialing' else 'active' end,
      case p.code when 'trial' then now() + make_interval(days => coalesce((p.limits->>(p.product || '.trial_days'))::int, 14)) end
    from plan p where p.product = $4 and p.code = $6 and p.code <> 'none' and p.active_to is null returning ${columns}`,
  newId('sub'), subscription.orgId, subscription.projectId, subscription.product, subscription.resourceId, subscription.plan);
  return row ?? null;
}

/** The live subscription of a resource, locked until the transaction ends; null when there is none. */
export async function lockSubscription(tx: Tx, resourceId: string): Promise<SubscriptionRow | null> {
  const [row] = await rows<SubscriptionRow>(tx, `select ${columns} from subscription s where s.resource_id = $1 and s.status <> 'canceled' for update`, resourceId);
  return row ?? null;
}

/**
 * Plan time begins, once: false when it had begun or there is no live subscription. It never reaches back into time the
 * resource has been billed for.
 */
export async function beginPlanTime(tx: Tx, resourceId: string, at: Date): Promise<boolean> {
  const changed = await execute(tx, `
    with moment as (
      select greatest($2::timestamptz(3), max(upper(span))) as at from usage_span where resource_id = $1 and slot = 'plan'),
    started as (
      update subscription s set started_at = moment.at, updated_at = now() from moment
      where s.resource_id = $1 and s.status <> 'canceled' and s.started_at is null returning s.*)
    insert into usage_span (org_id, subscription_id, resource_id, slot, product, plan, plan_version, span)
    select org_id, id, resource_id, 'plan', product, plan, plan_version, tstzrange(started_at, null, '[)') from started`, resourceId, at);
  return changed === 1;
}

/** The open span of a slot ends; one that would be empty is taken away. */
export async function endSpans(tx: Tx, resourceId: string, slots: readonly Slot[], at: Date): Promise<void> {
  await execute(tx, `
    with empty as (
      delete from usage_span where resource_id = $1 and slot = any($2::text[]) and upper_inf(span) and lower(span) >= $3::timestamptz(3))
    update usage_span set span = tstzrange(lower(span), $3::timestamptz(3), '[)')
    where resource_id = $1 and slot = any($2::text[]) and upper_inf(span) and lower(span) < $3::timestamptz(3)`, resourceId, slots, at);
}

/** A span of the subscription's present plan begins, not before what the slot already holds. */
export async function beginSpan(tx: Tx, subscriptionId: string, slot: Slot, at: Date): Promise<void> {
  await execute(tx, `
    insert into usage_span (org_id, subscription_id, resource_id, slot, product, plan, plan_version, span)
    select s.org_id, s.id, s.resource_id, $2, s.product, s.plan, s.plan_version, tstzrange(greatest($3::timestamptz(3), s.started_at,
      (select max(upper(span)) from usage_span u where u.resource_id = s.resource_id and u.slot = $2)), null, '[)')
    from subscription s where s.id = $1 and s.started_at is not null`, subscriptionId, slot, at);
}

/** The pending plan becomes the plan; a trial ends at that moment. */
export async function adoptPendingPlan(tx: Tx, subscriptionId: string, at: Date): Promise<void> {
  await execute(tx, `
    update subscription s set plan = pending_plan, plan_version = pending_version, pending_plan = null, pending_version = null,
      status = case status when 'trialing' then 'active' else status end,
      overage = overage and exists (select 1 from plan p where p.product = s.product and p.code = s.pending_plan and p.version = s.pending_version and p.overage is not null), trial_expires_at = least(trial_expires_at, $2::timestamptz(3)), updated_at = now()
    where id = $1 and pending_plan is not null`, subscriptionId, at);
}

export async function setPendingPlan(tx: Tx, subscriptionId: string, pending: { plan: string; version: number } | null): Promise<void> {
  await execute(tx, `update subscription set pending_plan = $2, pending_version = $3::int, updated_at = now() where id = $1 and status <> 'canceled'`,
    subscriptionId, pending?.plan ?? null, pending?.version ?? null);
}

/** Whether the subscription's plan prices anything beyond what it includes. */
export async function hasOverage(db: Db, subscriptionId: string): Promise<boolean> {
  const found = await rows<{ n: number }>(db, `select 1 as n from subscription s join plan p on p.product = s.product and p.code = s.plan and p.version = s.plan_version
    where s.id = $1 and p.overage is not null`, subscriptionId);
  return found.length > 0;
}

export async function setOverage(tx: Tx, subscriptionId: string, overage: boolean): Promise<void> {
  await execute(tx, `update subscription set overage = $2, updated_at = now() where id = $1 and status <> 'canceled'`, subscriptionId, overage);
}

type Canceled = { projectId: string | null; product: Product; plan: string; pendingPlan: string | null };

/** Live to canceled; null when there was none. Answers what was still pending. */
export async function cancelSubscription(tx: Tx, resourceId: string, at: Date): Promise<Canceled | null> {
  const [row] = await rows<Canceled>(tx, `
    with before as (select id, pending_plan from subscription where resource_id = $1 and status <> 'canceled' for update)
    update subscription s set status = 'canceled', canceled_at = $2::timestamptz(3), pending_plan = null, pending_version = null, updated_at = now()
    from before where s.id = before.id returning s.project_id as "projectId", s.product, s.plan, before.pending_plan as "pendingPlan"`, resourceId, at);
  return row ?? null;
}

/** Resources of the organisation that still have a subscription. */
export async function liveResources(db: Db, orgId: string): Promise<string[]> {
  const found = await rows<{ resourceId: string }>(db, `select resource_id as "resourceId" from subscription where org_id = $1 and status <> 'canceled' order by id`, orgId);
  return found.map((row) => row.resourceId);
}

/** Subscriptions that will cost time until somebody ends them. */
export function listLive(db: Db, orgId: string): Promise<SubscriptionRow[]> {
  return rows<SubscriptionRow>(db, `select ${columns} from subscription s where s.org_id = $1 and s.status <> 'canceled' order by s.id`, orgId);
}

/** Days of trial the project's services have had so far, each at most to its own end. */
export async function trialDaysUsed(db: Db, projectId: string): Promise<number> {
  const [row] = await rows<{ days: number }>(db, `
    select coalesce(sum(greatest(extract(epoch from least(canceled_at, trial_expires_at, now()) - created_at), 0)), 0)::float8 / 86400 as days
    from subscription where project_id = $1 and trial_expires_at is not null`, projectId);
  return row?.days ?? 0;
}

export type SubscriptionFilter = {
  orgId: string; projectId: string | null; product?: string | undefined; status?: string | undefined; resourceId?: string | undefined;
};

/** Newest first. With a project: its own and the organisation's (dns); without: all of the organisation. */
export function listSubscriptions(db: Db, filter: SubscriptionFilter, after: PageKey | null, limit: number): Promise<SubscriptionRow[]> {
  return rows<SubscriptionRow>(db, `select ${columns} from subscription s
    where s.org_id = $1 and ($2::text is null or s.project_id = $2 or s.project_id is null)
      and ($3::text is null or s.product = $3) and ($4::text is null or s.status = $4) and ($5::text is null or s.resource_id = $5)
      and ($6::timestamptz is null or (s.created_at, s.id) < ($6::timestamptz, $7)) order by s.created_at desc, s.id desc limit $8`,
  filter.orgId, filter.projectId, filter.product ?? null, filter.status ?? null, filter.resourceId ?? null, after?.[0] ?? null, after?.[1] ?? null, limit);
}

export async function findSubscription(db: Db, scope: { orgId: string; projectId: string | null }, id: string): Promise<SubscriptionRow | null> {
  const [row] = await rows<SubscriptionRow>(db, `select ${columns} from subscription s
    where s.id = $1 and s.org_id = $2 and ($3::text is null or s.project_id = $3 or s.project_id is null)`, id, scope.orgId, scope.projectId);
  return row ?? null;
}

/** What the plan of the resource's live subscription includes of a metric. */
export async function findAllowance(db: Db, resourceId: string, metric: string): Promise<{ included: number; overage: boolean } | null> {
  const [row] = await rows<{ included: number; overage: boolean }>(db, `select coalesce((p.included->>$2::text)::float8, 0) as included, s.overage
    from subscription s join plan p on p.product = s.product and p.code = s.plan and p.version = s.plan_version where s.resource_id = $1 and s.status <> 'canceled'`, resourceId, metric);
  return row ?? null;
}
