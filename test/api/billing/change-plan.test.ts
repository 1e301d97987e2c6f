import { z } from 'zod';
import { changePreviewSchema, subscriptionSchema } from '../../../src/billing/schemas';
import { abandonPlanChange, closeSubscription, openSubscription, reserve, switchPlan, type ChangePlan } from '../../../src/billing/service';
import { newId } from '../../../src/core/ids';
import { rows } from '../../../src/db/client';
import { inTransaction } from '../../../src/db/transaction';
import { openOperation } from '../../../src/operations/store';
import { operationSchema } from '../../../src/operations/view';
import { makeUsable, openPostgres } from '../../support/billing';
import { withBillingApi, type Answer } from '../../support/billing-api';
import type { Tenant } from '../../support/tenant';

/** As a product does it: its own operation, and a workflow that calls switchPlan at its end. */
const changePostgres: ChangePlan = async (tx, { resourceId, plan, cause }) => {
  const [row] = await rows<{ orgId: Tenant['orgId']; projectId: Tenant['projectId'] }>(tx, `select org_id as "orgId", project_id as "projectId" from subscription where resource_id = $1`, resourceId);
  if (!row) throw new Error('no subscription');
  return openOperation(tx, { ...row, kind: 'postgres.change_plan', resourceId, summary: `Change to ${plan}`, requestId: cause.requestId });
};
const api = withBillingApi({ postgres: changePostgres });
const accepted = ({ body }: Answer) => z.object({ subscription: subscriptionSchema, operation: operationSchema }).parse(body);
const change = (id: string, body: object, of: Tenant) => api.ask('POST', `/subscriptions/${id}/change-plan`, { body, of });
const dnsOf = async (of: Tenant) => {
  const [row] = await rows<{ id: string }>(api.database.prisma, 'select id from subscription where resource_id = $1', of.orgId);
  return row?.id ?? '';
};
const used = async ({ projectId }: Tenant, plan: string) => (await rows<{ used: number }>(api.database.prisma,
  'select used::int as used from quota_counter where scope_id = $1 and resource = $2', projectId, `postgres.services.${plan}`))[0]?.used ?? 0;

describe('changePlan', () => {
  test('dns is on the new plan at once, and the operation says so', async () => {
    const of = await api.newTenant();
    const answer = await change(await dnsOf(of), { plan: 'growth' }, of);
    expect(answer.status).toBe(202);
    const { subscription, operation } = accepted(answer);
    expect(subscription).toMatchObject({ plan: 'growth', pendingPlan: null, status: 'active' });
    expect(operation).toMatchObject({ kind: 'dns.change_plan', state: 'succeeded', resourceId: of.orgId });
    expect(answer.headers.get('location')).toBe(`/v1/api/orgs/${of.orgSlug}/projects/${of.projectSlug}/billing/subscriptions/${subscription.id}`);
    expect(answer.headers.get('link')).toContain(operation.id);
  });

  test('a Postgres service keeps its plan and both counts until its product has switched', async () => {
    const of = await api.newTenant();
    const { id, resourceId } = await openPostgres(api.database, of, 'trial');
    await makeUsable(api.database, resourceId, new Date());
    expect(accepted(await change(id, { plan: 'starter' }, of)).subscription).toMatchObject({ plan: 'trial', pendingPlan: 'starter', status: 'trialing' });
    expect([await used(of, 'trial'), await used(of, 'starter')]).toEqual([1, 1]);
    expect(await change(id, { plan: 'launch' }, of)).toMatchObject({ status: 400, body: { code: 'invalid_state', pendingPlan: 'starter' } });
    expect(await inTransaction(api.database, (tx) => switchPlan(tx, resourceId, new Date()))).toBe(true);
    expect(await inTransaction(api.database, (tx) => switchPlan(tx, resourceId, new Date()))).toBe(false);
    expect([await used(of, 'trial'), await used(of, 'starter')]).toEqual([0, 1]);
    expect((await api.ask('GET', `/subscriptions/${id}`, { of })).body).toMatchObject({ subscription: { plan: 'starter', status: 'active', pendingPlan: null, trialExpiresAt: null } });
  });

  test('a change that comes to nothing costs nothing, and a deletion meanwhile leaves no count', async () => {
    const of = await api.newTenant();
    const { id, resourceId } = await openPostgres(api.database, of, 'starter');
    await change(id, { plan: 'launch' }, of);
    await inTransaction(api.database, (tx) => abandonPlanChange(tx, resourceId));
    expect([await used(of, 'starter'), await used(of, 'launch')]).toEqual([1, 0]);
    await change(id, { plan: 'growth' }, of);
    await inTransaction(api.database, (tx) => closeSubscription(tx, resourceId, new Date()));
    expect(await used(of, 'growth')).toBe(0);
    expect(await change(id, { plan: 'launch' }, of)).toMatchObject({ status: 400, body: { code: 'invalid_state', status: 'canceled' } });
  });

  test('dryRun shows the difference and changes nothing', async () => {
    const of = await api.newTenant();
    const { id } = await openPostgres(api.database, of, 'starter');
    const answer = await change(id, { plan: 'business', dryRun: true }, of);
    expect(answer.status).toBe(200);
    const { preview } = z.object({ preview: changePreviewSchema }).parse(answer.body);
    expect(preview.linesBefore).toMatchObject([{ plan: 'starter', kind: 'plan' }]);
    expect(preview.linesAfter).toMatchObject([{ plan: 'business', kind: 'plan' }]);
    expect(preview.differenceMinor).toBe((preview.linesAfter[0]?.amountMinor ?? 0) - (preview.linesBefore[0]?.amountMinor ?? 0));
    expect((await api.ask('GET', `/subscriptions/${id}`, { of })).body).toMatchObject({ subscription: { plan: 'starter', pendingPlan: null } });
    expect(await used(of, 'business')).toBe(0);
  });

  test('a plan too small for what is in use names the conflicts', async () => {
    const of = await api.newTenant();
    const id = await dnsOf(of);
    await change(id, { plan: 'growth' }, of);
    await inTransaction(api.database, (tx) => reserve(tx, { orgId: of.orgId, projectId: of.projectId, product: 'dns', resource: 'dns.zones', n: 11 }));
    const conflicts = [{ resource: 'dns.zones', scopeId: of.projectId, used: 11, limit: 10 }];
    expect(await change(id, { plan: 'launch' }, of)).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', conflicts } });
    expect(await change(id, { plan: 'launch', dryRun: true }, of)).toMatchObject({ status: 200, body: { preview: { conflicts } } });
  });

  test('the trial, an unknown plan and the present plan are faults of the request', async () => {
    const of = await api.newTenant();
    const { id } = await openPostgres(api.database, of, 'starter');
    for (const plan of ['trial', 'starter', 'gigantic']) expect(await change(id, { plan }, of)).toMatchObject({ status: 400, body: { code: 'validation_error' } });
    expect(await change(await dnsOf(of), { plan: 'starter' }, of)).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  });

  test('a product that cannot change plans says so, and nothing is pending', async () => {
    const of = await api.newTenant();
    const { id } = await inTransaction(api.database, (tx) => openSubscription(tx, { orgId: of.orgId, projectId: of.projectId, product: 'mail', resourceId: newId('mls'), plan: 'launch' }));
    expect(await change(id, { plan: 'growth' }, of)).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    expect((await api.ask('GET', `/subscriptions/${id}`, { of })).body).toMatchObject({ subscription: { plan: 'launch', pendingPlan: null } });
  });

  test('an upgrade beyond the spend limit is refused and leaves nothing', async () => {
    const of = await api.newTenant();
    const { id } = await openPostgres(api.database, of, 'starter');
    await api.ask('PUT', '/spend-limit', { body: { limitMinor: 100 }, of });
    expect(await change(id, { plan: 'business' }, of)).toMatchObject({ status: 402, body: { code: 'spend_limit_reached', limit: 100 } });
    expect(await used(of, 'business')).toBe(0);
    expect((await api.ask('GET', `/subscriptions/${id}`, { of })).body).toMatchObject({ subscription: { pendingPlan: null } });
  });
});
