import { rows } from '../../../src/db/client';
import { inTransaction } from '../../../src/db/transaction';
import { newId } from '../../../src/core/ids';
import { openSubscription } from '../../../src/billing/service';
import { subscriptionSchema } from '../../../src/billing/schemas';
import { z } from 'zod';
import { makeUsable, openPostgres } from '../../support/billing';
import { withBillingApi, type Answer } from '../../support/billing-api';

const api = withBillingApi();
const list = ({ body }: Answer) => z.object({ subscriptions: z.array(subscriptionSchema), hasMore: z.boolean(), nextCursor: z.string().nullable() }).parse(body);
const one = ({ body }: Answer) => z.object({ subscription: subscriptionSchema }).parse(body).subscription;
const mailOf = async (plan: string) => {
  const { orgId, projectId } = api.tenant;
  return inTransaction(api.database, (tx) => openSubscription(tx, { orgId, projectId, product: 'mail', resourceId: newId('mls'), plan }));
};

describe('listSubscriptions', () => {
  test('a project sees its own and the organisation\'s dns, the organisation sees all', async () => {
    const of = await api.newTenant();
    const mine = await openPostgres(api.database, of, 'starter');
    const elsewhere = await openPostgres(api.database, { ...of, projectId: newId('prj') }, 'starter');
    const inProject = list(await api.ask('GET', '/subscriptions', { of }));
    expect(inProject.subscriptions.map(({ product }) => product).toSorted()).toEqual(['dns', 'postgres']);
    expect(inProject.subscriptions.map(({ id }) => id)).toContain(mine.id);
    expect(list(await api.ask('GET', '/subscriptions', { of, under: 'org' })).subscriptions.map(({ id }) => id)).toEqual(expect.arrayContaining([mine.id, elsewhere.id]));
  });

  test('filters hold and pages join without loss', async () => {
    const of = await api.newTenant();
    const opened = [];
    for (let i = 0; i < 5; i++) opened.push((await openPostgres(api.database, of, 'launch')).id);
    expect(list(await api.ask('GET', '/subscriptions?product=dns', { of })).subscriptions).toHaveLength(1);
    expect(list(await api.ask('GET', '/subscriptions?status=canceled', { of })).subscriptions).toHaveLength(0);
    const first = list(await api.ask('GET', '/subscriptions?product=postgres&limit=2', { of }));
    const second = list(await api.ask('GET', `/subscriptions?product=postgres&limit=2&cursor=${first.nextCursor}`, { of }));
    const third = list(await api.ask('GET', `/subscriptions?product=postgres&limit=2&cursor=${second.nextCursor}`, { of }));
    expect([...first.subscriptions, ...second.subscriptions, ...third.subscriptions].map(({ id }) => id)).toEqual(opened.toReversed());
    expect(third).toMatchObject({ hasMore: false, nextCursor: null });
    expect(await api.ask('GET', `/subscriptions?product=dns&cursor=${first.nextCursor}`, { of })).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  });
});

describe('getSubscription', () => {
  test('a subscription shows its plan, its period and what it will cost to the end of it', async () => {
    const { resourceId, id } = await openPostgres(api.database, api.tenant, 'growth');
    const fresh = one(await api.ask('GET', `/subscriptions/${id}`));
    expect(fresh).toMatchObject({ product: 'postgres', plan: 'growth', planVersion: 1, status: 'active', resourceId, startedAt: null, overage: false, pendingPlan: null });
    expect(Date.parse(fresh.currentPeriod.end) - Date.parse(fresh.currentPeriod.start)).toBeGreaterThan(27 * 86_400_000);
    expect(fresh.estimateMinor).toBeGreaterThan(0);
    await makeUsable(api.database, resourceId, new Date());
    const running = one(await api.ask('GET', `/subscriptions/${id}`));
    expect(running.startedAt).not.toBeNull();
    expect(Math.abs(running.estimateMinor - fresh.estimateMinor)).toBeLessThanOrEqual(1);
  });

  test('a trial says when it expires', async () => {
    const { id } = await openPostgres(api.database, api.tenant, 'trial');
    const { status, trialExpiresAt, createdAt, estimateMinor } = one(await api.ask('GET', `/subscriptions/${id}`));
    expect({ status, estimateMinor }).toEqual({ status: 'trialing', estimateMinor: 0 });
    expect(Date.parse(trialExpiresAt ?? '') - Date.parse(createdAt)).toBe(14 * 86_400_000);
  });

  test('a foreign subscription and an absent one are answered alike', async () => {
    const foreign = await openPostgres(api.database, await api.newTenant(), 'starter');
    const answers = await Promise.all([foreign.id, newId('sub'), 'nonsense'].map((id) => api.ask('GET', `/subscriptions/${id}`)));
    for (const { status, body } of answers) expect({ status, ...body, requestId: '' }).toEqual({ status: 404, ok: false, code: 'not_found', message: 'Subscription not found.', requestId: '' });
  });
});

describe('updateSubscription', () => {
  test('overage is switched on and off, audited, and its time is kept', async () => {
    const { id } = await mailOf('growth');
    expect(one(await api.ask('PATCH', `/subscriptions/${id}`, { body: { overage: true }, as: 'admin' })).overage).toBe(true);
    expect(one(await api.ask('PATCH', `/subscriptions/${id}`, { body: { overage: true } })).overage).toBe(true);
    expect(await overageSpans(id)).toEqual([{ open: true }]);
    expect(one(await api.ask('PATCH', `/subscriptions/${id}`, { body: { overage: false } })).overage).toBe(false);
    expect(await overageSpans(id)).toEqual([{ open: false }]);
    const audited = await rows<{ changes: unknown }>(api.database.prisma, `select changes from audit_entry where target_id = $1 and action = 'updateSubscription' order by seq limit 1`, id);
    expect(audited).toEqual([{ changes: [{ field: 'overage', from: false, to: true }] }]);
  });

  test('a plan that prices nothing beyond what it includes cannot have it', async () => {
    const { id } = await mailOf('launch');
    expect(await api.ask('PATCH', `/subscriptions/${id}`, { body: { overage: true } })).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  });

  test('a member may not, and a body without the field is a fault', async () => {
    const { id } = await mailOf('growth');
    expect(await api.ask('PATCH', `/subscriptions/${id}`, { body: { overage: true }, as: 'member' })).toMatchObject({ status: 403, body: { required: 'billing:plans' } });
    expect(await api.ask('PATCH', `/subscriptions/${id}`, { body: {} })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  });

  const overageSpans = (id: string) => rows<{ open: boolean }>(api.database.prisma, `select upper_inf(span) as open from usage_span where subscription_id = $1 and slot = 'overage'`, id);
});
