import { newId } from '../../src/core/ids';
import type { Role, Scope } from '../../src/core/caller';
import { withApi } from '../support/api';
import { insertApiKey } from '../support/mail-rows';
import { createTenant, type Tenant } from '../support/tenant';

const api = withApi();
let tenant: Tenant;
let serviceId: string;
const ask = (method: string, path: string, { as = 'owner', json, of = tenant }: { as?: Role; json?: unknown; of?: Tenant } = {}) =>
  api.ask(method, `/v1/api/orgs/${of.orgSlug}/projects/${of.projectSlug}/mail${path}`, { headers: { cookie: of.cookies[as] }, ...(json === undefined ? {} : { json }) });
const byKey = async (scopes: readonly Scope[], of = serviceId) => {
  const { key } = await insertApiKey(api.deps.db, tenant, { scopes, serviceId: of });
  return (method: string, path = '', json?: unknown) => api.ask(method, `/v1/api/mail/suppressions${path}`, { headers: { authorization: `Bearer ${key}` }, ...(json === undefined ? {} : { json }) });
};
const newService = async () => (await ask('POST', '/services', { json: { displayName: 'Mail', plan: 'launch' } })).body.mailServiceId;
const list = `/suppressions`;

beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  serviceId = await newService();
});

test('createMailSuppression: canonical, once; the one there is stays as it is', async () => {
  const { status, body } = await ask('POST', `/services/${serviceId}${list}`, { json: { address: 'Ann@MÜNCHEN.test', note: 'asked us to' } });
  expect({ status, ...body.suppression }).toMatchObject({ status: 200, id: expect.stringMatching(/^sup_/), address: 'Ann@xn--mnchen-3ya.test', reason: 'manual', note: 'asked us to', sourceMessageId: null, expiresAt: null });
  const again = await ask('POST', `/services/${serviceId}${list}`, { json: { address: 'ann@xn--mnchen-3ya.test', note: 'other' } });
  expect(again.body.suppression).toEqual(body.suppression);
  for (const json of [{}, { address: 'nobody' }, { address: 'a@b@c' }, { address: 'a@x.test', note: 'x'.repeat(201) }, { address: 'a@x.test', reason: 'bounce' }]) {
    expect({ json, ...await ask('POST', `/services/${serviceId}${list}`, { json }) }).toMatchObject({ json, status: 400, body: { code: 'validation_error' } });
  }
});

test('listMailSuppressions: newest first, in pages, by address and reason; what is over is not told', async () => {
  for (const name of ['a', 'b', 'c']) await ask('POST', `/services/${serviceId}${list}`, { json: { address: `${name}@x.test` } });
  const read = async (search = '') => (await ask('GET', `/services/${serviceId}${list}${search}`, { as: 'viewer' })).body;
  const addresses = (body: { suppressions: { address: string }[] }) => body.suppressions.map(({ address }) => address);
  expect(addresses(await read())).toEqual(['c@x.test', 'b@x.test', 'a@x.test']);
  const page = await read('?limit=2');
  expect(page).toMatchObject({ hasMore: true });
  expect(addresses(await read(`?limit=2&cursor=${page.nextCursor}`))).toEqual(['a@x.test']);
  expect(addresses(await read('?address=B%40x.test&reason=manual'))).toEqual(['b@x.test']);
  expect(addresses(await read('?reason=bounce'))).toEqual([]);
  await api.deps.db.pool.query(`update mail_suppression set expires_at = now() - interval '1 second' where address = 'b@x.test' and mail_service_id = $1`, [serviceId]);
  expect(addresses(await read())).toEqual(['c@x.test', 'a@x.test']);
  const anew = (await ask('POST', `/services/${serviceId}${list}`, { json: { address: 'b@x.test' } })).body.suppression;
  expect(anew).toMatchObject({ expiresAt: null });
  expect(addresses(await read())).toEqual(['b@x.test', 'c@x.test', 'a@x.test']);
});

test('deleteMailSuppression: gone, again 404, by members who may write', async () => {
  const { suppression } = (await ask('POST', `/services/${serviceId}${list}`, { json: { address: 'a@x.test' } })).body;
  expect((await ask('DELETE', `${list}/${suppression.id}`, { as: 'viewer' })).status).toBe(403);
  expect((await ask('DELETE', `${list}/${suppression.id}`)).body).toEqual({ ok: true, deleted: true, suppressionId: suppression.id, suppression });
  expect((await ask('DELETE', `${list}/${suppression.id}`)).status).toBe(404);
});

test('listMailSuppressionsByKey, createMailSuppressionByKey, deleteMailSuppressionByKey: a key reaches its own service alone', async () => {
  const own = await byKey(['mail:suppressions']);
  const other = await byKey(['mail:suppressions'], await newService());
  const made = await own('POST', '', { address: 'a@x.test' });
  expect(made).toMatchObject({ status: 200, body: { suppression: { address: 'a@x.test', reason: 'manual' } } });
  const { id } = made.body.suppression;
  expect((await own('GET')).body.suppressions).toEqual([made.body.suppression]);
  expect((await other('GET')).body.suppressions).toEqual([]);
  const [theirs, nobodys] = [await other('DELETE', `/${id}`), await other('DELETE', `/${newId('sup')}`)];
  expect({ ...theirs.body, requestId: '' }).toEqual({ ...nobodys.body, requestId: '' });
  expect(await own('DELETE', `/${id}`)).toMatchObject({ status: 200, body: { deleted: true, suppressionId: id } });
  expect(await (await byKey(['mail:send', 'mail:read', 'dns:read']))('GET')).toMatchObject({ status: 403, body: { code: 'insufficient_scope', required: 'mail:suppressions' } });
});

test('a cursor of another service, or of another filter, is refused', async () => {
  for (const name of ['a', 'b']) await ask('POST', `/services/${serviceId}${list}`, { json: { address: `${name}@x.test` } });
  const { nextCursor } = (await ask('GET', `/services/${serviceId}${list}?limit=1`)).body;
  for (const path of [`/services/${await newService()}${list}?limit=1&cursor=${nextCursor}`, `/services/${serviceId}${list}?reason=manual&cursor=${nextCursor}`]) {
    expect(await ask('GET', path)).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  }
});

test('a suppression of another organisation answers like one that never existed', async () => {
  const { suppression } = (await ask('POST', `/services/${serviceId}${list}`, { json: { address: 'a@x.test' } })).body;
  const [theirs, nobodys] = await Promise.all([suppression.id, newId('sup')].map((id) => ask('DELETE', `${list}/${id}`, { of: api.foreign })));
  expect({ status: theirs?.status, ...theirs?.body, requestId: '' }).toEqual({ status: 404, ...nobodys?.body, requestId: '' });
});
