import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Product } from '../schemas';

export type Counter = { scopeId: string; resource: string; orgId: string; projectId: string | null };

/** The plan that bounds a resource: the named one as it is sold now, else the holder's own version, else dns without a plan. */
export type PlanChoice = { product: Product; plan: string | null; holderId: string };

/** Plan of $1 product, $2 plan or null, $3 holder. */
const chosenPlan = `
  select 1 as preference, p.* from plan p where $2::text is not null and p.product = $1 and p.code = $2 and p.code <> 'none' and p.active_to is null
  union all
  select 2, p.* from subscription s join plan p on p.product = s.product and p.code = s.plan and p.version = s.plan_version
    where $2::text is null and s.resource_id = $3 and s.product = $1 and s.status <> 'canceled'
  union all
  select 3, p.* from plan p where $2::text is null and p.product = $1 and p.code = 'none' and p.active_to is null
  order by preference limit 1`;

/** Bounds of a plan by resource; null when there is no such plan. */
export async function findLimits(db: Db, choice: PlanChoice): Promise<Record<string, number> | null> {
  const [row] = await rows<{ limits: Record<string, number> }>(db, `select p.limits from (${chosenPlan}) p`, choice.product, choice.plan, choice.holderId);
  return row?.limits ?? null;
}

export type Grounds = {
  accountStatus: string | null; hasPaymentMethod: boolean; requirePaymentMethod: boolean; hasSpendLimit: boolean;
  planCode: string | null; planRank: number | null;
  /** Whether the plan costs more than what it replaces: then payment and spend limit are asked. */
  dearer: boolean;
  limit: number | null;
  /** The count with n added, when nothing but the count had to be asked and it fitted; else null, and nothing is counted. */
  used: number | null;
};
export type Claim = { choice: PlanChoice; counter: Counter; resource: string; n: number; replacedPrice: string; askFirst: boolean };

/**
 * All that a reservation is judged by, and in the same statement the count itself unless something is to be asked before
 * it (`askFirst`, an account in arrears, a missing payment method). The counter is locked from here to the commit.
 */
export async function judge(tx: Tx, { choice, counter, resource, n, replacedPrice, askFirst }: Claim): Promise<Grounds> {
  const [row] = await rows<Grounds>(tx, `
    with grounds as (
      select a.status, a.payment_method_kind is not null as has_method, g.require_payment_method, a.spend_limit_minor is not null as has_spend_limit,
        p.code, p.rank, $2::text is not null and coalesce(p.monthly_price, 0) > $6::numeric as dearer, (p.limits ->> $5::text)::bigint as most
      from billing_setting g left join billing_account a on a.org_id = $4 left join (${chosenPlan}) p on true),
    counted as (
      update quota_counter c set used = c.used + $9::bigint, updated_at = now() from grounds g
      where c.scope_id = $7 and c.resource = $8 and (g.most is null or c.used + $9::bigint <= g.most) and not $10::boolean
        and ($2::text is null or g.code is not null)
        and not (g.dearer and (coalesce(g.status, 'current') in ('restricted', 'suspended') or (g.require_payment_method and not g.has_method)))
      returning c.used)
    select g.status as "accountStatus", g.has_method as "hasPaymentMethod", g.require_payment_method as "requirePaymentMethod", g.has_spend_limit as "hasSpendLimit",
      g.code as "planCode", g.rank as "planRank", g.dearer, g.most::float8 as limit, (select used::float8 from counted) as used
    from grounds g`,
  choice.product, choice.plan, choice.holderId, counter.orgId, resource, replacedPrice, counter.scopeId, counter.resource, n, askFirst);
  if (!row) throw new Error('The plan catalogue was never loaded: ensureCatalogue runs at boot.');
  return row;
}

/** Adds n within the limit (null: none) and answers the new count; null when it does not fit. The row is locked from here to the commit. */
export async function claim(tx: Tx, counter: Counter, n: number, limit: number | null): Promise<number | null> {
  const used = await add(tx, counter, n, limit);
  if (used !== null) return used;
  await execute(tx, `insert into quota_counter (scope_id, resource, org_id, project_id) values ($1, $2, $3, $4) on conflict do nothing`,
    counter.scopeId, counter.resource, counter.orgId, counter.projectId);
  return add(tx, counter, n, limit);
}

async function add(tx: Tx, counter: Counter, n: number, limit: number | null): Promise<number | null> {
  const [row] = await rows<{ used: number }>(tx, `
    update quota_counter set used = used + $3::bigint, updated_at = now()
    where scope_id = $1 and resource = $2 and ($4::bigint is null or used + $3::bigint <= $4::bigint) returning used::float8 as used`,
  counter.scopeId, counter.resource, n, limit);
  return row?.used ?? null;
}

/** Gives n back; a counter never falls below zero. */
export async function giveBack(tx: Tx, scopeId: string, resource: string, n: number): Promise<void> {
  await execute(tx, `update quota_counter set used = greatest(used - $3::bigint, 0), updated_at = now() where scope_id = $1 and resource = $2`, scopeId, resource, n);
}

export async function readUsed(db: Db, scopeId: string, resource: string): Promise<number> {
  const [row] = await rows<{ used: number }>(db, `select used::float8 as used from quota_counter where scope_id = $1 and resource = $2`, scopeId, resource);
  return row?.used ?? 0;
}

/**
 * The smallest larger plan on which n more would fit; null when none. Where each plan has its own counter, that one's
 * count decides, else the present one's.
 */
export async function findUpgrade(
  db: Db, product: Product, resource: string, need: { rank: number; scopeId: string; used: number; n: number; perPlan: boolean },
): Promise<string | null> {
  const [row] = await rows<{ code: string }>(db, `
    select p.code from plan p left join quota_counter c on $7::boolean and c.scope_id = $4 and c.resource = $2::text || '.' || p.code
    where p.product = $1 and p.active_to is null and p.rank > $3::int and p.code not in ('none', 'trial')
      and (p.limits -> $2::text is null or case when $7::boolean then coalesce(c.used, 0) else $5::bigint end + $6::bigint <= (p.limits ->> $2::text)::bigint)
    order by p.rank limit 1`, product, resource, need.rank, need.scopeId, need.used, need.n, need.perPlan);
  return row?.code ?? null;
}

/** The smallest larger plan that includes this much of a metric in a period; null when none does. */
export async function findPlanIncluding(db: Db, need: { product: Product; resourceId: string; metric: string; use: number }): Promise<string | null> {
  const [row] = await rows<{ code: string }>(db, `
    select p.code from plan p where p.product = $1 and p.active_to is null and p.code <> 'none' and (p.included ->> $3::text)::bigint >= $4::bigint
      and p.rank > coalesce((select o.rank from subscription s join plan o on o.product = s.product and o.code = s.plan and o.version = s.plan_version
        where s.resource_id = $2 and s.status <> 'canceled'), -1)
    order by p.rank limit 1`, need.product, need.resourceId, need.metric, need.use);
  return row?.code ?? null;
}

export type CounterRow = { scopeId: string; resource: string; used: number };

/** Counters of a project, or of the whole organisation. */
export function listCounters(db: Db, orgId: string, projectId: string | null): Promise<CounterRow[]> {
  return rows<CounterRow>(db, `select scope_id as "scopeId", resource, used::float8 as used from quota_counter
    where org_id = $1 and ($2::text is null or project_id = $2 or project_id is null) order by resource, scope_id`, orgId, projectId);
}
