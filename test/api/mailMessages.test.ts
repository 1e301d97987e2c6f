import { withApi } from '../support/api';
import type { Role } from '../../src/core/caller';
import { acceptMessage, attempt, createMailTenant, deliveryDeps, messageOf, ScriptedTransport, type MailTenant } from '../support/mail-delivery';

const api = withApi();
let mail: MailTenant;
let other: MailTenant;
const db = () => api.deps.db;
beforeAll(async () => {
  mail = await createMailTenant(db(), api.tenant);
  other = await createMailTenant(db(), api.foreign);
});

const byKey = (method: string, path: string, key = mail.key) => api.ask(method, `/v1/api/mail${path}`, { headers: { authorization: `Bearer ${key}` } });
const bySession = (method: string, path: string, as: Role = 'owner', tenant = api.tenant) =>
  api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/mail${path}`, { headers: { cookie: tenant.cookies[as] } });
const idsOf = (body: { messages: { id: string }[] }) => body.messages.map(({ id }) => id);

// getMailMessageByKey, getMailMessage
test('a message tells its recipients and events, to its key and to its project', async () => {
  const id = await acceptMessage(db(), mail, { to: ['a@y.org', 'b@y.org'] });
  await attempt(deliveryDeps(db(), new ScriptedTransport('delivered', ({ recipient }) => (recipient === 'a@y.org' ? { outcome: 'accepted', code: 250, mxHost: 'mx.y.org', tls: 'TLSv1.3' } : { outcome: 'deferred', code: 451, enhancedCode: '4.7.1', text: 'greylisted' }))), [id]);
  const answer = await byKey('GET', `/messages/${id}`);
  expect(answer).toMatchObject({ status: 200, body: {
    ok: true, messageId: id, status: 'deferred', message: {
      id, messageId: id, mailServiceId: mail.serviceId, mode: 'live', transport: 'capture', status: 'deferred', statusReason: null, from: `Acme <a@${mail.domain}>`, to: ['a@y.org', 'b@y.org'], cc: [], bcc: [], replyTo: null,
      subject: 'Hi', metadata: { order: '42' }, hasText: true, hasHtml: false, rfcMessageId: `<${id}@${mail.domain}>`, settledAt: null, firstAttemptAt: expect.any(String),
      recipientCounts: { queued: 0, sending: 0, deferred: 1, sent: 0, delivered: 1, bounced: 0, complained: 0, failed: 0, suppressed: 0, cancelled: 0 },
      recipients: [{ address: 'a@y.org', kind: 'to', status: 'delivered', attempts: 1, mxHost: 'mx.y.org', tls: 'TLSv1.3', smtpCode: 250, deliveredAt: expect.any(String), nextAttemptAt: null, bounce: null, complaint: null },
        { status: 'deferred', smtpCode: 451, enhancedCode: '4.7.1', diagnostic: 'greylisted', nextAttemptAt: expect.any(String) }],
      events: [{ sequence: 1, source: 'delivery', applied: true, attempt: 1 }, { sequence: 2 }],
    },
  } });
  const session = await bySession('GET', `/messages/${id}`, 'viewer');
  expect(session.body.message).toEqual(answer.body.message);
  expect(session.body).not.toHaveProperty('content');
  expect(await api.ask('GET', `/v1/mail/messages/${id}`, { headers: { authorization: `Bearer ${mail.key}` } })).toMatchObject({ status: 200 });
});

test('bodies are shown to who may write mail, and null after retention', async () => {
  const id = await acceptMessage(db(), mail, { text: 'Hello', html: '<p>Hello</p>' });
  expect(await bySession('GET', `/messages/${id}?include=content`, 'member')).toMatchObject({ status: 200, body: { content: { text: 'Hello', html: '<p>Hello</p>', mime: null } } });
  expect(await bySession('GET', `/messages/${id}?include=content`, 'viewer')).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'mail:write' } });
  expect(await bySession('GET', `/messages/${id}?include=all`)).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  await db().pool.query('delete from mail_content where message_id = $1', [id]);
  expect(await bySession('GET', `/messages/${id}?include=content`)).toMatchObject({ body: { content: { text: null, html: null, mime: null } } });
});

// listMailMessagesByKey, listMailMessages
test('lists are newest first, filtered, paged without gaps, and omit recipients, events and bcc', async () => {
  const own = await createMailTenant(db(), api.tenant);
  const ids: string[] = [];
  for (let i = 0; i < 7; i++) ids.unshift(await acceptMessage(db(), own, { to: [`r${i}@y.org`], mode: i === 0 ? 'test' : 'live' }));
  await attempt(deliveryDeps(db(), new ScriptedTransport('delivered', ({ recipient }) => (recipient === 'r1@y.org' ? { outcome: 'refused', code: 550 } : { outcome: 'accepted' }))), ids.slice(3));
  const list = async (query: string) => (await byKey('GET', `/messages${query}`, own.key)).body;
  expect(idsOf(await list(''))).toEqual(ids);
  const row = (await list('?limit=1')).messages[0];
  for (const absent of ['recipients', 'events', 'bcc']) expect(row).not.toHaveProperty(absent);
  const paged: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = await list(`?limit=3${cursor ? `&cursor=${cursor}` : ''}`);
    paged.push(...idsOf(page));
    cursor = page.nextCursor;
    expect(page.hasMore).toBe(cursor !== null);
  }
  expect(paged).toEqual(ids);
  expect(idsOf(await list('?status=bounced'))).toEqual([ids[5]]);
  expect(idsOf(await list('?status=bounced,queued'))).toEqual([ids[0], ids[1], ids[2], ids[5]]);
  expect(idsOf(await list('?recipient=R3@y.org'))).toEqual([ids[3]]);
  expect(idsOf(await list('?mode=test'))).toEqual([ids[6]]);
  const { rows } = await db().pool.query('select created_at from mail_message where id = $1', [ids[3]]);
  const at = encodeURIComponent(rows[0].created_at.toISOString());
  expect(idsOf(await list(`?since=${at}`))).toEqual(ids.slice(0, 4));
  expect(idsOf(await list(`?until=${at}`))).toEqual(ids.slice(4));
  const { nextCursor } = await list('?limit=3');
  for (const query of ['?status=nothing', '?limit=0', '?limit=101', `?cursor=${nextCursor}&status=queued`, '?cursor=x']) expect(await byKey('GET', `/messages${query}`, own.key)).toMatchObject({ status: 400 });
  expect(await byKey('GET', `/messages?cursor=${nextCursor}`, mail.key)).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
  expect(idsOf((await bySession('GET', `/services/${own.serviceId}/messages`)).body)).toEqual(ids);
});

test('an address with thousands of messages is filtered as exactly as one with a few', async () => {
  const own = await createMailTenant(db(), api.tenant);
  const others = await acceptMessage(db(), own, { to: ['other@y.org'] });
  await db().pool.query(`
    with made as (
      insert into mail_message (id, mail_service_id, api_key_id, domain_id, mode, transport, parties, subject, has_text, has_html, size_bytes, rfc_message_id, recipient_count, counts, expires_at, created_at)
      select 'msg_' || lpad(i::text, 26, '0'), $1, 'key_x', $2, 'live', 'capture', '{"from":{"name":"","address":"a@b.org"},"to":[],"cc":[],"bcc":[],"replyTo":null}', 'Hi', true, false, 1, 'x', 1, '{"queued":1}', now(), now() - i * interval '1 second'
      from generate_series(1, 5001) i returning id)
    insert into mail_recipient (id, message_id, mail_service_id, position, kind, address, address_key) select 'rcp' || substr(id, 4), id, $1, 0, 'to', 'often@y.org', 'often@y.org' from made`, [own.serviceId, own.domainId]);
  const page = await byKey('GET', '/messages?recipient=Often@y.org&limit=2', own.key);
  expect([idsOf(page.body), page.body.hasMore]).toEqual([[1, 2].map((n) => `msg_${String(n).padStart(26, '0')}`), true]);
  expect(idsOf((await byKey('GET', '/messages?recipient=other@y.org', own.key)).body)).toEqual([others]);
});

// cancelMailMessageByKey, cancelMailMessage
test('a message that waits is cancelled; one whose outcome is known is not', async () => {
  const id = await acceptMessage(db(), mail, { to: ['w1@y.org', 'w2@y.org'] });
  expect(await byKey('POST', `/messages/${id}/cancel`)).toMatchObject({ status: 200, body: { messageId: id, status: 'cancelled', cancelled: 2, message: { status: 'cancelled', settledAt: expect.any(String), events: [{ type: 'cancelled', source: 'api' }, {}] } } });
  expect(await byKey('POST', `/messages/${id}/cancel`)).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  const transport = new ScriptedTransport();
  await attempt(deliveryDeps(db(), transport), [id]);
  expect(transport.jobs).toEqual([]);
  expect(await bySession('POST', `/messages/${await acceptMessage(db(), mail)}/cancel`, 'viewer')).toMatchObject({ status: 403 });
  expect(await bySession('POST', `/messages/${await acceptMessage(db(), mail)}/cancel`, 'member')).toMatchObject({ status: 200, body: { cancelled: 1 } });
});

test('a running attempt is cancelled when it ends deferred, and counts when it ends accepted', async () => {
  for (const [outcome, status] of [['deferred', 'cancelled'], ['accepted', 'delivered']] as const) {
    const id = await acceptMessage(db(), mail);
    const transport = new ScriptedTransport('delivered', async () => {
      expect(await byKey('POST', `/messages/${id}/cancel`)).toMatchObject({ status: 200, body: { cancelled: 0, status: 'sending' } });
      return { outcome };
    });
    await attempt(deliveryDeps(db(), transport), [id]);
    expect(await messageOf(db(), id)).toMatchObject({ status });
  }
});

test('another service\'s message is as absent as none, for keys and for sessions', async () => {
  const theirs = await acceptMessage(db(), other);
  const sibling = await createMailTenant(db(), api.tenant);
  for (const [method, suffix] of [['GET', ''], ['POST', '/cancel']] as const) {
    for (const id of [theirs, 'msg_01kahq3v7ye5fr2m8d4xw0zt6c', 'x']) {
      expect(await byKey(method, `/messages/${id}${suffix}`)).toMatchObject({ status: 404, body: { code: 'not_found', message: 'Message not found.' } });
      expect(await bySession(method, `/messages/${id}${suffix}`)).toMatchObject({ status: 404, body: { code: 'not_found', message: 'Message not found.' } });
    }
    expect(await byKey(method, `/messages/${await acceptMessage(db(), mail)}${suffix}`, sibling.key)).toMatchObject({ status: 404 });
  }
  expect(await bySession('GET', `/services/${other.serviceId}/messages`)).toMatchObject({ status: 404 });
  expect(await bySession('GET', `/services/${other.serviceId}/stats`)).toMatchObject({ status: 404 });
  expect(await messageOf(db(), theirs)).toMatchObject({ status: 'queued' });
});

// getMailStats
test('statistics tell what was accepted and what became of it, hour by hour', async () => {
  const own = await createMailTenant(db(), api.tenant);
  const ids = [await acceptMessage(db(), own, { to: ['s1@y.org', 's2@y.org', 's3@y.org', 's4@y.org'] })];
  await attempt(deliveryDeps(db(), new ScriptedTransport('delivered', ({ recipient }) => (recipient === 's1@y.org' ? { outcome: 'refused', code: 550, enhancedCode: '5.1.1' } : { outcome: 'accepted' }))), ids);
  const { status, body } = await bySession('GET', `/services/${own.serviceId}/stats?hours=3`, 'viewer');
  expect(status).toBe(200);
  expect(body.stats).toMatchObject({ accepted: 4, delivered: 3, bounced: 1, failed: 0, bounceRate: 0.25, complaintRate: 0 });
  expect(body.stats.series).toHaveLength(3);
  expect(body.stats.series.reduce((sum: number, hour: { accepted: number }) => sum + hour.accepted, 0)).toBe(4);
  for (const hours of ['0', '721', 'x']) expect(await bySession('GET', `/services/${own.serviceId}/stats?hours=${hours}`)).toMatchObject({ status: 400 });
});
