import { newId } from '../../src/core/ids';
import { withApi } from '../support/api';
import { createTenant, type Tenant } from '../support/tenant';
import type { Role } from '../../src/core/caller';

const api = withApi();
let tenant: Tenant;
beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
});
const ask = (method: string, path: string, { as = 'owner', of = tenant, json, headers = {} }: { as?: Role; of?: Tenant; json?: unknown; headers?: Record<string, string> } = {}) =>
  api.ask(method, `/v1/api/orgs/${of.orgSlug}/projects/${of.projectSlug}/mail${path}`, { headers: { cookie: of.cookies[as], ...headers }, ...(json === undefined ? {} : { json }) });
const create = (json: unknown = { displayName: ' Receipts ', plan: 'launch' }) => ask('POST', '/services', { json });
const query = async (sql: string, ...values: unknown[]) => (await api.deps.db.pool.query(sql, values)).rows;

test('createMailService answers the service with its limits, subscribed and counted', async () => {
  const { status, body } = await create();
  expect(status).toBe(200);
  expect(body).toMatchObject({
    ok: true, mailServiceId: body.service.id,
    service: {
      id: expect.stringMatching(/^mls_/), mailServiceId: body.service.id, displayName: 'Receipts', plan: 'launch', status: 'active', suspendedReason: null, transport: 'capture',
      limits: { recipientsPerMonth: 10_000, sendsPerSecond: 10, domains: 3, apiKeys: 5, webhooks: 3, maxRecipients: 100, maxMessageBytes: 10_485_760 },
      usage: { recipients: 0 }, counts: { domains: 0, apiKeys: 0, webhooks: 0 },
    },
  });
  expect(Date.parse(body.service.usage.periodStart)).toBeLessThanOrEqual(Date.parse(body.service.createdAt));
  expect(Date.parse(body.service.usage.periodEnd)).toBeGreaterThan(Date.parse(body.service.createdAt));
  expect(await query('select product, plan, status from subscription where resource_id = $1', body.mailServiceId)).toEqual([{ product: 'mail', plan: 'launch', status: 'active' }]);
  expect(await query('select ceiling::int as ceiling, included::int as included from mail_usage where mail_service_id = $1', body.mailServiceId)).toEqual([{ ceiling: 10_000, included: 10_000 }]);
});

test('a body with a fault is refused whole; the same Idempotency-Key makes one service', async () => {
  expect(await create({ displayName: '', plan: 'trial', region: 'x' })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  const twice = await Promise.all([1, 2].map(() => ask('POST', '/services', { json: { displayName: 'Once', plan: 'growth' }, headers: { 'idempotency-key': 'k1' } })));
  expect(new Set(twice.map(({ body }) => body.mailServiceId)).size).toBe(1);
  expect((await ask('GET', '/services')).body.services).toHaveLength(1);
});

test('listMailServices, getMailService, updateMailService: newest first, renamed by its members alone', async () => {
  const first = (await create()).body.service;
  const second = (await create({ displayName: 'Second', plan: 'business' })).body.service;
  expect((await ask('GET', '/services')).body).toEqual({ ok: true, services: [second, first], nextCursor: null, hasMore: false });
  const page = (await ask('GET', '/services?limit=1')).body;
  expect(page).toMatchObject({ services: [second], hasMore: true });
  expect((await ask('GET', `/services?limit=1&cursor=${page.nextCursor}`)).body).toMatchObject({ services: [first], hasMore: false });
  expect((await ask('PATCH', `/services/${first.id}`, { json: { displayName: 'Renamed' } })).body.service).toMatchObject({ displayName: 'Renamed', plan: 'launch' });
  expect(await ask('PATCH', `/services/${first.id}`, { json: { plan: 'growth' } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await ask('PATCH', `/services/${first.id}`, { as: 'viewer', json: { displayName: 'No' } })).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'mail:write' } });
  expect((await ask('GET', `/services/${first.id}`, { as: 'viewer' })).body.service.displayName).toBe('Renamed');
});

test('a service of another organisation answers like one that never existed', async () => {
  const { mailServiceId } = (await create()).body;
  for (const [method, path, json] of [['GET', '', undefined], ['PATCH', '', { displayName: 'x' }], ['DELETE', '', undefined], ['GET', '/domains', undefined], ['POST', '/domains', { domain: 'x.test' }], ['GET', '/api-keys', undefined],
    ['POST', '/api-keys', { name: 'x' }], ['GET', '/suppressions', undefined], ['POST', '/suppressions', { address: 'a@x.test' }]] as const) {
    const [theirs, nobodys] = await Promise.all([mailServiceId, newId('mls')].map((id) => ask(method, `/services/${id}${path}`, { of: api.foreign, json })));
    expect({ method, path, status: theirs?.status, body: { ...theirs?.body, requestId: '' } }).toEqual({ method, path, status: 404, body: { ...nobodys?.body, requestId: '' } });
  }
  expect((await ask('GET', '/services')).body.services).toHaveLength(1);
});

test('the twenty-first service of a project is refused, and one that is deleted makes room', async () => {
  const made = [];
  for (let i = 0; i < 20; i++) made.push((await create()).body.mailServiceId);
  expect(await create()).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', resource: 'mail.services', limit: 20, used: 20 } });
  await ask('DELETE', `/services/${made[0]}`);
  expect((await create()).status).toBe(200);
});

test('deleteMailService: nothing answers any more, keys end with it, the subscription too, and the work is accepted', async () => {
  const { mailServiceId } = (await create()).body;
  const { key, apiKey } = (await ask('POST', `/services/${mailServiceId}/api-keys`, { json: { name: 'ci', scopes: ['mail:suppressions'] } })).body;
  const use = () => api.ask('GET', '/v1/api/mail/suppressions', { headers: { authorization: `Bearer ${key}` } });
  expect((await use()).status).toBe(200);
  expect((await ask('DELETE', `/services/${mailServiceId}`, { as: 'member' })).status).toBe(403);
  const { status, body } = await ask('DELETE', `/services/${mailServiceId}`);
  expect({ status, ...body }).toMatchObject({
    status: 200, deleted: true, mailServiceId, service: { id: mailServiceId, status: 'deleting' }, operation: { kind: 'mail.delete_service', resourceId: mailServiceId, state: 'pending' },
  });
  expect(await use()).toMatchObject({ status: 401, body: { code: 'invalid_api_key' } });
  expect((await ask('DELETE', `/services/${mailServiceId}`)).status).toBe(404);
  expect((await ask('GET', `/services/${mailServiceId}`)).status).toBe(404);
  expect((await ask('DELETE', `/api-keys/${apiKey.id}`)).status).toBe(404);
  expect(await query('select status from subscription where resource_id = $1', mailServiceId)).toEqual([{ status: 'canceled' }]);
});

test('the plan is changed through billing: limits, rate and ceiling follow at once, and what does not fit is named', async () => {
  const { mailServiceId } = (await create({ displayName: 'Big', plan: 'growth' })).body;
  const [{ id }] = (await api.ask('GET', `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/billing/subscriptions?resourceId=${mailServiceId}`, { headers: { cookie: tenant.cookies.owner } })).body.subscriptions;
  const change = (plan: string) => api.ask('POST', `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/billing/subscriptions/${id}/change-plan`, { headers: { cookie: tenant.cookies.owner }, json: { plan } });
  expect(await change('business')).toMatchObject({ status: 202, body: { operation: { kind: 'mail.change_plan', state: 'succeeded' }, subscription: { plan: 'business', pendingPlan: null } } });
  expect((await ask('GET', `/services/${mailServiceId}`)).body.service).toMatchObject({ plan: 'business', limits: { recipientsPerMonth: 1_000_000, sendsPerSecond: 100, domains: 200 } });
  for (let i = 0; i < 6; i++) await ask('POST', `/services/${mailServiceId}/api-keys`, { json: { name: `k${i}` } });
  expect(await change('launch')).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', conflicts: [{ resource: 'mail.api_keys', scopeId: mailServiceId, used: 6, limit: 5 }] } });
});

test('a project with a mail service is not deleted without cascade, and with it the service goes', async () => {
  const { mailServiceId } = (await create()).body;
  const remove = (search: string) => api.ask('DELETE', `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}${search}`, { headers: { cookie: tenant.cookies.owner } });
  expect(await remove('')).toMatchObject({ status: 400, body: { code: 'conflict', conflicts: [{ kind: 'mail_service', count: 1 }] } });
  expect((await remove('?cascade=true')).status).toBe(202);
  expect(await query('select count(*)::int as n from mail_service where id = $1', mailServiceId)).toEqual([{ n: 1 }]);
});
