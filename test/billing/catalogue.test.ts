import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureCatalogue, readCatalogue } from '../../src/billing/catalogue';
import { defaultCatalogue } from '../../src/billing/default-catalogue';
import { limit, limits, openSubscription } from '../../src/billing/service';
import { newId } from '../../src/core/ids';
import { rows } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';
import { planLimits } from '../../src/postgres/rules';
import { billingDefaults } from '../support/billing-defaults';
import { withDatabase } from '../support/database';
import { newTenant, openPostgres } from '../support/billing';

const given = withDatabase();
const files: string[] = [];
const planFile = async (plans: unknown): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-plans-'));
  files.push(dir);
  await writeFile(join(dir, 'plans.json'), JSON.stringify(plans));
  return join(dir, 'plans.json');
};
const load = async (plans: unknown) => ensureCatalogue(given.database, { ...billingDefaults, BILLING_PLANS_FILE: await planFile(plans) });
const versions = () => rows<{ name: string; version: number; active: boolean; price: string }>(given.database.prisma, `
  select product || ':' || code as name, version, active_to is null as active, trim_scale(monthly_price)::text as price from plan order by 1, 2`);
const priced = (monthlyPrice: string) => defaultCatalogue.map((plan) => (plan.product === 'postgres' && plan.code === 'starter' ? { ...plan, monthlyPrice } : plan));

afterEach(() => ensureCatalogue(given.database, billingDefaults));
afterAll(() => Promise.all(files.map((dir) => rm(dir, { recursive: true }))));

test('loading the same catalogue again, also written otherwise, changes nothing', async () => {
  const before = await versions();
  await Promise.all([ensureCatalogue(given.database, billingDefaults), load(priced('5.00'))]);
  expect(await versions()).toEqual(before);
});

test('a changed plan is a new version, made once by processes that start together; who runs on the old one keeps it', async () => {
  const tenant = await newTenant(given.database);
  const old = await openPostgres(given.database, tenant, 'starter');
  const cheap = defaultCatalogue.map((plan) => (plan.product === 'postgres' && plan.code === 'starter' ? { ...plan, limits: { ...plan.limits, 'postgres.connections': 7 } } : plan));
  await Promise.all(Array.from({ length: 5 }, () => load(cheap)));
  const starters = (await versions()).filter(({ name }) => name === 'postgres:starter');
  expect(starters.filter(({ active }) => active)).toHaveLength(1);
  expect(starters).toHaveLength(old.planVersion + 1);
  const { prisma } = given.database;
  expect(await limit(prisma, { orgId: tenant.orgId, resourceId: old.resourceId }, 'postgres.connections')).toBe(20);
  expect(await limit(prisma, { orgId: tenant.orgId, plan: 'starter' }, 'postgres.connections')).toBe(7);
  const fresh = await openPostgres(given.database, tenant, 'starter');
  expect(fresh.planVersion).toBe(old.planVersion + 1);
  expect(await limit(prisma, { orgId: tenant.orgId, resourceId: fresh.resourceId }, 'postgres.connections')).toBe(7);
});

test('a plan that is gone is no longer sold, and its subscribers stay on it', async () => {
  const tenant = await newTenant(given.database);
  const { resourceId } = await openPostgres(given.database, tenant, 'growth');
  await load(defaultCatalogue.filter((plan) => !(plan.product === 'postgres' && plan.code === 'growth')));
  await expect(openPostgres(given.database, tenant, 'growth')).rejects.toMatchObject({ code: 'validation_error' });
  expect(await limit(given.database.prisma, { orgId: tenant.orgId, resourceId }, 'postgres.connections')).toBe(120);
});

test('a bad file is refused with every fault, and nothing is loaded', async () => {
  const before = await versions();
  const faulty = [{ product: 'postgres', code: 'starter', displayName: '', monthlyPrice: '1e3', limits: { 'postgres.services': -1 } }, ...defaultCatalogue, ...defaultCatalogue.slice(0, 1)];
  await expect(load(faulty)).rejects.toThrow(/0\.displayName[\s\S]*0\.monthlyPrice[\s\S]*0\.limits/);
  await expect(load([...defaultCatalogue, ...defaultCatalogue.slice(0, 1)])).rejects.toThrow('mail:launch stands twice');
  await expect(load(defaultCatalogue.filter((plan) => plan.product !== 'dns'))).rejects.toThrow('dns:launch is missing');
  expect(await versions()).toEqual(before);
});

test('the limits sold for Postgres are those its instances are given', async () => {
  for (const [code, expected] of Object.entries(planLimits)) {
    const sold = await limits(given.database.prisma, { orgId: newId('org'), plan: code }, 'postgres');
    const mebibyte = 1024 ** 2;
    expect({
      storageBytes: sold['postgres.storage_bytes'], connections: sold['postgres.connections'], sharedBuffersMb: (sold['postgres.shared_buffers_bytes'] ?? 0) / mebibyte,
      workMemMb: (sold['postgres.work_mem_bytes'] ?? 0) / mebibyte, maxWalSizeMb: (sold['postgres.max_wal_size_bytes'] ?? 0) / mebibyte,
      tempFileLimitMb: (sold['postgres.temp_file_bytes'] ?? 0) / mebibyte, statementTimeoutSeconds: sold['postgres.statement_timeout_seconds'] ?? 0,
      idleStopMinutes: sold['postgres.idle_stop_seconds'] === undefined ? null : sold['postgres.idle_stop_seconds'] / 60,
    }).toMatchObject(Object.fromEntries(Object.entries(expected).filter(([key]) => key !== 'plan')));
  }
});

test('dns and the gateway follow the organisation\'s plan, and its column none without one', async () => {
  const orgId = newId('org');
  const zones = () => limit(given.database.prisma, { orgId }, 'dns.zones');
  expect([await zones(), await limit(given.database.prisma, { orgId }, 'gateway.matches_leaves')]).toEqual([3, 0]);
  await inTransaction(given.database, (tx) => openSubscription(tx, { orgId, projectId: null, product: 'dns', resourceId: orgId, plan: 'launch' }));
  expect([await zones(), await limit(given.database.prisma, { orgId }, 'gateway.matches_leaves')]).toEqual([10, 20]);
});

test('the default catalogue is what its file would be', async () => {
  expect(await readCatalogue(await planFile(defaultCatalogue))).toEqual(await readCatalogue(undefined));
});
