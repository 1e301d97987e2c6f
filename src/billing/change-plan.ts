import type { z } from 'zod';
import type { Cause } from '../core/caller';
import { AppError, invalid, notFound } from '../core/errors';
import type { Id } from '../core/ids';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import { openOperation, settleOperation, getOperation, type OperationRow } from '../operations/store';
import { projectStatement } from './invoices';
import { counterName, isPerPlan } from './rules';
import type { Product, changePreviewSchema } from './schemas';
import { reserve, switchPlan, type ChangePlan, type LockResource } from './service';
import { pricedPlan } from './spend';
import { databaseNow } from './store/accounts';
import { planKey, readPricedPlans } from './store/invoices';
import { findActivePlan, type PlanRow } from './store/plans';
import { listCounters } from './store/quotas';
import { findSubscription, lockSubscription, setPendingPlan, type SubscriptionRow } from './store/subscriptions';
import { viewLines } from './view';

export type Change = { orgId: Id<'org'>; projectId: Id<'prj'> | null; subscriptionId: string; plan: string };
/** Who asks, and how each product brings its resources to another plan. */
export type By = { cause: Cause; products: Partial<Record<Product, ChangePlan>>; lock?: Partial<Record<Product, LockResource>> };
export type Conflict = { resource: string; scopeId: string; used: number; limit: number };

/** What the change would cost and what stands against it. Nothing is written. Errors: as for the change itself, but conflicts. */
export async function previewPlanChange(db: Db, change: Change): Promise<z.input<typeof changePreviewSchema>> {
  const row = await findSubscription(db, change, change.subscriptionId);
  if (!row) throw notFound('Subscription');
  const target = await targetOf(db, row, change.plan);
  const before = await projectStatement(db, row.orgId);
  const after = await projectStatement(db, row.orgId, { plan: await pricedPlan(db, row.product, change.plan), subscriptionId: row.id });
  const own = ({ statement }: typeof before) => viewLines(statement.lines.filter((line) => line.subscriptionId === row.id));
  return {
    linesBefore: own(before), linesAfter: own(after), differenceMinor: Number(after.statement.totalMinor - before.statement.totalMinor),
    conflicts: await conflictsOf(db, row, target),
  };
}

/**
 * The subscription has the plan pending and its product is at work on it; dns has it at once. Errors: `not_found`;
 * `invalid_state` (canceled, in transition); `validation_error` (unknown, `trial`, the present one); 402 as for a new
 * resource, `plan_limit_reached` with `conflicts`.
 */
export async function acceptPlanChange(
  tx: Tx, change: Change, by: By,
): Promise<{ before: SubscriptionRow; operation: OperationRow }> {
  const found = await findSubscription(tx, change, change.subscriptionId);
  if (!found) throw notFound('Subscription');
  await by.lock?.[found.product]?.(tx, found.resourceId);
  const before = await lockSubscription(tx, found.resourceId);
  const row = before?.id === found.id ? before : { ...found, status: 'canceled' as const };
  const target = await targetOf(tx, row, change.plan);
  await requireRoom(tx, row, target);
  await setPendingPlan(tx, row.id, { plan: target.code, version: target.version });
  const operation = row.product === 'dns' ? await switchDns(tx, row, change.projectId, by.cause) : await handOver(tx, row, target.code, by);
  return { before: row, operation };
}

/** The version to change to. Errors: `invalid_state`, `validation_error`. */
async function targetOf(db: Db, row: SubscriptionRow, plan: string): Promise<PlanRow> {
  if (row.status === 'canceled') throw new AppError('invalid_state', 'This subscription has ended. Only a live one can change its plan.', { status: row.status });
  if (row.pendingPlan) throw new AppError('invalid_state', `A change to the ${row.pendingPlan} plan is under way. Wait for its end.`, { status: row.status, pendingPlan: row.pendingPlan });
  const target = plan === 'trial' ? null : await findActivePlan(db, row.product, plan);
  if (!target) throw invalid([{ path: 'plan', message: `${row.product} has no plan ${plan} to change to` }]);
  if (target.code === row.plan && target.version === row.planVersion) throw invalid([{ path: 'plan', message: `the plan is ${plan} already` }]);
  return target;
}

/** Counts and, where it becomes dearer, the checks of a new resource. */
async function requireRoom(tx: Tx, row: SubscriptionRow, target: PlanRow): Promise<void> {
  const conflicts = await conflictsOf(tx, row, target);
  const [first] = conflicts;
  if (first) {
    throw new AppError('plan_limit_reached', `The ${target.code} plan is too small for what is in use. Delete some of it first.`,
      { resource: first.resource, limit: first.limit, used: first.used, upgradeTo: null, conflicts });
  }
  const { orgId, projectId, product } = row;
  const resource = `${product}.services`;
  const n = isPerPlan(resource) && row.plan !== target.code ? 1 : 0;
  const monthlyPrice = (await readPricedPlans(tx, orgId)).get(planKey(product, row.plan, row.planVersion))?.monthlyPrice ?? '0';
  await reserve(tx, { orgId, projectId, product, plan: target.code, resource, n, replaces: { subscriptionId: row.id, monthlyPrice } });
}

/** Counts that would not fit the target plan. */
async function conflictsOf(db: Db, row: SubscriptionRow, target: PlanRow): Promise<Conflict[]> {
  const counters = await listCounters(db, row.orgId, row.projectId);
  const resource = `${row.product}.services`;
  if (isPerPlan(resource)) {
    const limit = row.plan === target.code ? undefined : target.limits[resource];
    const counter = counterName(resource, target.code);
    const used = counters.find(({ scopeId, resource: name }) => scopeId === row.projectId && name === counter)?.used ?? 0;
    return limit !== undefined && used + 1 > limit && row.projectId !== null ? [{ resource: counter, scopeId: row.projectId, used, limit }] : [];
  }
  return counters.filter(({ scopeId, resource: name }) => name.startsWith(`${row.product}.`) && (row.product === 'dns' || scopeId === row.resourceId))
    .flatMap(({ scopeId, resource: name, used }) => {
      const limit = target.limits[name];
      return limit !== undefined && used > limit ? [{ resource: name, scopeId, used, limit }] : [];
    });
}

/** The organisation's dns plan is read where it is asked for, so it is in force at once. */
async function switchDns(tx: Tx, row: SubscriptionRow, projectId: Id<'prj'> | null, cause: Cause): Promise<OperationRow> {
  await switchPlan(tx, row.resourceId, await databaseNow(tx));
  const opened = await openOperation(tx, {
    orgId: row.orgId, projectId, kind: 'dns.change_plan', resourceId: row.resourceId, summary: 'Change the dns plan', requestId: cause.requestId,
  });
  await settleOperation(tx, opened.id, 'succeeded');
  return await getOperation(tx, opened.id) ?? opened;
}

function handOver(tx: Tx, row: SubscriptionRow, plan: string, { cause, products }: By): Promise<OperationRow> {
  const changePlan = products[row.product];
  if (!changePlan) throw new AppError('invalid_state', `The plan of a ${row.product} service cannot be changed here. Create a new service on the ${plan} plan.`);
  return changePlan(tx, { resourceId: row.resourceId, plan, cause });
}
