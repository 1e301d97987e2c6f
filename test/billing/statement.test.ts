import fc from 'fast-check';
import { previewStatement, projectStatement, statementAt } from '../../src/billing/invoices';
import { closeSubscription, openSubscription, startPlanTime, storeUsage, switchOverage, switchPlan, type UsageFact } from '../../src/billing/service';
import { ensureCatalogue } from '../../src/billing/catalogue';
import { ensurePeriod } from '../../src/billing/store/accounts';
import { findActivePlan } from '../../src/billing/store/plans';
import { setPendingPlan } from '../../src/billing/store/subscriptions';
import { newId } from '../../src/core/ids';
import { execute, rows } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';
import { newTenant, openPostgres } from '../support/billing';
import { billingDefaults } from '../support/billing-defaults';
import { withDatabase } from '../support/database';

const given = withDatabase();
const day = 86_400_000;
const db = () => given.database.prisma;

test('at every cutoff the statement is what the plans cost until then', async () => {
  const offset = fc.integer({ min: 0, max: 40 * day });
  await fc.assert(fc.asyncProperty(fc.array(offset, { minLength: 4, maxLength: 4 }), async (offsets) => {
    const tenant = await newTenant(given.database);
    const period = await ensurePeriod(db(), tenant.orgId, new Date(Date.now() - 40 * day));
    const [start = 0, change = 0, end = 0] = offsets.slice(0, 3).toSorted((a, b) => a - b).map((ms) => period.start.getTime() + ms);
    const asOf = period.start.getTime() + (offsets[3] ?? 0);
    const { resourceId, id } = await openPostgres(given.database, tenant, 'starter');
    const target = await findActivePlan(db(), 'postgres', 'growth');
    await inTransaction(given.database, async (tx) => {
      await startPlanTime(tx, resourceId, new Date(start));
      await setPendingPlan(tx, id, { plan: 'growth', version: target?.version ?? 0 });
      await switchPlan(tx, resourceId, new Date(change));
      await closeSubscription(tx, resourceId, new Date(end));
    });
    const length = BigInt(period.end.getTime() - period.start.getTime());
    const cost = (cents: bigint, from: number, to: number) => {
      const ms = BigInt(Math.max(0, Math.min(to, asOf, period.end.getTime()) - from));
      return (cents * ms * 2n + length) / (length * 2n);
    };
    const { statement } = await statementAt(db(), tenant.orgId, period.start, new Date(asOf));
    expect(statement.totalMinor).toBe(cost(500n, start, change) + cost(7_900n, change, end));
  }), { numRuns: 25 });
}, 60_000);

test('every event twice, in all orders and batches: the same invoice, byte for byte', async () => {
  const amounts = fc.array(fc.integer({ min: 1, max: 900_000 }), { minLength: 1, maxLength: 8 });
  await fc.assert(fc.asyncProperty(amounts, fc.integer({ min: 1, max: 1_000 }), async (quantities, seed) => {
    const texts = await Promise.all([0, seed].map(async (mix) => {
      const { orgId, projectId } = await newTenant(given.database);
      const { id, resourceId, createdAt } = await inTransaction(given.database, (tx) => openSubscription(tx, { orgId, projectId, product: 'mail', resourceId: newId('mls'), plan: 'growth' }));
      await inTransaction(given.database, (tx) => switchOverage(tx, { orgId, projectId }, id, true));
      const period = await ensurePeriod(db(), orgId, createdAt);
      const facts = quantities.map((quantity, i): UsageFact => ({
        source: 'test', key: `mail:${resourceId}:${i}`, metric: 'mail.recipients', orgId, resourceId, quantity: `${quantity}.${i}`, occurredAt: new Date(Math.max(createdAt.getTime() - i, period.start.getTime())),
      }));
      const twice = [...facts, ...facts].map((fact, i) => ({ fact, at: mix === 0 ? i : ((i + 1) * mix) % 17 })).toSorted((a, b) => a.at - b.at).map(({ fact }) => fact);
      const cut = mix % twice.length;
      for (const batch of [twice.slice(0, cut), twice.slice(cut)]) if (batch.length > 0) await inTransaction(given.database, (tx) => storeUsage(tx, batch));
      const { statement } = await statementAt(db(), orgId, createdAt, period.end);
      return JSON.stringify(statement.lines.filter(({ kind }) => kind === 'usage').map(({ quantity, unitPrice, amountMinor, basis }) => ({ quantity, unitPrice, amountMinor: amountMinor.toString(), basis })));
    }));
    expect(texts[0]).toBe(texts[1]);
    expect(texts[0]?.length).toBeGreaterThan(quantities.reduce((sum, quantity) => sum + quantity, 0) > 100_000 ? 10 : 1);
  }), { numRuns: 10 });
}, 60_000);

test('use counts while overage was on at any time of the period, and what arrives after the cutoff does not', async () => {
  const { orgId, projectId } = await newTenant(given.database);
  const { id, resourceId, createdAt } = await inTransaction(given.database, (tx) => openSubscription(tx, { orgId, projectId, product: 'mail', resourceId: newId('mls'), plan: 'growth' }));
  const usageMinor = async (asOf: Date) => (await statementAt(db(), orgId, createdAt, asOf)).statement.lines.filter(({ kind }) => kind === 'usage').map(({ amountMinor }) => amountMinor);
  await inTransaction(given.database, (tx) => storeUsage(tx, [{ source: 'test', key: `k:${resourceId}`, metric: 'mail.recipients', orgId, resourceId, quantity: '150000', occurredAt: createdAt }]));
  const { end } = await ensurePeriod(db(), orgId, createdAt);
  expect(await usageMinor(end)).toEqual([]);
  await inTransaction(given.database, (tx) => switchOverage(tx, { orgId, projectId }, id, true));
  await inTransaction(given.database, (tx) => switchOverage(tx, { orgId, projectId }, id, false));
  expect(await usageMinor(end)).toEqual([3_000n]);
  expect(await usageMinor(new Date(createdAt.getTime() - 1))).toEqual([]);
});

test('tax, what was carried and credits of the books stand in the preview', async () => {
  await ensureCatalogue(given.database, { ...billingDefaults, BILLING_TAX_PERCENT: '19' });
  const tenant = await newTenant(given.database);
  const { resourceId } = await openPostgres(given.database, tenant, 'business');
  await inTransaction(given.database, (tx) => startPlanTime(tx, resourceId, new Date(Date.now() - 400 * day)));
  await execute(db(), `insert into ledger_entry (id, org_id, kind, amount_minor, ref_type, ref_id) values ($1, $2, 'credit', -7, 'test', $1)`, newId('led'), tenant.orgId);
  const { statement } = await projectStatement(db(), tenant.orgId);
  await ensureCatalogue(given.database, billingDefaults);
  expect(statement).toMatchObject({ subtotalMinor: 29_900n, taxMinor: 5_681n, totalMinor: 35_581n, creditMinor: 7n, amountDueMinor: 35_574n });
});

test('what is about to begin counts as committed, the preview shows only what has run', async () => {
  const tenant = await newTenant(given.database);
  await openPostgres(given.database, tenant, 'business');
  expect((await previewStatement(db(), tenant.orgId)).statement.lines).toEqual([]);
  expect((await projectStatement(db(), tenant.orgId)).statement.lines).toMatchObject([{ plan: 'business', kind: 'plan' }]);
  expect(await rows(db(), 'select 1 from invoice')).toEqual([]);
});
