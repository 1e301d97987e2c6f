import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { genericEvents } from '../../../src/adapters/mail-events/generic';
import { mailersendEvents } from '../../../src/adapters/mail-events/mailersend';
import { mailgunEvents } from '../../../src/adapters/mail-events/mailgun';
import { resendEvents } from '../../../src/adapters/mail-events/resend';
import { newId } from '../../../src/core/ids';
import { webhookMac } from '../../../src/core/webhook-signature';
import type { ProviderEvents } from '../../../src/mail/ports';

const now = new Date(Date.UTC(2026, 2, 4, 5, 6, 7));
const seconds = (offset = 0) => String(now.getTime() / 1000 + offset);
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const other = `whsec_${Buffer.alloc(24, 8).toString('base64')}`;
const messageId = newId('msg');

type Signed = { raw: Buffer; headers: IncomingHttpHeaders };
type Case = {
  events: ProviderEvents; body: Record<string, unknown>; secrets: { right: string; wrong: string };
  sign: (body: Record<string, unknown>, secret: string, at: string) => Signed;
  /** Seconds after which a signature is too old; null: it carries no time. */
  staleAfter: number | null;
};

const standard = (prefix: string) => (body: Record<string, unknown>, key: string, at: string): Signed => {
  const raw = Buffer.from(JSON.stringify(body));
  const signature = webhookMac(raw, { id: 'evt_1', timestamp: at, secret: key }).toString('base64');
  return { raw, headers: { [`${prefix}-id`]: 'evt_1', [`${prefix}-timestamp`]: at, [`${prefix}-signature`]: `v1,AAAA v1,${signature} v2,zzz` } };
};
const hmac = (key: string, text: string | Buffer) => createHmac('sha256', key).update(text).digest('hex');

const resendBody = { type: 'email.bounced', created_at: '2026-03-04T05:06:00.000Z', data: { email_id: 'em_1', to: ['x@y.org'], tags: { holdfast_message: messageId }, bounce: { type: 'Permanent', subType: 'NoEmail', message: '550 5.1.1 no such user' } } };
const mailgunData = {
  id: 'mg_1', event: 'failed', severity: 'permanent', timestamp: now.getTime() / 1000, recipient: 'x@y.org', 'delivery-status': { code: 550, message: '5.1.1 no such user', 'mx-host': 'mx.y.org' },
  message: { headers: { 'message-id': 'a@b' } }, 'user-variables': { holdfast_message: messageId },
};
const mailersendBody = { type: 'activity.hard_bounced', created_at: '2026-03-04T05:06:00.000000Z', data: { id: 'ac_1', email: { id: 'e', message: { id: 'm_1' }, recipient: { email: 'x@y.org' } }, morph: { reason: '550 5.1.1 no such user' } } };

const cases: (Case & { name: string })[] = [
  { name: 'generic', events: genericEvents, body: { id: 'e1', type: 'delivered', messageId }, secrets: { right: secret, wrong: other }, sign: standard('webhook'), staleAfter: 300 },
  { name: 'generic by svix', events: genericEvents, body: { id: 'e1', type: 'delivered', messageId }, secrets: { right: secret, wrong: other }, sign: standard('svix'), staleAfter: 300 },
  { name: 'resend', events: resendEvents, body: resendBody, secrets: { right: secret, wrong: other }, sign: standard('svix'), staleAfter: 300 },
  {
    name: 'mailgun', events: mailgunEvents, body: { 'event-data': mailgunData }, secrets: { right: 'mg-key', wrong: 'mg-other' }, staleAfter: 86_400,
    sign: (body, key, at) => ({ raw: Buffer.from(JSON.stringify({ signature: { timestamp: at, token: 'tok', signature: hmac(key, `${at}tok`) }, ...body })), headers: {} }),
  },
  {
    name: 'mailersend', events: mailersendEvents, body: mailersendBody, secrets: { right: 'ms-key', wrong: 'ms-other' }, staleAfter: null,
    sign: (body, key) => {
      const raw = Buffer.from(JSON.stringify(body));
      return { raw, headers: { signature: hmac(key, raw) } };
    },
  },
];

describe.each(cases)('$name', ({ name, events, body, secrets, sign, staleAfter }) => {
  const verify = ({ raw, headers }: Signed, keys = [secrets.wrong, secrets.right]) => events.verify(raw, headers, keys, now);

  test('is believed with any of the secrets, and with no other', () => {
    expect(verify(sign(body, secrets.right, seconds()))).toBe(true);
    expect(verify(sign(body, secrets.right, seconds()), [secrets.right, secrets.wrong])).toBe(true);
    expect(verify(sign(body, secrets.right, seconds()), [secrets.wrong])).toBe(false);
    expect(verify(sign(body, secrets.right, seconds()), [])).toBe(false);
  });

  test('is not believed when it was altered, or bears no signature', () => {
    const { raw, headers } = sign(body, secrets.right, seconds());
    const inBody = name === 'mailgun';
    const altered = inBody ? raw.toString().replace('"token":"tok"', '"token":"tox"') : raw.toString().replace('{', '{ ');
    expect(verify({ raw: Buffer.from(altered), headers })).toBe(false);
    expect(verify({ raw: inBody ? Buffer.from(JSON.stringify(body)) : raw, headers: {} })).toBe(false);
    for (const header of Object.keys(headers)) {
      expect(verify({ raw, headers: { ...headers, [header]: undefined } })).toBe(false);
      expect(verify({ raw, headers: { ...headers, [header]: '' } })).toBe(false);
    }
    expect(verify({ raw: Buffer.alloc(0), headers: {} })).toBe(false);
    expect(verify({ raw: Buffer.from('no json'), headers: {} })).toBe(false);
  });

  test('is not believed outside its time', () => {
    const at = (offset: number) => verify(sign(body, secrets.right, seconds(offset)));
    const edge = staleAfter ?? 1e6;
    expect([at(-edge), at(-edge - 1), at(301)]).toEqual(staleAfter === null ? [true, true, true] : [true, false, false]);
  });

  test('refuses what is not its own form', () => {
    for (const strange of [null, [], 'x', {}, { data: 1 }]) expect(() => events.parse(strange, {})).toThrow(expect.objectContaining({ code: 'validation_error' }));
  });
});

test('generic: one event or many, with ids of their own or by their place', () => {
  const full = {
    type: 'bounced', providerMessageId: 'p', recipient: 'x@y.org', occurredAt: '2026-03-04T05:06:07+01:00', smtp: { code: 550, enhancedCode: '5.1.1', diagnostic: 'gone', mxHost: 'mx' },
    bounce: { class: 'hard', subType: 'NoEmail' },
  };
  expect(genericEvents.parse({ events: [full, { id: 'mine', type: 'complained', messageId, complaint: { feedbackType: 'abuse' } }] }, { 'webhook-id': 'w1' })).toEqual([
    {
      providerEventId: 'w1#0', type: 'bounced', providerMessageId: 'p', recipient: 'x@y.org', occurredAt: new Date('2026-03-04T04:06:07Z'),
      reply: { code: 550, enhancedCode: '5.1.1', text: 'gone', mxHost: 'mx' }, bounce: { class: 'hard', subType: 'NoEmail' },
    },
    { providerEventId: 'mine', type: 'complained', messageId, complaint: { feedbackType: 'abuse' } },
  ]);
  expect(genericEvents.parse({ type: 'delivered', messageId }, { 'svix-id': 's' })).toEqual([{ providerEventId: 's#0', type: 'delivered', messageId }]);
  expect(() => genericEvents.parse({ type: 'opened', messageId }, {})).toThrow();
  expect(() => genericEvents.parse({ type: 'delivered' }, {})).toThrow();
  expect(() => genericEvents.parse({ events: Array.from({ length: 101 }, () => ({ type: 'delivered', messageId })) }, {})).toThrow();
});

test.each([
  ['email.delivered', {}, { type: 'delivered' }],
  ['email.delivery_delayed', {}, { type: 'deferred' }],
  ['email.bounced', { bounce: { type: 'Transient', subType: 'General' } }, { type: 'bounced', bounce: { class: 'soft', subType: 'General' } }],
  ['email.bounced', { bounce: { type: 'Permanent', subType: 'General' } }, { type: 'bounced', bounce: { class: 'hard', subType: 'General' } }],
  ['email.bounced', {}, { type: 'bounced', bounce: { class: 'undetermined' } }],
  ['email.complained', {}, { type: 'complained', complaint: {} }],
  ['email.failed', { failed: { reason: 'reached_daily_quota' } }, { type: 'rejected', reply: { text: 'reached_daily_quota' } }],
  ['email.suppressed', {}, { type: 'rejected' }],
  ['email.opened', {}, { type: 'other' }],
])('resend: %s %j', (type, more, expected) => {
  const [event] = resendEvents.parse({ type, created_at: '2026-03-04T05:06:00Z', data: { email_id: 'em', to: ['x@y.org'], tags: [{ name: 'holdfast_message', value: messageId }], ...more } }, { 'svix-id': 's1' });
  expect(event).toEqual({ providerEventId: 's1', providerMessageId: 'em', messageId, recipient: 'x@y.org', occurredAt: new Date('2026-03-04T05:06:00Z'), ...expected });
});

test.each([
  [{ event: 'delivered' }, { type: 'delivered' }],
  [{ event: 'failed', severity: 'permanent' }, { type: 'bounced', bounce: { class: 'hard' } }],
  [{ event: 'failed', severity: 'permanent', reason: 'old' }, { type: 'bounced', bounce: { class: 'soft', subType: 'old' } }],
  [{ event: 'failed', severity: 'temporary', reason: 'old' }, { type: 'bounced', bounce: { class: 'soft', subType: 'old' } }],
  [{ event: 'failed', severity: 'temporary' }, { type: 'deferred' }],
  [{ event: 'complained' }, { type: 'complained', complaint: {} }],
  [{ event: 'rejected' }, { type: 'rejected' }],
  [{ event: 'opened' }, { type: 'other' }],
])('mailgun: %j', (change, expected) => {
  const [event] = mailgunEvents.parse({ 'event-data': { ...mailgunData, severity: undefined, ...change } });
  expect(event).toEqual({
    providerEventId: 'mg_1', providerMessageId: 'a@b', messageId, recipient: 'x@y.org', occurredAt: now,
    reply: { code: 550, enhancedCode: '5.1.1', text: '5.1.1 no such user', mxHost: 'mx.y.org' }, ...expected,
  });
});

test('mailgun: its token and the event it belongs to', () => {
  expect(mailgunEvents.oneTimeToken?.({ signature: { timestamp: seconds(), token: 'tok', signature: 'x' }, 'event-data': mailgunData })).toEqual({ token: 'tok', eventId: 'mg_1' });
});

test.each([
  ['activity.delivered', 'delivered', undefined], ['activity.soft_bounced', 'deferred', undefined], ['activity.hard_bounced', 'bounced', { class: 'hard' }],
  ['activity.spam_complaint', 'complained', undefined], ['activity.opened', 'other', undefined],
])('mailersend: %s is %s, in both of its forms', (type, expected, bounce) => {
  const [nested] = mailersendEvents.parse({ ...mailersendBody, type });
  const [flat] = mailersendEvents.parse({ type, created_at: mailersendBody.created_at, data: { id: 'ac_1', email: 'x@y.org', message_id: 'm_1', meta: { reason: '550 5.1.1 no such user' } } });
  expect(nested).toMatchObject({ providerEventId: 'ac_1', type: expected, providerMessageId: 'm_1', recipient: 'x@y.org', reply: { code: 550, enhancedCode: '5.1.1' } });
  expect(nested?.bounce).toEqual(bounce);
  expect(flat).toEqual(nested);
});
