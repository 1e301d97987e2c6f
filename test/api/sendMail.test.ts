import { withApi } from '../support/api';
import { createMailTenant, insertSendingDomain, type MailTenant } from '../support/mail-delivery';
import { createTenant } from '../support/tenant';

const api = withApi({ MAIL_API_STARTS_PER_SECOND: '0' });
let mail: MailTenant;
const pool = () => api.deps.db.pool;
beforeAll(async () => {
  mail = await createMailTenant(api.deps.db, api.tenant);
});

const body = (change: object = {}) => ({ from: `Acme <a@${mail.domain}>`, to: ['x@y.org'], subject: 'Hello', text: 'Hi', ...change });
const send = (change: object = {}, { key = mail.key, headers = {}, path = '/v1/api/mail/send' }: { key?: string; headers?: Record<string, string>; path?: string } = {}) =>
  api.ask('POST', path, { json: body(change), headers: { authorization: `Bearer ${key}`, ...headers } });
const messagesOf = async (serviceId: string) => Number((await pool().query('select count(*) from mail_message where mail_service_id = $1', [serviceId])).rows[0].count);
const usedBy = async (serviceId: string) => Number((await pool().query('select recipients from mail_usage where mail_service_id = $1', [serviceId])).rows[0].recipients);
const another = (options: Parameters<typeof createMailTenant>[2] = {}) => createMailTenant(api.deps.db, api.tenant, options);

test.each(['/v1/api/mail/send', '/api/mail/send', '/v1/mail/send'])('%s accepts a mail: 202, durable, with the addresses to follow it', async (path) => {
  const answer = await send({ cc: ['C <c@y.org>'], bcc: ['b@y.org', 'X@Y.org'], replyTo: 'r@y.org', metadata: { orderId: '42' } }, { path });
  expect(answer.status).toBe(202);
  expect(answer.body).toEqual({ ok: true, messageId: expect.stringMatching(/^msg_[0-9a-z]{26}$/), status: 'queued' });
  const messageId = String(answer.body['messageId']);
  expect(answer.headers['location']).toBe(`/v1/api/mail/messages/${messageId}`);
  expect(answer.headers['link']).toBe(`</v1/api/mail/messages/${messageId}>; rel="monitor"`);
  expect(answer.headers['retry-after']).toBe('1');
  const { rows: [row] } = await pool().query('select m.*, c.text_body from mail_message m join mail_content c on c.message_id = m.id where id = $1', [messageId]);
  expect(row).toMatchObject({
    status: 'queued', mode: 'live', subject: 'Hello', metadata: { orderId: '42' }, has_text: true, has_html: false, text_body: 'Hi', recipient_count: 3, counts: { queued: 3 }, dispatched_at: null,
    rfc_message_id: `<${messageId}@${mail.domain}>`, parties: { from: { name: 'Acme', address: `a@${mail.domain}` }, to: [{ name: '', address: 'x@y.org' }], cc: [{ name: 'C', address: 'c@y.org' }], bcc: [{ name: '', address: 'b@y.org' }], replyTo: { name: '', address: 'r@y.org' } },
  });
  const { rows } = await pool().query('select kind, address, status, position from mail_recipient where message_id = $1 order by position', [messageId]);
  expect(rows).toEqual([{ kind: 'to', address: 'x@y.org', status: 'queued', position: 0 }, { kind: 'cc', address: 'c@y.org', status: 'queued', position: 1 }, { kind: 'bcc', address: 'b@y.org', status: 'queued', position: 2 }]);
});

test('an unknown key of the body is not supported, and every fault is named', async () => {
  const answer = await send({ attachments: [], headers: {}, subject: null, to: [] });
  expect(answer).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  const issues = answer.body['issues'] as { path: string; message: string }[];
  expect(issues.map(({ path }) => path).toSorted()).toEqual(['attachments', 'headers', 'subject', 'to']);
  expect(issues.filter(({ path }) => ['attachments', 'headers'].includes(path)).every(({ message }) => message.includes('not supported'))).toBe(true);
});

test('unknown, unverified and another service\'s domain give one identical 403', async () => {
  await insertSendingDomain(api.deps.db, { ...api.tenant, serviceId: mail.serviceId, domain: 'pending.test', status: 'pending' });
  const other = await another();
  const answers = await Promise.all(['unknown.test', 'pending.test', other.domain, `sub.${mail.domain}`].map((domain) => send({ from: `a@${domain}` })));
  const plain = answers.map(({ status, body: { requestId: _, ...rest } }) => JSON.stringify({ status, rest }));
  expect(new Set(plain).size).toBe(1);
  expect(answers[0]).toMatchObject({ status: 403, body: { code: 'domain_not_verified' } });
});

test('refusals come in their order: suspended, domain of the key, domain, size, pending, quota', async () => {
  const own = await another({ status: 'suspended', ceiling: 0 });
  const large = { text: 'x'.repeat(5 * 1024 * 1024 + 1) };
  const codeOf = async (change: object) => (await send({ from: `a@${own.domain}`, ...change }, { key: own.key })).body['code'];
  expect(await codeOf({ from: 'a@nowhere.test', ...large })).toBe('service_suspended');
  await pool().query(`update mail_service set status = 'active', suspended_reason = null, suspended_at = null where id = $1`, [own.serviceId]);
  await pool().query(`update api_key set allowed_domains = '{allowed.test}' where service_id = $1`, [own.serviceId]);
  expect(await codeOf({ from: 'a@nowhere.test', ...large })).toBe('domain_not_allowed');
  await pool().query(`update api_key set allowed_domains = $2 where service_id = $1`, [own.serviceId, ['nowhere.test', own.domain]]);
  expect(await codeOf({ from: 'a@nowhere.test', ...large })).toBe('domain_not_verified');
  expect(await codeOf(large)).toBe('message_too_large');
  expect(await codeOf({})).toBe('quota_exceeded');
});

test('a send that does not fit whole is refused whole, with the facts of the quota', async () => {
  const own = await another({ ceiling: 3 });
  expect(await send({ from: `a@${own.domain}`, to: ['a@y.org', 'b@y.org'] }, { key: own.key })).toMatchObject({ status: 202 });
  const refused = await send({ from: `a@${own.domain}`, to: ['a@y.org', 'b@y.org'] }, { key: own.key });
  expect(refused).toMatchObject({ status: 402, body: { code: 'quota_exceeded', resource: 'mail.recipients', limit: 3, used: 2, resetAt: expect.any(String) } });
  expect([await messagesOf(own.serviceId), await usedBy(own.serviceId)]).toEqual([1, 2]);
  expect(await send({ from: `a@${own.domain}`, to: ['a@y.org', 'b@y.org'] }, { key: own.testKey })).toMatchObject({ status: 202 });
  expect(await usedBy(own.serviceId)).toBe(2);
});

test('at limit - 1 one of many sends is accepted, and the refused ones leave nothing', async () => {
  const own = await another({ ceiling: 10 });
  await pool().query('update mail_usage set recipients = 9 where mail_service_id = $1', [own.serviceId]);
  const answers = await Promise.all(Array.from({ length: 50 }, () => send({ from: `a@${own.domain}` }, { key: own.key })));
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
  expect(answers.filter(({ body: { code } }) => code === 'quota_exceeded')).toHaveLength(49);
  expect([await messagesOf(own.serviceId), await usedBy(own.serviceId)]).toEqual([1, 10]);
  const { rows } = await pool().query(`select type from mail_event where mail_service_id = $1 order by type`, [own.serviceId]);
  expect(rows.map(({ type }) => type)).toEqual(['quota.reached']);
});

test('fifty equal sends with one Idempotency-Key make one message; a rotated key replays it; another body is refused', async () => {
  const own = await another();
  const once = { headers: { 'idempotency-key': 'order-42' } };
  const answers = await Promise.all(Array.from({ length: 50 }, () => send({ from: `a@${own.domain}` }, { key: own.key, ...once })));
  expect(new Set(answers.map(({ status, body: { messageId } }) => `${status} ${String(messageId)}`)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true')).toHaveLength(49);
  expect(await messagesOf(own.serviceId)).toBe(1);
  await pool().query(`update mail_service set status = 'suspended', suspended_reason = 'admin', suspended_at = now() where id = $1`, [own.serviceId]);
  const replayed = await send({ from: `a@${own.domain}` }, { key: own.testKey, ...once });
  expect(replayed).toMatchObject({ status: 202, body: { messageId: answers[0]?.body['messageId'], status: 'queued' } });
  expect(replayed.headers['location']).toBe(answers[0]?.headers['location']);
  expect(await send({ from: `a@${own.domain}`, subject: 'Other' }, { key: own.key, ...once })).toMatchObject({ status: 400, body: { code: 'idempotency_key_reused' } });
  expect(await send({}, { headers: { 'idempotency-key': 'ü' } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
});

test('a refused send keeps nothing under its Idempotency-Key', async () => {
  const own = await another({ ceiling: 0 });
  const once = { key: own.key, headers: { 'idempotency-key': 'later' } };
  expect(await send({ from: `a@${own.domain}` }, once)).toMatchObject({ status: 402 });
  await pool().query('update mail_usage set ceiling = 5 where mail_service_id = $1', [own.serviceId]);
  expect(await send({ from: `a@${own.domain}` }, once)).toMatchObject({ status: 202 });
});

test('more than the plan\'s sends a second are limited, by service', async () => {
  const own = await another({ sendsPerSecond: 1 });
  const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => send({ from: `a@${own.domain}` }, { key: i % 2 ? own.key : own.testKey })));
  const limited = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 202).length).toBeGreaterThanOrEqual(3);
  expect(limited.length).toBeGreaterThanOrEqual(4);
  expect(limited[0]).toMatchObject({ body: { code: 'rate_limited' }, headers: { 'retry-after': expect.any(String) } });
});

test('a service without a counter for this period gets one, and the send is counted', async () => {
  const own = await another();
  await pool().query('delete from mail_usage where mail_service_id = $1', [own.serviceId]);
  await pool().query(`insert into subscription (id, org_id, project_id, product, resource_id, plan, plan_version, status) values ('sub_' || $1, $2, $3, 'mail', $1, 'launch', 1, 'active')`, [own.serviceId, api.tenant.orgId, api.tenant.projectId]);
  expect(await send({ from: `a@${own.domain}` }, { key: own.key })).toMatchObject({ status: 202 });
  expect(await usedBy(own.serviceId)).toBe(1);
});

test('a key without mail:send, a revoked one and none are refused', async () => {
  const reader = await another({ scopes: ['mail:read'] });
  expect(await send({}, { key: reader.key })).toMatchObject({ status: 403, body: { code: 'insufficient_scope', required: 'mail:send' } });
  await pool().query('update api_key set revoked_at = now() where service_id = $1', [reader.serviceId]);
  expect(await send({}, { key: reader.key })).toMatchObject({ status: 401, body: { code: 'invalid_api_key' } });
  expect(await api.ask('POST', '/v1/api/mail/send', { json: body() })).toMatchObject({ status: 401, body: { code: 'invalid_api_key' } });
});

test('nothing of a body, an address or a key is logged, and no audit entry is written for a send', async () => {
  const own = await createMailTenant(api.deps.db, await createTenant(api.deps.db, 'secret'));
  await send({ from: `a@${own.domain}`, to: ['canary-address@y.org'], text: 'canary-body', subject: 'canary-subject' }, { key: own.key });
  expect(api.logLines.filter((line) => /canary-|hf_live_/.test(line))).toEqual([]);
  expect((await pool().query(`select count(*)::int as n from audit_entry where action = 'sendMail'`)).rows[0].n).toBe(0);
});
