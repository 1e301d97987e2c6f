import { createHmac } from 'node:crypto';
import { newId } from '../../src/core/ids';
import type { Role } from '../../src/core/caller';
import { inTransaction } from '../../src/db/transaction';
import type { WebhookAnswer, WebhookCall } from '../../src/mail/ports';
import { tellWebhooks, type WebhookEvent } from '../../src/mail/webhooks/outbox';
import { sendDueDeliveries, startWebhookSender } from '../../src/mail/webhooks/sender';
import { withApi } from '../support/api';
import { createTenant, type Tenant } from '../support/tenant';
import { until } from '../support/until';

const api = withApi({ MAIL_WEBHOOK_ALLOW_PRIVATE: '0' });
let tenant: Tenant;
let serviceId: string;
const calls: WebhookCall[] = [];
let answer: (call: WebhookCall) => Partial<WebhookAnswer> | Promise<Partial<WebhookAnswer>>;

beforeEach(async () => {
  await api.deps.db.pool.query('delete from mail_webhook');
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  serviceId = (await ask('POST', '/services', { json: { displayName: 'Mail', plan: 'launch' } })).body.mailServiceId;
  calls.length = 0;
  answer = () => ({ status: 200 });
});

const ask = (method: string, path: string, { as = 'owner', json, of = tenant, headers = {} }: { as?: Role; json?: unknown; of?: Tenant; headers?: Record<string, string> } = {}) =>
  api.ask(method, `/v1/api/orgs/${of.orgSlug}/projects/${of.projectSlug}/mail${path}`, { headers: { cookie: of.cookies[as], ...headers }, ...(json === undefined ? {} : { json }) });
const url = 'https://hooks.acme.com/in';
const make = async (json: object = {}) => (await ask('POST', `/services/${serviceId}/webhooks`, { json: { url, events: ['message.delivered', 'message.bounced'], ...json } })).body;
const sender = () => ({ ...api.deps, webhookCaller: { post: async (call: WebhookCall): Promise<WebhookAnswer> => {
  calls.push(call);
  return { status: null, excerpt: null, error: null, retryAfterSeconds: null, ...await answer(call) };
} } });
const send = () => sendDueDeliveries(sender());
const happen = async (change: Partial<WebhookEvent> = {}): Promise<string> => {
  const eventId = newId('evt');
  await inTransaction(api.deps.db, (tx) => tellWebhooks(tx, [{ eventId, type: 'message.delivered', mailServiceId: serviceId, occurredAt: new Date(), messageId: 'msg_x', recipient: 'x@y.test', status: 'delivered', sequence: 2, metadata: { b: 1, a: 2 }, ...change }]));
  return eventId;
};
/** Time passes, for rows as for us. */
const pass = async (seconds: number) => {
  await api.deps.db.pool.query(`update mail_webhook_delivery set next_attempt_at = next_attempt_at - $1 * interval '1 second', created_at = created_at - $1 * interval '1 second', lease_until = lease_until - $1 * interval '1 second'`, [seconds]);
  await api.deps.db.pool.query(`update mail_webhook set failing_since = failing_since - $1 * interval '1 second', former_until = former_until - $1 * interval '1 second'`, [seconds]);
};
const delivery = async (webhookId: string, eventId: string) => (await ask('GET', `/webhooks/${webhookId}/deliveries`)).body.deliveries.find(({ id }: { id: string }) => id === eventId);
/** As a receiver would, by the text of Standard Webhooks. */
const isSignedWith = (secret: string, { headers, body }: WebhookCall) => {
  const mac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64')).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64');
  return (headers['webhook-signature'] ?? '').split(' ').includes(`v1,${mac}`);
};

test('createMailWebhook: active, its secret shown once', async () => {
  const { status, body } = await ask('POST', `/services/${serviceId}/webhooks`, { json: { url, events: ['message.sent'], description: 'CRM' }, headers: { 'idempotency-key': 'k1' } });
  expect({ status, ...body }).toMatchObject({
    status: 200, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
    webhook: { id: expect.stringMatching(/^whk_/), mailServiceId: serviceId, url, events: ['message.sent'], description: 'CRM', status: 'active', disabledReason: null, lastSuccessAt: null, lastFailureAt: null },
  });
  const again = await ask('POST', `/services/${serviceId}/webhooks`, { json: { url, events: ['message.sent'], description: 'CRM' }, headers: { 'idempotency-key': 'k1' } });
  expect(again.body).toMatchObject({ webhook: { id: body.webhook.id }, secret: null });
  const stored = await api.deps.db.pool.query('select secret from mail_webhook where id = $1', [body.webhook.id]);
  expect(stored.rows[0].secret).not.toContain(body.secret.slice(6));
  expect((await ask('GET', `/services/${serviceId}/webhooks`, { as: 'viewer' })).body).toMatchObject({ webhooks: [body.webhook], hasMore: false, nextCursor: null });
  expect((await ask('GET', `/webhooks/${body.webhook.id}`)).body.webhook).toEqual(body.webhook);
});

test('createMailWebhook: refuses what nothing may be sent to, unknown events, and more than the plan allows', async () => {
  for (const json of [
    { url: 'http://acme.com/', events: ['message.sent'] }, { url: 'https://acme.com:444/', events: ['message.sent'] }, { url: 'https://u:p@acme.com/', events: ['message.sent'] }, { url, events: [] },
    { url, events: ['message.opened'] }, { url, events: ['message.sent', 'message.sent'] }, { url: `https://acme.com/${'x'.repeat(2_048)}`, events: ['message.sent'] }, { url },
    { url, events: ['message.sent'], description: 'x'.repeat(201) }, { url, events: ['message.sent'], secret: 'mine' },
  ]) expect({ json, ...await ask('POST', `/services/${serviceId}/webhooks`, { json }) }).toMatchObject({ json, status: 400, body: { code: 'validation_error' } });
  for (let i = 0; i < 3; i++) await make();
  expect(await ask('POST', `/services/${serviceId}/webhooks`, { json: { url, events: ['message.sent'] } })).toMatchObject({ status: 402, body: { code: 'plan_limit_reached', limit: 3, used: 3 } });
  const [{ id }] = (await ask('GET', `/services/${serviceId}/webhooks`)).body.webhooks;
  expect((await ask('DELETE', `/webhooks/${id}`)).body).toMatchObject({ deleted: true, webhookId: id });
  expect((await ask('DELETE', `/webhooks/${id}`)).status).toBe(404);
  expect((await make()).webhook.status).toBe('active');
});

test('getMailWebhook, deleteMailWebhook and all others: another project sees none of it', async () => {
  const { webhook } = await make();
  const eventId = await happen();
  const stranger = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  for (const [method, path] of [
    ['GET', ''], ['PATCH', ''], ['DELETE', ''], ['POST', '/rotate-secret'], ['POST', '/test'], ['GET', '/deliveries'], ['POST', `/deliveries/${eventId}/replay`],
  ] as const) {
    expect({ path, ...await ask(method, `/webhooks/${webhook.id}${path}`, { of: stranger, ...(method === 'PATCH' ? { json: { status: 'disabled' } } : {}) }) }).toMatchObject({ path, status: 404, body: { code: 'not_found' } });
  }
  expect((await ask('POST', `/services/${serviceId}/webhooks`, { of: stranger, json: { url, events: ['message.sent'] } })).status).toBe(404);
});

test('listMailWebhooks, listMailWebhookDeliveries: an event reaches the webhooks that want it, signed, in the form the contract shows', async () => {
  const { webhook, secret } = await make();
  await make({ events: ['domain.verified'] });
  const eventId = await happen({ smtp: { code: 250, enhancedCode: '2.0.0', diagnostic: 'ok' } });
  expect(await send()).toBe(1);
  const [call] = calls;
  expect(call).toMatchObject({ url, headers: { 'webhook-id': eventId, 'Content-Type': 'application/json' } });
  expect(call && isSignedWith(secret, call)).toBe(true);
  expect(JSON.parse(call?.body ?? '')).toEqual({
    type: 'message.delivered', timestamp: expect.stringMatching(/Z$/),
    data: { eventId, mailServiceId: serviceId, messageId: 'msg_x', recipient: 'x@y.test', status: 'delivered', sequence: 2, smtp: { code: 250, enhancedCode: '2.0.0', diagnostic: 'ok' }, bounce: null, metadata: { b: 1, a: 2 } },
  });
  expect(await delivery(webhook.id, eventId)).toMatchObject({ id: eventId, type: 'message.delivered', state: 'succeeded', attempts: 1, nextAttemptAt: null, lastStatus: 200, lastError: null });
  expect((await ask('GET', `/webhooks/${webhook.id}`)).body.webhook.lastSuccessAt).not.toBeNull();
  expect(await send()).toBe(0);
});

test('what is rolled back is told nobody; what is told twice arrives once; metadata that is too long is left out', async () => {
  await make();
  await expect(inTransaction(api.deps.db, async (tx) => {
    await tellWebhooks(tx, [{ eventId: newId('evt'), type: 'message.delivered', mailServiceId: serviceId, occurredAt: new Date() }]);
    throw new Error('undone');
  })).rejects.toThrow('undone');
  const eventId = await happen({ metadata: { long: 'x'.repeat(21_000) } });
  await happen({ eventId });
  expect(await send()).toBe(1);
  expect(JSON.parse(calls[0]?.body ?? '').data).toMatchObject({ eventId, metadata: null });
});

test('an endpoint that is down for three days gets everything afterwards, each event once accepted', async () => {
  const { webhook } = await make();
  answer = () => ({ error: 'connect ECONNREFUSED' });
  const events = [await happen()];
  for (let hour = 0; hour < 72; hour++) {
    if (hour % 12 === 6) events.push(await happen());
    await send();
    await pass(3_600);
  }
  expect(calls.filter(({ headers }) => headers['webhook-id'] === events[0])).toHaveLength(9);
  expect((await delivery(webhook.id, events[0] ?? '')).state).toBe('pending');
  answer = () => ({ status: 204 });
  const before = calls.length;
  for (let hour = 0; hour < 30; hour++) {
    await send();
    await pass(3_600);
  }
  expect(calls.slice(before).map(({ headers }) => headers['webhook-id']).sort()).toEqual([...events].sort());
  const { deliveries } = (await ask('GET', `/webhooks/${webhook.id}/deliveries?state=succeeded`)).body;
  expect(deliveries).toHaveLength(events.length);
});

test('after ten attempts a delivery has failed; after five days of failures only, the webhook is switched off', async () => {
  const { webhook } = await make();
  answer = () => ({ status: 500, excerpt: 'oops' });
  const first = await happen();
  for (let hour = 0; hour < 100; hour++) {
    await send();
    await pass(3_600);
  }
  expect(await delivery(webhook.id, first)).toMatchObject({ state: 'failed', attempts: 10, nextAttemptAt: null, lastStatus: 500, lastError: 'HTTP 500', responseExcerpt: 'oops' });
  expect((await ask('GET', `/webhooks/${webhook.id}`)).body.webhook).toMatchObject({ status: 'active' });
  await pass(24 * 3_600);
  await happen();
  await send();
  expect((await ask('GET', `/webhooks/${webhook.id}`)).body.webhook).toMatchObject({ status: 'disabled', disabledReason: 'failing' });
  await happen();
  await pass(3_600);
  expect(await send()).toBe(0);
  expect((await ask('PATCH', `/webhooks/${webhook.id}`, { json: { status: 'active' } })).body.webhook).toMatchObject({ status: 'active', disabledReason: null });
  expect(await send()).toBe(1);
});

test('410 switches the webhook off at once; Retry-After is honoured for 429 and 503', async () => {
  const { webhook } = await make();
  answer = () => ({ status: 503, retryAfterSeconds: 1_000 });
  const eventId = await happen();
  await send();
  await pass(990);
  expect(await send()).toBe(0);
  await pass(20);
  answer = () => ({ status: 410 });
  expect(await send()).toBe(1);
  expect(await delivery(webhook.id, eventId)).toMatchObject({ state: 'failed', lastStatus: 410 });
  expect((await ask('GET', `/webhooks/${webhook.id}`)).body.webhook).toMatchObject({ status: 'disabled', disabledReason: 'gone' });
});

test('rotateMailWebhookSecret: both secrets sign for a day, then the new one alone', async () => {
  const { webhook, secret } = await make();
  const rotated = await ask('POST', `/webhooks/${webhook.id}/rotate-secret`);
  expect(rotated.body).toMatchObject({ webhook: { id: webhook.id }, secret: expect.stringMatching(/^whsec_/) });
  await happen();
  await send();
  expect(calls.map((call) => [isSignedWith(secret, call), isSignedWith(rotated.body.secret, call)])).toEqual([[true, true]]);
  await pass(24 * 3_600 + 1);
  await happen();
  await send();
  expect(calls.slice(1).map((call) => [isSignedWith(secret, call), isSignedWith(rotated.body.secret, call)])).toEqual([[false, true]]);
});

test('testMailWebhook and replayMailWebhookDelivery: sent whatever it wants to hear; the same id and bytes again', async () => {
  const { webhook } = await make();
  const tested = (await ask('POST', `/webhooks/${webhook.id}/test`)).body.delivery;
  expect(tested).toMatchObject({ id: expect.stringMatching(/^evt_/), type: 'webhook.test', state: 'pending', attempts: 0 });
  await send();
  expect(JSON.parse(calls[0]?.body ?? '')).toMatchObject({ type: 'webhook.test', data: { eventId: tested.id, mailServiceId: serviceId, messageId: null } });
  const replayed = (await ask('POST', `/webhooks/${webhook.id}/deliveries/${tested.id}/replay`)).body.delivery;
  expect(replayed).toMatchObject({ id: tested.id, state: 'pending', attempts: 0 });
  await send();
  expect(calls.map(({ headers, body }) => [headers['webhook-id'], body])).toEqual([[tested.id, calls[0]?.body], [tested.id, calls[0]?.body]]);
  expect((await ask('POST', `/webhooks/${webhook.id}/deliveries/${newId('evt')}/replay`)).status).toBe(404);
  for (let i = 1; i < 10; i++) expect((await ask('POST', `/webhooks/${webhook.id}/test`)).status).toBe(200);
  expect(await ask('POST', `/webhooks/${webhook.id}/test`)).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
});

test('updateMailWebhook: what is given changes, and only that', async () => {
  const { webhook } = await make({ description: 'one' });
  const changed = await ask('PATCH', `/webhooks/${webhook.id}`, { json: { events: ['quota.warning'], description: null } });
  expect(changed.body.webhook).toMatchObject({ url, events: ['quota.warning'], description: null, status: 'active' });
  expect((await ask('PATCH', `/webhooks/${webhook.id}`, { json: { status: 'disabled' } })).body.webhook).toMatchObject({ status: 'disabled', disabledReason: 'manual' });
  for (const json of [{}, { url: 'http://x.com' }, { status: 'gone' }, { mailServiceId: 'x' }]) expect((await ask('PATCH', `/webhooks/${webhook.id}`, { json })).status).toBe(400);
});

test('a slow endpoint holds five calls and delays no other; a second sender takes nothing twice', async () => {
  const slow = (await make({ url: 'https://slow.acme.com/' })).webhook;
  await make({ url: 'https://quick.acme.com/' });
  for (let i = 0; i < 30; i++) await happen();
  let release: () => void = () => undefined;
  const held = new Promise<Partial<WebhookAnswer>>((done) => { release = () => done({ status: 200 }); });
  answer = ({ url: to }) => (to.includes('slow') ? held : { status: 200 });
  const senders = [startWebhookSender(sender()), startWebhookSender(sender())];
  const to = (name: string) => calls.filter((call) => call.url.includes(name));
  await until(() => to('quick').length === 30, 'the quick endpoint');
  expect(to('slow')).toHaveLength(5);
  release();
  await until(async () => (await ask('GET', `/webhooks/${slow.id}/deliveries?state=succeeded&limit=100`)).body.deliveries.length === 30, 'the slow endpoint');
  await Promise.all(senders.map((one) => one.stop()));
  expect(new Set(to('slow').map(({ headers }) => headers['webhook-id'])).size).toBe(30);
  expect([to('slow').length, to('quick').length]).toEqual([30, 30]);
});

test('a call whose sender died is made again when its lease ends, and a late answer changes nothing', async () => {
  const { webhook } = await make();
  const eventId = await happen();
  let answerLate: (value: Partial<WebhookAnswer>) => void = () => undefined;
  answer = () => new Promise((done) => { answerLate = done; });
  const lost = send();
  await until(() => calls.length === 1);
  answer = () => ({ status: 200 });
  expect(await send()).toBe(0);
  await pass(61);
  expect(await send()).toBe(1);
  answerLate({ status: 500 });
  await lost;
  expect(await delivery(webhook.id, eventId)).toMatchObject({ state: 'succeeded', attempts: 2, lastStatus: 200 });
});
