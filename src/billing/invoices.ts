import type { Db } from '../db/client';
import { composeStatement, earlier, withCounted, type BilledSpan, type Period, type PricedPlan, type Statement } from './rules';
import { databaseNow, ensurePeriod, type PeriodRow } from './store/accounts';
import { planKey, readBilled, readPricedPlans, readTerms } from './store/invoices';
import { readCounted } from './store/mail-usage';
import { listLive, type SubscriptionRow } from './store/subscriptions';

/** What a period costs, and by which facts that was found. */
export type Costs = { period: PeriodRow; currency: string; asOf: Date; statement: Statement };

/** The invoice of the period that `at` falls into, with what was known at `asOf`; the close calls the same function at the cutoff. */
export async function statementAt(db: Db, orgId: string, at: Date, asOf: Date): Promise<Costs> {
  const period = await ensurePeriod(db, orgId, at);
  const { spans, uses } = await readBilled(db, orgId, period, asOf);
  const terms = await readTerms(db, orgId, period.start);
  return { period, currency: terms.currency, asOf, statement: composeStatement(boundsOf(period), spans, uses, terms) };
}

/** The invoice of the running period as it stands now. */
export async function previewStatement(db: Db, orgId: string): Promise<Costs> {
  const now = await databaseNow(db);
  return statementAt(db, orgId, now, now);
}

/** A plan somebody thinks of taking: for a new resource, or in place of what a subscription has. */
export type Supposed = { plan: PricedPlan; subscriptionId: string | null };

/** A projection with what it was made of. */
export type Projection = Costs & { bounds: Period; spans: BilledSpan[]; taxPercent: string };

/**
 * The running period as it will end if everything goes on: running plans to its end, what is about to begin or to change
 * from now on, use as it stands, also what no event has been stored of yet. `supposed` is added to that.
 */
export async function projectStatement(db: Db, orgId: string, supposed: Supposed | null = null): Promise<Projection> {
  const now = await databaseNow(db);
  const period = await ensurePeriod(db, orgId, now);
  const { spans, uses } = await readBilled(db, orgId, period, now);
  const bounds = boundsOf(period);
  const live = await listLive(db, orgId);
  const plans = await readPricedPlans(db, orgId);
  const rest = { from: earlier(BigInt(now.getTime()), bounds.end), to: bounds.end };
  const ahead = live.flatMap((row) => spanAhead(row, plans, rest, supposed));
  const fresh = supposed && supposed.subscriptionId === null ? [{ subscriptionId: '', projectId: null, resourceId: '', plan: supposed.plan, ...rest }] : [];
  const terms = await readTerms(db, orgId, period.start);
  const all = [...spans, ...ahead, ...fresh];
  const statement = composeStatement(bounds, all, withCounted(uses, await readCounted(db, orgId, period)), terms);
  return { period, currency: terms.currency, asOf: now, statement, bounds, spans: all, taxPercent: terms.taxPercent };
}

/** The rest of the period on the plan that will then be in force. */
function spanAhead(row: SubscriptionRow, plans: ReadonlyMap<string, PricedPlan>, rest: { from: bigint; to: bigint }, supposed: Supposed | null): BilledSpan[] {
  const [code, version] = row.pendingPlan !== null && row.pendingVersion !== null ? [row.pendingPlan, row.pendingVersion] : [row.plan, row.planVersion];
  const plan = supposed?.subscriptionId === row.id ? supposed.plan : plans.get(planKey(row.product, code, version));
  return plan ? [{ subscriptionId: row.id, projectId: row.projectId, resourceId: row.resourceId, plan, ...rest }] : [];
}

export function boundsOf({ key, start, end }: PeriodRow): Period {
  return { key, start: BigInt(start.getTime()), end: BigInt(end.getTime()) };
}

/** What each subscription will have cost by the end of the running period, before tax. */
export function estimatesOf({ statement }: Costs): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const { subscriptionId, amountMinor } of statement.lines) {
    if (subscriptionId !== null) sums.set(subscriptionId, (sums.get(subscriptionId) ?? 0n) + amountMinor);
  }
  return sums;
}
