import { ensureCatalogue } from '../../src/billing/catalogue';
import { AppError } from '../../src/core/errors';
import { newId } from '../../src/core/ids';
import { openSubscription, release, reserve } from '../../src/billing/service';
import { execute, rows } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';
import { newTenant, openPostgres, type BilledTenant } from '../support/billing';
import { billingDefaults } from '../support/billing-defaults';
import { withDatabase } from '../support/database';

const given = withDatabase();
const refusal = async (attempt: Promise<unknown>): Promise<AppError> => {
  const error: unknown = await attempt.then(() => null, (reason: unknown) => reason);
  if (error instanceof AppError) return error;
  throw new Error('A refusal was expected.', { cause: error });
};
const used = async (scopeId: string, resource: string) => {
  const [row] = await rows<{ used: number }>(given.database.prisma, 'select used::int as used from quota_counter where scope_id = $1 and resource = $2', scopeId, resource);
  return row?.used ?? 0;
};
const subscriptionsOf = async ({ projectId }: BilledTenant) => {
  const found = await rows<{ n: number }>(given.database.prisma, 'select count(*)::int as n from subscription where project_id = $1', projectId);
  return found[0]?.n;
};

test('of 100 parallel creates at one below the limit exactly one wins, and the others leave nothing', async () => {
  const tenant = await newTenant(given.database);
  for (let i = 0; i < 4; i++) await openPostgres(given.database, tenant, 'starter');
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => openPostgres(given.database, tenant, 'starter')));
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map((outcome) => outcome.reason);
  expect(refused).toHaveLength(99);
  for (const error of refused) expect(error).toMatchObject({ code: 'plan_limit_reached', facts: { resource: 'postgres.services.starter', limit: 5, used: 5, upgradeTo: 'launch' } });
  expect(await used(tenant.projectId, 'postgres.services.starter')).toBe(5);
  expect(await subscriptionsOf(tenant)).toBe(5);
  const [spans] = await rows<{ n: number }>(given.database.prisma, `select count(*)::int as n from usage_span where org_id = $1 and product = 'postgres'`, tenant.orgId);
  expect(spans?.n).toBe(0);
}, 60_000);

test('a first counter is made once by creates that race for it', async () => {
  const tenant = await newTenant(given.database);
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => openPostgres(given.database, tenant, 'trial')));
  expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(3);
  expect(await used(tenant.projectId, 'postgres.services.trial')).toBe(3);
});

test('each plan of Postgres services is counted by itself, in each project by itself', async () => {
  const tenant = await newTenant(given.database);
  for (let i = 0; i < 3; i++) await openPostgres(given.database, tenant, 'trial');
  expect(await refusal(openPostgres(given.database, tenant, 'trial'))).toMatchObject({ status: 402, facts: { upgradeTo: 'starter' } });
  await openPostgres(given.database, tenant, 'starter');
  await openPostgres(given.database, { ...tenant, projectId: newId('prj') }, 'trial');
});

test('the upgrade a refusal names has room itself', async () => {
  const tenant = await newTenant(given.database);
  for (let i = 0; i < 3; i++) await openPostgres(given.database, tenant, 'trial');
  for (let i = 0; i < 5; i++) await openPostgres(given.database, tenant, 'starter');
  expect((await refusal(openPostgres(given.database, tenant, 'trial'))).facts).toMatchObject({ upgradeTo: 'launch' });
});

test('what is given back can be taken again, and giving back too often never goes below zero', async () => {
  const { orgId, projectId } = await newTenant(given.database);
  const one = { orgId, projectId, product: 'postgres', plan: 'trial', resource: 'postgres.services', n: 1 } as const;
  await inTransaction(given.database, (tx) => reserve(tx, one));
  await inTransaction(given.database, (tx) => release(tx, one));
  await inTransaction(given.database, (tx) => release(tx, one));
  expect(await used(projectId, 'postgres.services.trial')).toBe(0);
});

test('zones are bounded by the plan of the organisation, and by the column none when it has none', async () => {
  const tenant = await newTenant(given.database);
  const zones = (orgId: string, projectId: string, n: number) => inTransaction(given.database, (tx) => reserve(tx, { orgId, projectId, product: 'dns', resource: 'dns.zones', n }));
  await zones(tenant.orgId, tenant.projectId, 10);
  expect(await refusal(zones(tenant.orgId, tenant.projectId, 1))).toMatchObject({ code: 'quota_exceeded', facts: { resource: 'dns.zones', limit: 10, used: 10, upgradeTo: 'growth' } });
  const stranger = newId('org');
  expect(await refusal(zones(stranger, newId('prj'), 4))).toMatchObject({ facts: { limit: 3, used: 0, upgradeTo: 'launch' } });
});

test('a mail domain is bounded by the plan of its own mail service', async () => {
  const { orgId, projectId } = await newTenant(given.database);
  const mailServiceId = newId('mls');
  await inTransaction(given.database, (tx) => openSubscription(tx, { orgId, projectId, product: 'mail', resourceId: mailServiceId, plan: 'launch' }));
  const domains = (n: number) => inTransaction(given.database, (tx) => reserve(tx, { orgId, projectId, product: 'mail', resource: 'mail.domains', scopeId: mailServiceId, n }));
  await domains(3);
  expect(await refusal(domains(1))).toMatchObject({ code: 'plan_limit_reached', facts: { limit: 3, used: 3, upgradeTo: 'growth' } });
});

test('a restricted account is told to pay before anything is counted; free plans stay open', async () => {
  const tenant = await newTenant(given.database);
  await execute(given.database.prisma, `update billing_account set status = 'restricted' where org_id = $1`, tenant.orgId);
  expect(await refusal(openPostgres(given.database, tenant, 'starter'))).toMatchObject({ code: 'payment_required' });
  expect(await used(tenant.projectId, 'postgres.services.starter')).toBe(0);
  await openPostgres(given.database, tenant, 'trial');
});

test('where a payment method is required, a paid plan without one is refused before anything is counted', async () => {
  await ensureCatalogue(given.database, { ...billingDefaults, BILLING_REQUIRE_PAYMENT_METHOD: true });
  const tenant = await newTenant(given.database);
  const refused = await refusal(openPostgres(given.database, tenant, 'starter'));
  await openPostgres(given.database, tenant, 'trial');
  await execute(given.database.prisma, `update billing_account set payment_method_kind = 'card', payment_method_last4 = '4242' where org_id = $1`, tenant.orgId);
  await openPostgres(given.database, tenant, 'starter');
  await ensureCatalogue(given.database, billingDefaults);
  expect(refused).toMatchObject({ code: 'payment_required', facts: { resource: 'postgres.services', upgradeTo: null } });
  expect(await used(tenant.projectId, 'postgres.services.starter')).toBe(1);
});

test('a project whose trials have had 42 days gets no more, even with room in the count', async () => {
  const tenant = await newTenant(given.database);
  await openPostgres(given.database, tenant, 'trial');
  await execute(given.database.prisma, `update subscription set created_at = now() - interval '43 days', trial_expires_at = now() + interval '1 day' where project_id = $1`, tenant.projectId);
  expect(await refusal(openPostgres(given.database, tenant, 'trial'))).toMatchObject({ code: 'trial_already_used', facts: { limit: 42, upgradeTo: 'starter' } });
  await openPostgres(given.database, tenant, 'starter');
});

test('a plan that is not sold is a fault of the request', async () => {
  const tenant = await newTenant(given.database);
  expect(await refusal(openPostgres(given.database, tenant, 'none'))).toMatchObject({ code: 'validation_error' });
});
