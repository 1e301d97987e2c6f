import fc from 'fast-check';
import { closeSubscription, openSubscription, startPlanTime, switchPlan } from '../../src/billing/service';
import { findActivePlan } from '../../src/billing/store/plans';
import { lockSubscription, setPendingPlan } from '../../src/billing/store/subscriptions';
import { newId } from '../../src/core/ids';
import { execute, rows } from '../../src/db/client';
import { violates } from '../../src/db/errors';
import { inTransaction } from '../../src/db/transaction';
import { newTenant, type BilledTenant } from '../support/billing';
import { withDatabase } from '../support/database';

const given = withDatabase();
const day = 86_400_000;

type Step = { kind: 'open' | 'start' | 'ask' | 'switch' | 'close'; plan: string; waitMs: number };
const step = fc.record<Step>({
  kind: fc.constantFrom('open', 'start', 'ask', 'switch', 'close'), plan: fc.constantFrom('starter', 'launch', 'growth'),
  waitMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: day })),
});

function play(tenant: BilledTenant, resourceId: string, { kind, plan }: Step, at: Date): Promise<unknown> {
  return inTransaction(given.database, async (tx) => {
    if (kind === 'open') return openSubscription(tx, { ...tenant, product: 'postgres', resourceId, plan });
    if (kind === 'start') return startPlanTime(tx, resourceId, at);
    if (kind === 'switch') return switchPlan(tx, resourceId, at);
    if (kind === 'close') return closeSubscription(tx, resourceId, at);
    const row = await lockSubscription(tx, resourceId);
    const target = await findActivePlan(tx, 'postgres', plan);
    return row && target && setPendingPlan(tx, row.id, { plan, version: target.version });
  });
}

type Model = { live: boolean; plan: string; pending: string | null; since: number | null; paidMs: Record<string, number> };

function follow(model: Model, { kind, plan }: Step, at: number): Model {
  const paid = { ...model.paidMs, ...(model.since === null ? {} : { [model.plan]: (model.paidMs[model.plan] ?? 0) + at - model.since }) };
  if (kind === 'open') return model.live ? model : { ...model, live: true, plan, pending: null, since: null };
  if (!model.live) return model;
  if (kind === 'start') return { ...model, since: model.since ?? at };
  if (kind === 'ask') return { ...model, pending: plan };
  if (kind === 'close') return { ...model, live: false, since: null, pending: null, paidMs: paid };
  return model.pending === null ? model : { ...model, plan: model.pending, pending: null, since: model.since === null ? null : at, paidMs: paid };
}

const paidMs = async (resourceId: string, until: Date) => Object.fromEntries((await rows<{ plan: string; ms: number }>(given.database.prisma, `
  select plan, sum(extract(epoch from coalesce(upper(span), $2::timestamptz) - lower(span)) * 1000)::float8 as ms from usage_span
  where resource_id = $1 and slot = 'plan' group by plan`, resourceId, until)).map(({ plan, ms }) => [plan, ms]));
const overlaps = async (resourceId: string) => (await rows<{ n: number }>(given.database.prisma,
  'select count(*)::int as n from usage_span a join usage_span b on a.id < b.id and a.resource_id = b.resource_id and a.slot = b.slot and a.span && b.span where a.resource_id = $1', resourceId))[0]?.n;

test('whatever happens to a resource, the seconds paid for are those of the model', async () => {
  const tenant = await newTenant(given.database);
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
    const resourceId = newId('pg');
    let at = Date.now() - 60 * day;
    let model: Model = { live: false, plan: '', pending: null, since: null, paidMs: {} };
    for (const one of steps) {
      at += one.waitMs;
      await play(tenant, resourceId, one, new Date(at)).catch((error: unknown) => {
        if (!violates(error, 'subscription_live')) throw error;
      });
      model = follow(model, one, at);
    }
    const until = at + day;
    const rest = model.since === null ? {} : { [model.plan]: (model.paidMs[model.plan] ?? 0) + until - model.since };
    const expected = Object.fromEntries(Object.entries({ ...model.paidMs, ...rest }).filter(([, ms]) => ms > 0));
    expect(await paidMs(resourceId, new Date(until))).toEqual(expected);
  }), { numRuns: 40 });
}, 60_000);

test('opened, started, switched, closed and restored at once: no second is paid twice and nothing but a second opening is refused', async () => {
  const tenant = await newTenant(given.database);
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 16 }), async (steps) => {
    const resourceId = newId('pg');
    const start = Date.now() - 60 * day;
    const first: Step = { kind: 'open', plan: 'starter', waitMs: 0 };
    const outcomes = await Promise.allSettled([first, ...steps].map((one) => play(tenant, resourceId, one, new Date(start + one.waitMs))));
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(violates(outcome.reason, 'subscription_live')).toBe(true);
    expect(await overlaps(resourceId)).toBe(0);
    const open = await rows(given.database.prisma, `select 1 from usage_span u join subscription s on s.id = u.subscription_id where u.resource_id = $1 and upper_inf(u.span) and s.status = 'canceled'`, resourceId);
    expect(open).toEqual([]);
  }), { numRuns: 25 });
}, 60_000);

test('dns is paid for from the creation of the organisation, a Postgres service from its first use', async () => {
  const tenant = await newTenant(given.database);
  expect(await rows(given.database.prisma, `select product, upper_inf(span) as open from usage_span where org_id = $1`, tenant.orgId)).toEqual([{ product: 'dns', open: true }]);
});

test('a deletion is never held up: without a subscription, before the first use, in the same millisecond, with a clock that runs behind', async () => {
  const tenant = await newTenant(given.database);
  const close = (resourceId: string, at: Date) => inTransaction(given.database, (tx) => closeSubscription(tx, resourceId, at));
  expect(await close(newId('pg'), new Date())).toBe(false);
  const now = new Date();
  for (const closedAt of [now, new Date(now.getTime() - day)]) {
    const resourceId = newId('pg');
    await play(tenant, resourceId, { kind: 'open', plan: 'starter', waitMs: 0 }, now);
    await inTransaction(given.database, (tx) => startPlanTime(tx, resourceId, now));
    expect(await close(resourceId, closedAt)).toBe(true);
    expect(await close(resourceId, closedAt)).toBe(false);
    expect(await paidMs(resourceId, now)).toEqual({});
  }
});

test('a start that comes twice, or after the deletion, pays for nothing more', async () => {
  const tenant = await newTenant(given.database);
  const resourceId = newId('pg');
  const at = new Date(Date.now() - day);
  await play(tenant, resourceId, { kind: 'open', plan: 'starter', waitMs: 0 }, at);
  const start = (moment: Date) => inTransaction(given.database, (tx) => startPlanTime(tx, resourceId, moment));
  expect([await start(at), await start(new Date())]).toEqual([true, false]);
  await inTransaction(given.database, (tx) => closeSubscription(tx, resourceId, new Date(at.getTime() + 1_000)));
  expect(await start(new Date())).toBe(false);
  expect(await paidMs(resourceId, new Date())).toEqual({ starter: 1_000 });
});

test.each([
  ['ledger_entry', `insert into ledger_entry (id, org_id, kind, amount_minor, ref_type, ref_id) values ($1, 'org_x', 'credit', -1, 'test', $1)`, 'amount_minor = 0'],
  ['usage_event', `insert into usage_event (id, org_id, resource_id, metric, source, key, quantity, occurred_at) values ($1, 'org_x', 'mls_x', 'mail.recipients', 'test', $1, 1, now())`, 'quantity = 0'],
])('%s is append-only: the database refuses update, delete and truncate', async (table, insert, change) => {
  const { prisma } = given.database;
  const id = newId('led');
  await execute(prisma, insert, id);
  await expect(execute(prisma, `update ${table} set ${change} where id = $1`, id)).rejects.toThrow('append-only');
  await expect(execute(prisma, `delete from ${table} where id = $1`, id)).rejects.toThrow('append-only');
  await expect(execute(prisma, `truncate ${table}`)).rejects.toThrow('append-only');
});

test('a plan version, an ended span, a stored period and a finalized invoice are immutable', async () => {
  const tenant = await newTenant(given.database);
  const { prisma } = given.database;
  await expect(execute(prisma, `update plan set monthly_price = 1 where product = 'dns'`)).rejects.toThrow('immutable');
  await expect(execute(prisma, `delete from plan where product = 'dns'`)).rejects.toThrow('immutable');
  await inTransaction(given.database, (tx) => closeSubscription(tx, tenant.orgId, new Date(Date.now() + day)));
  await expect(execute(prisma, `update usage_span set span = tstzrange(lower(span), null) where org_id = $1`, tenant.orgId)).rejects.toThrow('immutable');
  await expect(execute(prisma, `delete from usage_span where org_id = $1`, tenant.orgId)).rejects.toThrow('immutable');
  await execute(prisma, `insert into billing_period (org_id, key, start_at, end_at, time_zone) values ($1, '2026-01', now(), now() + interval '1 month', 'UTC')`, tenant.orgId);
  await expect(execute(prisma, `insert into billing_period (org_id, key, start_at, end_at, time_zone) values ($1, '2026-02', now() + interval '1 day', now() + interval '2 months', 'UTC')`, tenant.orgId)).rejects.toThrow('billing_period_no_overlap');
  await expect(execute(prisma, `update billing_period set end_at = now() + interval '1 day' where org_id = $1`, tenant.orgId)).rejects.toThrow('once');
  const id = newId('bil');
  await execute(prisma, `insert into invoice (id, org_id, period_key, period_start, period_end, currency, cutoff_at) values ($1, $2, '2026-01', now(), now() + interval '1 month', 'USD', now())`, id, tenant.orgId);
  await expect(execute(prisma, `update invoice set status = 'finalized', number = $1, finalized_at = now(), subtotal_minor = 5, total_minor = 5 where id = $1`, id)).rejects.toThrow('sum of its lines');
  await execute(prisma, `update invoice set status = 'finalized', number = $1, finalized_at = now() where id = $1`, id);
  await expect(execute(prisma, `update invoice set amount_due_minor = 1 where id = $1`, id)).rejects.toThrow('immutable');
  await expect(execute(prisma, `delete from invoice where id = $1`, id)).rejects.toThrow('immutable');
  await expect(execute(prisma, `insert into invoice_line (invoice_id, number, kind, description, quantity, unit_price, from_at, to_at, amount_minor, basis) values ($1, 1, 'tax', '', '', '', now(), now(), 0, '{}')`, id)).rejects.toThrow('immutable');
  await execute(prisma, `update invoice set status = 'void', voided_at = now() where id = $1`, id);
});
