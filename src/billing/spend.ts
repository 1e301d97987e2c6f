import { AppError, invalid } from '../core/errors';
import { beforeCommit, type Tx } from '../db/transaction';
import { projectStatement, type Supposed } from './invoices';
import { refreshCeilings } from './mail-usage';
import type { PricedPlan } from './rules';
import type { Product } from './schemas';
import { lockSpendLimit } from './store/accounts';
import { findActivePlan } from './store/plans';

/**
 * Refuses what would commit the organisation to more than its spend limit in this period. The account stays locked to
 * the commit, so two that fit alone and not together cannot both pass; what mail may still use of the limit shrinks with it.
 * Errors: `spend_limit_reached`.
 */
export async function requireSpend(
  tx: Tx, { orgId, product, plan, subscriptionId = null }: { orgId: string; product: Product; plan?: string | undefined; subscriptionId?: string | null },
): Promise<void> {
  const limit = await lockSpendLimit(tx, orgId);
  if (limit === null || plan === undefined) return;
  const supposed: Supposed = { plan: await pricedPlan(tx, product, plan), subscriptionId };
  const after = await projectStatement(tx, orgId, supposed);
  if (after.statement.totalMinor <= limit) return beforeCommit(tx, ceilingRank, () => refreshCeilings(tx, orgId));
  const before = await projectStatement(tx, orgId);
  throw new AppError('spend_limit_reached', 'This would exceed the spend limit of the organisation. An owner can raise it.', {
    resource: 'billing.spend', limit: Number(limit), used: Number(before.statement.totalMinor), resetAt: after.period.end.toISOString(), upgradeTo: null,
  });
}

/** Before the audit's chain, which every writer needs. */
const ceilingRank = 5;

/** The version on sale. Errors: `validation_error` when there is none. */
export async function pricedPlan(tx: Parameters<typeof findActivePlan>[0], product: Product, code: string): Promise<PricedPlan> {
  const plan = await findActivePlan(tx, product, code);
  if (!plan || plan.code === 'none') throw invalid([{ path: 'plan', message: `the plan ${code} is not offered` }]);
  return plan;
}
