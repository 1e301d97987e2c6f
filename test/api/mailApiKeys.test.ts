import { newId } from '../../src/core/ids';
import type { Role } from '../../src/core/caller';
import { withApi } from '../support/api';
import { rounds } from '../support/rounds';
import { createTenant, type Tenant } from '../support/tenant';

const api = withApi();
let tenant: Tenant;
let serviceId: string;
const ask = (method: string, path: string, { as = 'owner', json, headers = {}, of = tenant }: { as?: Role; json?: unknown; headers?: Record<string, string>; of?: Tenant } = {}) =>
  api.ask(method, `/v1/api/orgs/${of.orgSlug}/projects/${of.projectSlug}/mail${path}`, { headers: { cookie: of.cookies[as], ...headers }, ...(json === undefined ? {} : { json }) });
const create = (json: object = {}, more: { as?: Role; headers?: Record<string, string> } = {}) => ask('POST', `/services/${serviceId}/api-keys`, { json: { name: 'ci', ...json }, ...more });
const use = (key: string) => api.ask('GET', '/v1/api/mail/suppressions', { headers: { authorization: `Bearer ${key}` } });
const all = ['mail:send', 'mail:read', 'mail:suppressions', 'dns:read'];

beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  serviceId = (await ask('POST', '/services', { json: { displayName: 'Mail', plan: 'launch' } })).body.mailServiceId;
});

test('createMailApiKey answers the value once; listMailApiKeys never shows it', async () => {
  const { status, headers, body } = await create();
  expect({ status, cache: headers['cache-control'] }).toEqual({ status: 200, cache: 'no-store, private' });
  expect(body.key).toMatch(/^hf_live_[0-9A-Za-z]{46}$/);
  expect(body.apiKey).toEqual({
    id: expect.stringMatching(/^key_/), apiKeyId: body.apiKey.id, mailServiceId: serviceId, name: 'ci', mode: 'live', prefix: body.key.slice(0, 12), last4: body.key.slice(-4),
    scopes: ['mail:send', 'mail:read'], allowedDomains: [], status: 'active', expiresAt: null, lastUsedAt: null, replacedBy: null, graceUntil: null, revokedAt: null,
    createdBy: tenant.userIds.owner, createdAt: expect.any(String), updatedAt: expect.any(String),
  });
  const listed = await ask('GET', `/services/${serviceId}/api-keys`);
  expect(listed.body).toEqual({ ok: true, apiKeys: [body.apiKey], nextCursor: null, hasMore: false });
  expect(listed.text).not.toContain(body.key);
  expect((await create({ mode: 'test' })).body.key).toMatch(/^hf_test_/);
});

test('a replayed creation makes no second key and answers no value', async () => {
  const headers = { 'idempotency-key': 'make' };
  const first = (await create({}, { headers })).body;
  expect((await create({}, { headers })).body).toEqual({ ...first, key: null });
  expect((await ask('GET', `/services/${serviceId}`)).body.service.counts.apiKeys).toBe(1);
});

test('every fault of the body is named', async () => {
  const faults = [
    { scopes: [] }, { scopes: ['mail:send', 'mail:send'] }, { scopes: ['mail:admin'] }, { mode: 'prod' }, { expiresAt: '2001-01-01T00:00:00.000Z' }, { expiresAt: 'tomorrow' },
    { expiresAt: new Date(Date.now() + 6 * 366 * 86_400_000).toISOString() }, { allowedDomains: Array.from({ length: 21 }, (_, i) => `d${i}.test`) }, { allowedDomains: ['not a domain'] }, { name: ' ' }, { name: 'x'.repeat(81) },
  ];
  for (const fault of faults) expect({ fault, ...await create(fault) }).toMatchObject({ fault, status: 400, body: { code: 'validation_error' } });
  expect((await create({ allowedDomains: ['MÜNCHEN.test', 'münchen.test'] })).body.apiKey.allowedDomains).toEqual(['xn--mnchen-3ya.test']);
});

test('nobody hands out what they may not do', async () => {
  expect(await create({}, { as: 'viewer' })).toMatchObject({ status: 403, body: { required: 'mail:keys' } });
  expect((await create({ scopes: all }, { as: 'member' })).body.apiKey.scopes).toEqual(all);
});

test('the sixth key of the plan is refused; a revoked one makes room', async () => {
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await create()).body.apiKey.id);
  expect(await create()).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', resource: 'mail.api_keys', limit: 5, used: 5, upgradeTo: 'growth' } });
  await ask('DELETE', `/api-keys/${made[2]}`);
  expect((await create()).status).toBe(200);
});

test('revokeMailApiKey: refused from the answer on, listed with status=all alone, and not to be revoked again', async () => {
  const { key, apiKey } = (await create({ scopes: all })).body;
  expect((await use(key)).status).toBe(200);
  const { status, body } = await ask('DELETE', `/api-keys/${apiKey.id}`);
  expect({ status, body }).toMatchObject({ status: 200, body: { deleted: true, apiKeyId: apiKey.id, apiKey: { id: apiKey.id, status: 'revoked', revokedAt: expect.any(String) } } });
  expect(await use(key)).toMatchObject({ status: 401, body: { code: 'invalid_api_key' }, headers: { 'www-authenticate': 'Bearer' } });
  expect((await ask('DELETE', `/api-keys/${apiKey.id}`)).status).toBe(404);
  expect((await ask('GET', `/services/${serviceId}/api-keys`)).body.apiKeys).toEqual([]);
  expect((await ask('GET', `/services/${serviceId}/api-keys?status=all`)).body.apiKeys).toMatchObject([{ id: apiKey.id, status: 'revoked' }]);
});

test('a key revoked under load is refused by the first request begun after the answer', async () => {
  for (let i = 0; i < rounds(3, 100); i++) {
    const { key, apiKey } = (await create({ scopes: all })).body;
    let revoked = false;
    let stop = false;
    const late: number[] = [];
    const load = Array.from({ length: 8 }, async () => {
      while (!stop) {
        const after = revoked;
        const { status } = await use(key);
        if (after) late.push(status);
      }
    });
    await use(key);
    expect((await ask('DELETE', `/api-keys/${apiKey.id}`)).status).toBe(200);
    revoked = true;
    expect((await use(key)).status).toBe(401);
    stop = true;
    await Promise.all(load);
    expect(late.filter((status) => status !== 401)).toEqual([]);
  }
});

test('rotateMailApiKey: both work in the grace time, the pair counts once, and a rotated key is not rotated again', async () => {
  const old = (await create({ scopes: all, allowedDomains: ['acme.test'] })).body;
  const { status, body } = await ask('POST', `/api-keys/${old.apiKey.id}/rotate`, { json: { graceHours: 2 } });
  expect(status).toBe(200);
  expect(body.apiKey).toMatchObject({ name: 'ci', scopes: all, allowedDomains: ['acme.test'], status: 'active', replacedBy: null });
  expect(body.replaced).toMatchObject({ id: old.apiKey.id, status: 'active', replacedBy: body.apiKey.id });
  expect(Date.parse(body.replaced.graceUntil) - Date.parse(body.apiKey.createdAt)).toBe(2 * 3_600_000);
  expect([(await use(old.key)).status, (await use(body.key)).status]).toEqual([200, 200]);
  expect((await ask('GET', `/services/${serviceId}`)).body.service.counts.apiKeys).toBe(1);
  expect(await ask('POST', `/api-keys/${old.apiKey.id}/rotate`)).toMatchObject({ status: 400, body: { code: 'invalid_state', replacedBy: body.apiKey.id } });
  await api.deps.db.pool.query(`update api_key set grace_until = now() - interval '1 second' where id = $1`, [old.apiKey.id]);
  expect([(await use(old.key)).status, (await use(body.key)).status]).toEqual([401, 200]);
  expect((await ask('GET', `/services/${serviceId}/api-keys`)).body.apiKeys.map(({ status: shown }: { status: string }) => shown)).toEqual(['active', 'expired']);
});

test('rotated without grace, the old key ends at once; an expired key is not rotated', async () => {
  const old = (await create({ scopes: all })).body;
  const rotated = (await ask('POST', `/api-keys/${old.apiKey.id}/rotate`, { json: { graceHours: 0 } })).body;
  expect([(await use(old.key)).status, (await use(rotated.key)).status]).toEqual([401, 200]);
  await api.deps.db.pool.query(`update api_key set expires_at = now() - interval '1 second' where id = $1`, [rotated.apiKey.id]);
  expect((await use(rotated.key)).status).toBe(401);
  expect(await ask('POST', `/api-keys/${rotated.apiKey.id}/rotate`)).toMatchObject({ status: 400, body: { code: 'invalid_state', status: 'expired' } });
});

test('a key of another organisation answers like one that never existed', async () => {
  const { apiKey } = (await create()).body;
  for (const [method, path] of [['DELETE', ''], ['POST', '/rotate']] as const) {
    const [theirs, nobodys] = await Promise.all([apiKey.id, newId('key')].map((id) => ask(method, `/api-keys/${id}${path}`, { of: api.foreign })));
    expect({ ...theirs?.body, requestId: '' }).toEqual({ ...nobodys?.body, requestId: '' });
    expect(theirs?.status).toBe(404);
  }
  expect((await ask('GET', `/services/${serviceId}/api-keys`)).body.apiKeys).toMatchObject([{ id: apiKey.id, status: 'active' }]);
});
