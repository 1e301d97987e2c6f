import { SmtpRelayTransport } from '../../src/adapters/mail-transport/smtp-relay';
import { withDatabase } from '../support/database';
import { acceptMessage, attempt, createMailTenant, deliveryDeps, eventsOf, messageOf, recipientsOf, type MailTenant } from '../support/mail-delivery';
import { SmtpSink } from '../support/smtp-sink';
import { createTenant } from '../support/tenant';

/** Attempts through the real SMTP client, at a server that makes trouble: from the first try to the last outcome. */
const test_ = withDatabase();
const db = () => test_.database;
let tenant: MailTenant;
let sink: SmtpSink;
let transport: SmtpRelayTransport;
beforeAll(async () => {
  tenant = await createMailTenant(db(), await createTenant(db(), 'secret'));
});
beforeEach(async () => {
  sink = await SmtpSink.start({ hideSTARTTLS: true });
  transport = new SmtpRelayTransport({ url: `smtp://127.0.0.1:${sink.port}`, connections: 3, tls: 'opportunistic', heloName: 'holdfast.test', timeoutMs: 20_000 });
});
afterEach(async () => {
  await transport.close();
  await sink.close();
});
const dueNow = (messageId: string) => db().pool.query('update mail_recipient set next_attempt_at = now() where message_id = $1 and next_attempt_at is not null', [messageId]);
/** Rounds of attempts until nothing is left to do; how many. */
async function settle(messageId: string): Promise<number> {
  for (let round = 1; round <= 5; round++) {
    await dueNow(messageId);
    const [progress] = await attempt(deliveryDeps(db(), transport), [messageId]);
    if (progress?.settled) return round;
  }
  throw new Error('It did not settle in five rounds.');
}
const bytesOf = (recipient: string) => sink.mails.filter(({ to }) => to.includes(recipient)).map(({ bytes }) => bytes.toString('latin1'));
const told = async (messageId: string) => (await eventsOf(db(), messageId)).map(({ type, recipient, attempt: n }) => `${recipient.split('@')[0]} ${type} ${n}`);

test('greylisting: refused for now, then taken, the same bytes', async () => {
  sink.trouble.push({ at: 'rcpt', answer: '451 4.7.1 greylisted, try again in 60 seconds', times: 1 });
  const id = await acceptMessage(db(), tenant, { to: ['grey@y.org'] });
  expect(await settle(id)).toBe(2);
  expect(await told(id)).toEqual(['grey deferred 1', 'grey sent 2']);
  expect(bytesOf('grey@y.org')).toHaveLength(1);
});

test('421 in the middle: the line is given up, the mail is deferred and goes over another', async () => {
  sink.trouble.push({ at: 'mail', answer: '421 4.3.2 shutting down', times: 2 });
  const id = await acceptMessage(db(), tenant, { to: ['busy@y.org'] });
  expect(await settle(id)).toBeGreaterThan(1);
  expect((await told(id)).at(-1)).toMatch(/^busy sent/);
  expect(bytesOf('busy@y.org')).toHaveLength(1);
});

test('a line that breaks after the final dot: nobody knows, which is visible; the mail goes again, byte for byte', async () => {
  sink.trouble.push({ at: 'data', answer: 'lost', to: 'dot@y.org', times: 1 });
  const id = await acceptMessage(db(), tenant, { to: ['dot@y.org'], html: '<p>Grüße</p>', text: null });
  await attempt(deliveryDeps(db(), transport), [id]);
  expect(await recipientsOf(db(), id)).toMatchObject([{ status: 'deferred', retry_owner: 'us' }]);
  expect(await settle(id)).toBe(1);
  expect(await told(id)).toEqual(['dot interrupted 1', 'dot sent 2']);
  const [first, second, ...more] = bytesOf('dot@y.org');
  expect([second === first, more]).toEqual([true, []]);
});

test('a line that breaks before the final dot was taken by nobody: no ambiguity, one copy', async () => {
  sink.trouble.push({ at: 'rcpt', answer: 'drop', to: 'early@y.org', times: 1 });
  const id = await acceptMessage(db(), tenant, { to: ['early@y.org'] });
  expect(await settle(id)).toBe(2);
  expect(await told(id)).toEqual(['early deferred 1', 'early sent 2']);
  expect(bytesOf('early@y.org')).toHaveLength(1);
});

test('many recipients, each with a fate of its own: taken, gone for good, refused by policy, full, greylisted, cut', async () => {
  sink.trouble.push(
    { at: 'rcpt', answer: '550 5.1.1 no such user', to: 'gone@y.org' }, { at: 'rcpt', answer: '550 5.7.1 not wanted', to: 'policy@y.org' }, { at: 'rcpt', answer: '552 5.2.2 full', to: 'full@y.org' },
    { at: 'rcpt', answer: '451 4.7.1 later', to: 'grey@y.org', times: 1 }, { at: 'data', answer: '554 5.6.0 broken', to: 'content@y.org' }, { at: 'rcpt', answer: '550 no', to: 'bare@y.org' },
  );
  const names = ['ok', 'gone', 'policy', 'full', 'grey', 'content', 'bare'];
  const id = await acceptMessage(db(), tenant, { to: names.map((name) => `${name}@y.org`) });
  expect(await settle(id)).toBe(2);
  const shown = (await recipientsOf(db(), id)).map(({ address, status, bounce_class: bounce, attempt_no: attempts }) => [address.split('@')[0], status, bounce, attempts]);
  expect(shown).toEqual([
    ['ok', 'sent', null, 1], ['gone', 'bounced', 'hard', 1], ['policy', 'bounced', 'policy', 1], ['full', 'bounced', 'soft', 1], ['grey', 'sent', null, 2], ['content', 'bounced', 'soft', 1], ['bare', 'bounced', 'hard', 1],
  ]);
  expect(await messageOf(db(), id)).toMatchObject({ status: 'bounced', counts: { sent: 2, bounced: 5 }, settled_at: expect.any(Date) });
  const { rows } = await db().pool.query('select address_key from mail_suppression where mail_service_id = $1', [tenant.serviceId]);
  expect(rows).toEqual([{ address_key: 'gone@y.org' }]);
});
