import { developmentEventsSecret } from '../../src/config';
import { newId } from '../../src/core/ids';
import { webhookMac } from '../../src/core/webhook-signature';
import { rematchEvents } from '../../src/mail/provider-events';
import { withApi } from '../support/api';
import { acceptMessage, attempt, createMailTenant, deliveryDeps, eventsOf, messageOf, recipientsOf, ScriptedTransport, type MailTenant } from '../support/mail-delivery';

const api = withApi();
let mail: MailTenant;
const db = () => api.deps.db;
beforeAll(async () => {
  mail = await createMailTenant(db(), api.tenant);
});

const path = '/v1/api/mail/provider-events/generic';
const post = (raw: string, headers: Record<string, string>, to = path) => api.ask('POST', to, { raw, headers: { 'content-type': 'application/json', ...headers } });
function signed(body: object, { secret = developmentEventsSecret, at = Date.now() } = {}) {
  const raw = JSON.stringify(body);
  const id = newId('req');
  const timestamp = String(Math.floor(at / 1_000));
  return { raw, headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${webhookMac(Buffer.from(raw), { id, timestamp, secret }).toString('base64')}` } };
}
const tell = (...events: object[]) => {
  const { raw, headers } = signed({ events });
  return post(raw, headers);
};
const event = (type: string, more: object = {}) => ({ id: newId('req'), type, ...more });
const sentMessage = async (to = ['x@y.org']) => {
  const id = await acceptMessage(db(), mail, { to });
  await attempt(deliveryDeps(db(), new ScriptedTransport('sent', ({ recipientId }) => ({ outcome: 'accepted', code: 250, providerMessageId: `p-${recipientId}` }))), [id]);
  return id;
};
const stored = async () => (await db().pool.query(`select (select count(*) from mail_provider_event)::int + (select count(*) from mail_unmatched_event)::int + (select count(*) from mail_event)::int as n`)).rows[0].n;

test('delivery, bounce and complaint become the recipient\'s status, once each', async () => {
  const messageId = await sentMessage(['a@y.org', 'b@y.org', 'c@y.org']);
  expect(await messageOf(db(), messageId)).toMatchObject({ status: 'sent' });
  const events = [
    event('delivered', { messageId, recipient: 'A@y.org' }), event('bounced', { messageId, recipient: 'b@y.org', smtp: { code: 550, enhancedCode: '5.1.1', diagnostic: 'no such user' }, bounce: { class: 'hard' } }),
    event('complained', { messageId, recipient: 'c@y.org', complaint: { feedbackType: 'abuse' } }),
  ];
  expect(await tell(...events)).toMatchObject({ status: 200, body: { ok: true, received: 3, duplicates: 0, unmatched: 0, ignored: 0 } });
  expect(await recipientsOf(db(), messageId)).toMatchObject([{ status: 'delivered' }, { status: 'bounced', bounce_class: 'hard', enhanced_code: '5.1.1' }, { status: 'complained', feedback_type: 'abuse' }]);
  expect(await messageOf(db(), messageId)).toMatchObject({ status: 'complained', counts: { delivered: 1, bounced: 1, complained: 1 } });
  expect(await tell(...events)).toMatchObject({ body: { received: 3, duplicates: 3 } });
  expect((await eventsOf(db(), messageId)).map(({ type, source }) => [type, source]).slice(3)).toEqual([['delivered', 'provider:generic'], ['bounced', 'provider:generic'], ['complained', 'provider:generic']]);
  const { rows } = await db().pool.query('select address_key, reason from mail_suppression where mail_service_id = $1 order by 1', [mail.serviceId]);
  expect(rows).toEqual([{ address_key: 'b@y.org', reason: 'bounce' }, { address_key: 'c@y.org', reason: 'complaint' }]);
});

test('of two reports of one time the same one stands, whichever came first', async () => {
  const occurredAt = new Date(Date.now() - 60_000).toISOString();
  const ends = [];
  for (const [run, order] of [['a', 'b'], ['b', 'a']].entries()) {
    const messageId = await sentMessage([`tie${run}@y.org`]);
    for (const which of order) await tell({ id: `${which}-${messageId}`, type: 'bounced', messageId, occurredAt, bounce: { class: which === 'a' ? 'soft' : 'policy' } });
    ends.push((await recipientsOf(db(), messageId)).map((row) => row['bounce_class']));
  }
  expect(ends).toEqual([['soft'], ['soft']]);
});

test('a message is found by the provider\'s id where ours is unknown', async () => {
  const messageId = await sentMessage(['found@y.org']);
  const [row] = await recipientsOf(db(), messageId);
  expect(await tell(event('delivered', { messageId: newId('msg'), providerMessageId: `p-${row?.['id']}` }))).toMatchObject({ body: { unmatched: 0 } });
  expect(await messageOf(db(), messageId)).toMatchObject({ status: 'delivered' });
});

test('every order of the same events ends alike; what comes late is stored and changes nothing', async () => {
  const at = (seconds: number) => new Date(Date.now() - 60_000 + seconds * 1_000).toISOString();
  const kinds = [{ type: 'deferred', occurredAt: at(1) }, { type: 'delivered', occurredAt: at(2) }, { type: 'bounced', occurredAt: at(3), smtp: { code: 552, enhancedCode: '5.2.2' }, bounce: { class: 'soft' } }];
  const orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
  const ends = [];
  for (const order of orders) {
    const messageId = await sentMessage(['order@y.org']);
    for (const index of order) expect(await tell(event(kinds[index]?.type ?? '', { ...kinds[index], messageId }))).toMatchObject({ body: { unmatched: 0 } });
    const [row] = await recipientsOf(db(), messageId);
    ends.push(JSON.stringify([row?.['status'], row?.['bounce_class'], row?.['smtp_code'], row?.['delivered_at']]));
    expect(await eventsOf(db(), messageId)).toHaveLength(4);
  }
  expect([...new Set(ends)]).toEqual([JSON.stringify(['bounced', 'soft', 552, null])]);
});

test('an event that names no recipient means all that are not final', async () => {
  const messageId = await sentMessage(['a2@y.org', 'b2@y.org']);
  await tell(event('delivered', { messageId, recipient: 'a2@y.org' }));
  await tell(event('rejected', { messageId }));
  expect((await recipientsOf(db(), messageId)).map(({ status, status_reason }) => [status, status_reason])).toEqual([['delivered', null], ['failed', 'provider_rejected']]);
});

test('a forged, altered or stale event, and one without headers, is refused and leaves no row', async () => {
  const before = await stored();
  const good = signed(event('delivered', { messageId: await acceptMessage(db(), mail) }));
  const attempts = [
    post(`${good.raw} `, good.headers), post(good.raw, {}), post(good.raw, { ...good.headers, 'webhook-id': 'other' }),
    ...[{ secret: `whsec_${Buffer.alloc(24, 9).toString('base64')}` }, { at: Date.now() - 301_000 }, { at: Date.now() + 301_000 }].map((how) => {
      const { raw, headers } = signed(event('delivered'), how);
      return post(raw, headers);
    }),
  ];
  for (const answer of await Promise.all(attempts)) expect(answer).toMatchObject({ status: 401, body: { code: 'invalid_signature' } });
  expect(await stored()).toBe(before);
  expect(await post(good.raw, good.headers, '/v1/api/mail/provider-events/unknown')).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect(await post(good.raw, good.headers, '/v1/api/mail/provider-events/resend')).toMatchObject({ status: 404, body: { code: 'not_found' } });
});

test('an event for a message that is not known yet is kept, and counts when its provider\'s id is', async () => {
  const id = await acceptMessage(db(), mail);
  const early = event('bounced', { providerMessageId: `early-${id}`, recipient: 'x@y.org', smtp: { code: 550, enhancedCode: '5.7.1' } });
  expect(await tell(early)).toMatchObject({ body: { received: 1, unmatched: 1 } });
  expect(await tell(early)).toMatchObject({ body: { received: 1, duplicates: 1, unmatched: 0 } });
  await attempt(deliveryDeps(db(), new ScriptedTransport('sent', () => ({ outcome: 'accepted', providerMessageId: `early-${id}` }))), [id]);
  expect(await recipientsOf(db(), id)).toMatchObject([{ status: 'bounced', enhanced_code: '5.7.1' }]);
  expect((await db().pool.query(`select 1 from mail_unmatched_event where provider_message_id = $1`, [`early-${id}`])).rows).toEqual([]);
});

test('kept events are matched again by reconcile; another service\'s recipient is never meant', async () => {
  const messageId = newId('msg');
  expect(await tell(event('delivered', { messageId }))).toMatchObject({ body: { unmatched: 1 } });
  const known = await sentMessage();
  await db().pool.query(`update mail_unmatched_event set message_id = $2, event = jsonb_set(event::jsonb, '{messageId}', to_jsonb($2::text))::json where message_id = $1`, [messageId, known]);
  expect(await rematchEvents(db())).toBe(1);
  expect(await messageOf(db(), known)).toMatchObject({ status: 'delivered' });
  expect(await tell(event('complained', { messageId: known, recipient: 'stranger@y.org' }))).toMatchObject({ body: { unmatched: 1 } });
  expect(await messageOf(db(), known)).toMatchObject({ status: 'delivered' });
});

test('what is kept of an event holds no address and no words of a server', async () => {
  const messageId = await sentMessage(['canary-local@y.org']);
  await tell(event('bounced', { messageId, recipient: 'canary-local@y.org', smtp: { code: 550, diagnostic: 'canary-words' } }), event('other', { messageId, recipient: 'canary-local@y.org' }));
  const { rows } = await db().pool.query('select payload::text from mail_provider_event');
  expect(rows.filter(({ payload }) => /canary/.test(payload))).toEqual([]);
  expect(api.logLines.filter((line) => line.includes('canary'))).toEqual([]);
});
