import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { projectStatement } from './invoices';
import { includedOf, leftBeforeTax, shareOf } from './rules';
import { lockSpendLimit } from './store/accounts';
import { followPlans, listLimited, lockCollection, readCounters, readGrowth, recipientsMetric, writeCeilings, type Counter, type Growth, type GrowthKey } from './store/mail-usage';
import { insertUsage, rebuildBuckets, type UsageFact } from './store/usage';

const pageMax = 200;

/**
 * What mail has accepted since the last collection is stored as usage of closed hours, of every service and period of the
 * last 34 days (contract billing.md §1 Metrics). A missed run is made good by the next one, a repeated one finds nothing.
 */
export async function collectMailUsage(database: Pick<Database, 'pool'>, beat: () => void = () => undefined): Promise<{ stored: number }> {
  let stored = 0;
  for (let after: GrowthKey | null = null; ;) {
    const page: Growth[] = await inTransaction(database, async (tx) => {
      await lockCollection(tx);
      const grown = await readGrowth(tx, after, pageMax);
      if (grown.length > 0) stored += await store(tx, grown.map(factOf));
      return grown;
    });
    beat();
    after = page.at(-1) ?? null;
    if (page.length < pageMax) return { stored };
  }
}

async function store(tx: Tx, facts: readonly UsageFact[]): Promise<number> {
  const { stored } = await insertUsage(tx, facts);
  if (stored > 0) await rebuildBuckets(tx, facts);
  return stored;
}

/** Keys say when: `mail:<mls>:<hour>`, and `mail:<mls>:<month>:end` for what was left over at the end. */
function factOf({ orgId, resourceId, periodKey, at, final, quantity }: Growth): UsageFact {
  const instant = at.toISOString();
  const hour = instant.endsWith(':00:00.000Z') ? instant.slice(0, 13) : instant.slice(0, 16); // a month may begin within an hour
  return { source: 'mail', key: `mail:${resourceId}:${final ? `${periodKey}:end` : hour}`, metric: recipientsMetric, orgId, resourceId, quantity, occurredAt: at };
}

/**
 * What the organisation's mail services may come to in the running period follows their plans, overage and the spend limit
 * (contract billing.md §4 Overage): together they cannot pass the limit, whatever is sent before the next refresh.
 */
export async function refreshCeilings(tx: Tx, orgId: string): Promise<void> {
  const limit = await lockSpendLimit(tx, orgId);
  await followPlans(tx, { orgId });
  if (limit === null) return;
  const payers = (await readCounters(tx, orgId, 'lock')).flatMap((counter) => (counter.overage && counter.unitPrice !== null ? [{ ...counter, unitPrice: counter.unitPrice }] : []));
  if (payers.length === 0) return;
  const costs = await projectStatement(tx, orgId);
  const left = leftBeforeTax(limit, costs.statement.subtotalMinor, costs.taxPercent);
  await writeCeilings(tx, payers.map((counter) => ({ resourceId: counter.resourceId, reason: 'spend_limit', ceiling: String(ceilingOf(counter, left, { costs, sharers: payers.length })) })));
}

/** What is free is free also at the limit; beyond it each has its share of what is left. */
function ceilingOf(counter: Counter & { unitPrice: string }, leftMinor: bigint, { costs, sharers }: { costs: Awaited<ReturnType<typeof projectStatement>>; sharers: number }): bigint {
  const used = BigInt(counter.used);
  const included = includedOf(costs.bounds, costs.spans, { subscriptionId: counter.subscriptionId, metric: recipientsMetric });
  return (used > included ? used : included) + shareOf({ leftMinor, sharers: BigInt(sharers), unitPrice: counter.unitPrice, currency: costs.currency });
}

/** Ceilings of every running period are up to date; how many organisations have a spend limit that bounds mail. */
export async function refreshAllCeilings(database: Pick<Database, 'pool' | 'prisma'>, beat: () => void = () => undefined): Promise<{ limited: number }> {
  await followPlans(database.prisma, null);
  let limited = 0;
  for (let after: string | null = null; ;) {
    const page: string[] = await listLimited(database.prisma, after, pageMax);
    for (const orgId of page) {
      await inTransaction(database, (tx) => refreshCeilings(tx, orgId));
      beat();
    }
    limited += page.length;
    after = page.at(-1) ?? null;
    if (page.length < pageMax) return { limited };
  }
}
