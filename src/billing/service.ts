/**
 * What products call, inside their own transactions (contract billing.md §4):
 *
 *   reserve(tx, { orgId, projectId, product, plan?, resource, n, scopeId?, holderId? }): Promise<{ used, limit }>   402 before any side effect
 *   release(tx, { orgId, projectId, product, plan?, resource, n, scopeId? }): Promise<void>
 *   openSubscription(tx, { orgId, projectId, product, resourceId, plan }): Promise<SubscriptionRow>   projectId null for dns
 *   startPlanTime(tx, resourceId, at): Promise<boolean>        first usable; mail and dns need no call
 *   switchPlan(tx, resourceId, at): Promise<boolean>           the product has applied the pending plan
 *   abandonPlanChange(tx, resourceId): Promise<void>           it has not and will not
 *   closeSubscription(tx, resourceId, at): Promise<boolean>    never fails; false: there was none
 *   closeOrganization(tx, orgId, at): Promise<void>
 *   storeUsage(tx, facts): Promise<{ stored, repeated, conflicts, rejected }>
 *   setTimeZone(tx, orgId, timeZone): Promise<void>            identity, when the organisation's zone changes
 *   periodAt(db, orgId, at): Promise<{ key, start, end }>      the billing month of an instant
 *   allowance(db, resourceId, metric): Promise<{ included, overage } | null>   what a plan includes; null without a subscription
 *   refreshCeilings(tx, orgId): Promise<void>                  mail_usage.ceiling of its services, after a change of plan
 *   limit(db, { orgId, resourceId?, plan? }, resource): Promise<number | null>     null: no limit
 *   limits(db, { orgId, resourceId?, plan? }, product): Promise<Record<string, number>>
 *   planAllowing(db, resource, used): Promise<string | null>   for `upgradeTo` of a limit the product counts itself
 *
 * A Postgres service: `reserve({ product: 'postgres', plan, resource: 'postgres.services', n: 1 })` and
 * `openSubscription` in the accepting transaction; `startPlanTime` in markAvailable; `closeSubscription` and `release` in
 * the accepting transaction of DELETE and in markFailed. Counts are given back once: whoever failed before is not
 * released again on DELETE.
 */
import type { Config } from '../config';
import type { Cause } from '../core/caller';
import type { Clock } from '../core/clock';
import type { Cursors } from '../core/cursor';
import { AppError, invalid, notFound } from '../core/errors';
import type { Id } from '../core/ids';
import type { Database, Db } from '../db/client';
import type { Tx } from '../db/transaction';
import type { BillingProvider } from './ports';
import { counterName, isPerPlan, productOf, refusalOf, startsAtCreation, trialDaysMax } from './rules';
import type { Metric, Product } from './schemas';
import type { OperationRow } from '../operations/store';
import { requireSpend } from './spend';
import { restrictedAccounts } from './state';
import { databaseNow, ensurePeriod, writeTimeZone, type PeriodRow } from './store/accounts';
import { claim, findLimits, findPlanIncluding, findUpgrade, giveBack, judge, readUsed, type Counter, type Grounds, type PlanChoice } from './store/quotas';
import * as store from './store/subscriptions';
import { insertUsage, rebuildBuckets, type Ingested, type UsageFact } from './store/usage';
import type { NewSubscription, SubscriptionRow } from './store/subscriptions';

/**
 * A product brings a resource to the pending plan of its subscription, within the caller's transaction: at once (then the
 * operation is settled) or by a workflow whose last step calls `switchPlan`. Errors: `invalid_state` for a resource in
 * transition; `plan_limit_reached` where its data does not fit.
 */
export type ChangePlan = (tx: Tx, change: { resourceId: string; plan: string; cause: Cause }) => Promise<OperationRow>;

/** Locks a resource before its subscription, in the order its deletion takes them. */
export type LockResource = (tx: Tx, resourceId: string) => Promise<void>;

export { collectMailUsage, refreshAllCeilings, refreshCeilings } from './mail-usage';
export { databaseNow } from './store/accounts';
export type { UsageFact };

/** What billing's routes are given; deps.ts provides it. */
export interface BillingDeps {
  readonly db: Database;
  readonly cursors: Cursors;
  readonly config: Pick<Config, 'BILLING_GRACE_HOURS' | 'LEDGER_WEBHOOK_SECRETS' | 'RATE_USAGE_PER_MINUTE' | 'RATE_CHANGE_PLAN_PER_HOUR'>;
  /** Of identity/service: identity asks billing for limits, so billing cannot import it. */
  appendAudit(tx: Tx, facts: {
    orgId: Id<'org'>; projectId: Id<'prj'> | null; cause: Cause; outcome: 'done'; target: { type: string; id: string };
    changes: readonly { field: string; from: unknown; to: unknown }[];
  }): void;
  readonly billingProvider: BillingProvider;
  readonly clock: Clock;
  /** How the products bring a resource to another plan. */
  readonly changePlan: Partial<Record<Product, ChangePlan>>;
  /** Products whose deletion locks the resource before its subscription. */
  readonly lockForChange?: Partial<Record<Product, LockResource>>;
}

export type Reservation = {
  orgId: string; projectId: string | null; product: Product;
  /** Given when the reservation opens a subscription: then payment, trial and spend limit are asked too. */
  plan?: string | undefined;
  /** A key of the catalogue's limits: `postgres.services`, `mail.domains`, `dns.zones`. */
  resource: string;
  n: number;
  /** What is counted in; default the project, else the organisation. */
  scopeId?: string | undefined;
  /** Whose plan bounds it when no plan is given; default: dns the organisation, mail the scope. */
  holderId?: string | undefined;
  /** The subscription whose plan it would become: payment and spend limit are asked only when it becomes dearer. */
  replaces?: { subscriptionId: string; monthlyPrice: string };
};

/**
 * Counts n more, or refuses before anything is written. Errors, in this order: `payment_required`, `trial_already_used`,
 * `plan_limit_reached` or (dns, gateway) `quota_exceeded`, `spend_limit_reached`, each with `resource, limit, used,
 * upgradeTo`; `validation_error` for a plan that is not sold.
 */
export async function reserve(tx: Tx, reservation: Reservation): Promise<{ used: number; limit: number | null }> {
  const { plan, resource, n, replaces } = reservation;
  const counter = counterOf(reservation);
  const askFirst = plan === 'trial' || n === 0;
  const grounds = await judge(tx, { choice: choiceOf(reservation), counter, resource, n, replacedPrice: replaces?.monthlyPrice ?? '0', askFirst });
  if (plan !== undefined && grounds.planCode === null) throw invalid([{ path: 'plan', message: `the plan ${plan} is not offered` }]);
  if (grounds.dearer) requirePayment(grounds, resource);
  if (plan === 'trial') await requireTrial(tx, reservation);
  const used = grounds.used ?? await count(tx, reservation, grounds);
  if (grounds.dearer && grounds.hasSpendLimit) await requireSpend(tx, { ...reservation, subscriptionId: replaces?.subscriptionId ?? null });
  return { used, limit: grounds.limit };
}

/** Gives n back, in the transaction that deletes. Never fails and never goes below zero. */
export async function release(tx: Tx, reservation: Reservation): Promise<void> {
  const { scopeId, resource } = counterOf(reservation);
  await giveBack(tx, scopeId, resource, reservation.n);
}

/**
 * A resource has a subscription. Plan time of mail and dns begins now; a trial runs `postgres.trial_days` from now. The
 * first subscription of an organisation makes its account. Errors: `validation_error` for a plan that is not sold.
 */
export async function openSubscription(tx: Tx, subscription: NewSubscription): Promise<SubscriptionRow> {
  const row = await store.insertSubscription(tx, subscription);
  if (!row) throw invalid([{ path: 'plan', message: `the plan ${subscription.plan} is not offered` }]);
  if (startsAtCreation(row.product)) await store.beginPlanTime(tx, row.resourceId, row.createdAt);
  return row;
}

/** Paid time runs from `at`. Safe twice; false when it ran already or nothing is subscribed. */
export function startPlanTime(tx: Tx, resourceId: string, at: Date): Promise<boolean> {
  return store.beginPlanTime(tx, resourceId, at);
}

/** The pending plan is in force and paid from `at`; the count moves with it. Safe twice; false when nothing was pending. */
export async function switchPlan(tx: Tx, resourceId: string, at: Date): Promise<boolean> {
  const before = await store.lockSubscription(tx, resourceId);
  if (!before?.pendingPlan) return false;
  await store.endSpans(tx, resourceId, ['plan'], at);
  await store.adoptPendingPlan(tx, before.id, at);
  await store.beginSpan(tx, before.id, 'plan', at);
  if (before.overage && !await store.hasOverage(tx, before.id)) await store.endSpans(tx, resourceId, ['overage'], at);
  if (before.pendingPlan !== before.plan) await releasePlan(tx, before, before.plan);
  return true;
}

/** The change of plan is off and has cost nothing. Safe twice. */
export async function abandonPlanChange(tx: Tx, resourceId: string): Promise<void> {
  const row = await store.lockSubscription(tx, resourceId);
  if (!row?.pendingPlan) return;
  await store.setPendingPlan(tx, row.id, null);
  if (row.pendingPlan !== row.plan) await releasePlan(tx, row, row.pendingPlan);
}

/** Paid time ends at `at`, for ever. Never refuses: a resource without a subscription answers false. */
export async function closeSubscription(tx: Tx, resourceId: string, at: Date): Promise<boolean> {
  const canceled = await store.cancelSubscription(tx, resourceId, at);
  await store.endSpans(tx, resourceId, ['plan', 'overage'], at);
  if (canceled?.pendingPlan && canceled.pendingPlan !== canceled.plan) await releasePlan(tx, canceled, canceled.pendingPlan);
  return canceled !== null;
}

/** Nothing of the organisation costs anything from `at` on. */
export async function closeOrganization(tx: Tx, orgId: string, at: Date): Promise<void> {
  for (const resourceId of await store.liveResources(tx, orgId)) await closeSubscription(tx, resourceId, at);
}

/**
 * Paying beyond the included amount is on or off from now; answers the subscription before. Errors: `not_found`;
 * `invalid_state` for an ended one and for a plan that prices nothing beyond.
 */
export async function switchOverage(tx: Tx, scope: { orgId: string; projectId: string | null }, subscriptionId: string, overage: boolean): Promise<SubscriptionRow> {
  const found = await store.findSubscription(tx, scope, subscriptionId);
  if (!found) throw notFound('Subscription');
  const row = await store.lockSubscription(tx, found.resourceId);
  if (row?.id !== found.id) throw new AppError('invalid_state', 'This subscription has ended.', { status: 'canceled' });
  if (overage && !await store.hasOverage(tx, row.id)) throw new AppError('invalid_state', `The ${row.plan} plan has no price beyond what it includes.`, { plan: row.plan });
  if (row.overage === overage) return row;
  const now = await databaseNow(tx);
  await store.setOverage(tx, row.id, overage);
  if (overage) await store.beginSpan(tx, row.id, 'overage', now);
  else await store.endSpans(tx, row.resourceId, ['overage'], now);
  return row;
}

/**
 * Stores up to 1,000 measurements and brings the hours they touch up to date. Any of them may come twice, in any order.
 * One more than 35 days old or 5 minutes ahead is refused; another payload under a known key is kept aside.
 */
export async function storeUsage(tx: Tx, facts: readonly UsageFact[]): Promise<Ingested> {
  const ingested = await insertUsage(tx, facts);
  if (ingested.stored > 0) await rebuildBuckets(tx, facts);
  return ingested;
}

/** Billing months follow the zone from the next one on; the present one keeps its end. */
export function setTimeZone(tx: Tx, orgId: string, timeZone: string): Promise<void> {
  return writeTimeZone(tx, orgId, timeZone);
}

/** The billing month an instant falls into. */
export function periodAt(db: Db, orgId: string, at: Date): Promise<PeriodRow> {
  return ensurePeriod(db, orgId, at);
}

/** How much of a metric the resource's plan includes, and whether more may be used and paid for; null without a subscription. */
export function allowance(db: Db, resourceId: string, metric: Metric): Promise<{ included: number; overage: boolean } | null> {
  return store.findAllowance(db, resourceId, metric);
}

export type LimitScope = { orgId: string; resourceId?: string | undefined; plan?: string | undefined };

/** How much of a resource is allowed: by the plan named, else by the resource's own, else (dns, gateway) by the organisation's. Null: no limit. */
export async function limit(db: Db, scope: LimitScope, resource: string): Promise<number | null> {
  return (await limits(db, scope, productOf(resource)))[resource] ?? null;
}

/** The smallest plan sold that allows this much of a resource; null when none does. */
export function planAllowing(db: Db, resource: string, used: number): Promise<string | null> {
  return findUpgrade(db, productOf(resource), resource, { rank: -1, scopeId: '', used, n: 0, perPlan: false });
}

/** All limits of a product for this scope, by resource; one that is absent does not exist. */
export async function limits(db: Db, scope: LimitScope, product: Product): Promise<Readonly<Record<string, number>>> {
  const holderId = product === 'dns' ? scope.orgId : scope.resourceId ?? scope.orgId;
  return await findLimits(db, { product, plan: scope.plan ?? null, holderId }) ?? {};
}

/** The smallest larger plan that includes this much of a metric in a period; null when none does. */
export function findPlanWithUse(db: Db, need: { product: Product; resourceId: string; metric: string; use: number }): Promise<string | null> {
  return findPlanIncluding(db, need);
}

function choiceOf({ orgId, product, plan, holderId, scopeId }: Reservation): PlanChoice {
  return { product, plan: plan ?? null, holderId: holderId ?? (product === 'dns' ? orgId : scopeId ?? orgId) };
}

function counterOf({ orgId, projectId, scopeId, resource, plan }: Reservation): Counter {
  return { orgId, projectId, scopeId: scopeId ?? projectId ?? orgId, resource: counterName(resource, plan) };
}

async function count(tx: Tx, reservation: Reservation, grounds: Grounds): Promise<number> {
  const counter = counterOf(reservation);
  if (reservation.n === 0) return readUsed(tx, counter.scopeId, counter.resource);
  const used = await claim(tx, counter, reservation.n, grounds.limit);
  if (used === null) throw await fullError(tx, reservation, counter, grounds);
  return used;
}

function requirePayment(grounds: Grounds, resource: string): void {
  const facts = { resource, limit: null, used: null, upgradeTo: null };
  if (restrictedAccounts.some((status) => status === grounds.accountStatus)) {
    throw new AppError('payment_required', 'An invoice of this organisation is overdue. Pay it, then repeat this request.', facts);
  }
  if (grounds.requirePaymentMethod && !grounds.hasPaymentMethod) {
    throw new AppError('payment_required', 'This organisation has no payment method. Add one, then repeat this request.', facts);
  }
}

async function requireTrial(tx: Tx, { projectId, product, n }: Reservation): Promise<void> {
  if (projectId === null) return;
  const used = await store.trialDaysUsed(tx, projectId);
  if (used < trialDaysMax) return;
  const resource = `${product}.services`;
  const upgradeTo = await findUpgrade(tx, product, resource, { rank: -1, scopeId: projectId, used: 0, n, perPlan: isPerPlan(resource) });
  throw new AppError('trial_already_used', `The trials of this project have used their ${trialDaysMax} days. Choose a paid plan.`,
    { resource: `${product}.trial_days`, limit: trialDaysMax, used: Math.floor(used), upgradeTo });
}

async function fullError(tx: Tx, { product, plan, resource, n }: Reservation, { scopeId, resource: counter }: Counter, grounds: Grounds): Promise<AppError> {
  const used = await readUsed(tx, scopeId, counter);
  const upgradeTo = await findUpgrade(tx, product, resource, { rank: grounds.planRank ?? -1, scopeId, used, n, perPlan: isPerPlan(resource) });
  const advice = upgradeTo === null ? 'Delete what is no longer needed.' : `The ${upgradeTo} plan has room.`;
  const of = plan === undefined ? 'The plan' : `The ${plan} plan`;
  return new AppError(refusalOf(resource), `${of} allows ${grounds.limit} of ${resource}, and ${used} are in use. ${advice}`,
    { resource: counter, limit: grounds.limit, used, upgradeTo });
}

async function releasePlan(tx: Tx, { projectId, product }: { projectId: string | null; product: Product }, plan: string): Promise<void> {
  const resource = `${product}.services`;
  if (projectId !== null && isPerPlan(resource)) await giveBack(tx, projectId, counterName(resource, plan), 1);
}
