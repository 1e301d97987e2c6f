import { z } from 'zod';
import { planSchema, quotaSchema } from '../../../src/billing/schemas';
import { openPostgres } from '../../support/billing';
import { withBillingApi, type Answer } from '../../support/billing-api';

const api = withBillingApi();
const plans = ({ body }: Answer) => z.object({ plans: z.array(planSchema) }).parse(body).plans;
const quotas = ({ body }: Answer) => z.object({ quotas: z.array(quotaSchema) }).parse(body).quotas;

describe('listPlans', () => {
  test('the default catalogue has the prices and counts of the contract', async () => {
    const all = plans(await api.ask('GET', '/plans', { as: 'viewer' }));
    expect(Object.fromEntries(all.map((plan) => [plan.id, plan.monthlyPrice]))).toEqual({
      'mail:launch:1': '9', 'mail:growth:1': '49', 'mail:business:1': '249', 'dns:launch:1': '0', 'dns:growth:1': '20', 'dns:business:1': '100',
      'postgres:trial:1': '0', 'postgres:starter:1': '5', 'postgres:launch:1': '19', 'postgres:growth:1': '79', 'postgres:business:1': '299',
    });
    expect(all.filter((plan) => plan.product === 'postgres').map((plan) => plan.limits['postgres.services'])).toEqual([3, 5, 10, 20, 50]);
    expect(all.filter((plan) => plan.product === 'mail').map(({ included, overage }) => [included, overage])).toEqual([
      [{ 'mail.recipients': 10_000 }, null], [{ 'mail.recipients': 100_000 }, { 'mail.recipients': '0.0006' }], [{ 'mail.recipients': 1_000_000 }, { 'mail.recipients': '0.0003' }],
    ]);
  });

  test('a product narrows the list, and an unknown one is a fault', async () => {
    expect(plans(await api.ask('GET', '/plans?product=dns', { under: 'org' })).map(({ code }) => code)).toEqual(['launch', 'growth', 'business']);
    expect(await api.ask('GET', '/plans?product=coffee')).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  });
});

describe('listQuotas', () => {
  test('a project sees every count with its limit, also those it has none of', async () => {
    const of = await api.newTenant();
    await openPostgres(api.database, of, 'starter');
    const found = quotas(await api.ask('GET', '/quotas', { of, as: 'viewer' }));
    const facts = { scopeId: of.projectId, resetAt: null, enforcement: 'hard' };
    expect(found).toHaveLength(7);
    expect(found).toEqual(expect.arrayContaining([
      { ...facts, resource: 'postgres.services.trial', limit: 3, used: 0, code: 'plan_limit_reached' },
      { ...facts, resource: 'postgres.services.starter', limit: 5, used: 1, code: 'plan_limit_reached' },
      { ...facts, resource: 'mail.services', limit: 20, used: 0, code: 'plan_limit_reached' },
      { ...facts, resource: 'dns.zones', limit: 10, used: 0, code: 'quota_exceeded' },
    ]));
  });

  test('the organisation sees the counts of all its projects', async () => {
    const of = await api.newTenant();
    await openPostgres(api.database, of, 'starter');
    expect(quotas(await api.ask('GET', '/quotas', { of, under: 'org' }))).toMatchObject([{ resource: 'postgres.services.starter', scopeId: of.projectId, used: 1, limit: 5 }]);
  });
});
