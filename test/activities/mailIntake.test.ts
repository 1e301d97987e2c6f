import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { connect as connectTls } from 'node:tls';
import { withDatabase } from '../support/database';
import { insertMailService, insertMessage } from '../support/mail-rows';
import { createTenant } from '../support/tenant';
import { silent } from '../support/accepted-work';
import { systemClock } from '../../src/core/clock';
import { acceptReport } from '../../src/mail/intake/accept';
import { AddressLimits } from '../../src/mail/intake/address-limits';
import { startIntakeListener, type IntakeListener } from '../../src/mail/intake/listener';
import { feedDueReports } from '../../src/mail/intake/simulated';
import { envelopeSender, holdfastId } from '../../src/mail/rules/proof';
import { bounceReport, complaintReport } from '../../src/mail/rules/simulated-reports';
import { planReport } from '../../src/mail/store/captures';

const test_ = withDatabase();
const secret = 'a secret of at least thirty-two bytes';
const config = { MAIL_VERP_SECRET: secret, MAIL_BOUNCE_DOMAIN: 'bounce.holdfast.test', MAIL_INBOUND_HOST: '127.0.0.1', MAIL_INBOUND_PORT: 0, MAIL_HELO_NAME: 'mx.holdfast.test' };
const deps = () => ({ db: test_.database, clock: systemClock, config, log: silent });
let listener: IntakeListener;
let serviceId: string;

beforeAll(async () => {
  const tenant = await createTenant(test_.database, 'a secret of at least thirty-two bytes');
  serviceId = await insertMailService(test_.database, { orgId: tenant.orgId, projectId: tenant.projectId });
  listener = await startIntakeListener(deps());
});
afterAll(() => listener.close());

const verp = (messageId: string, recipientIndex = 0) => envelopeSender({ messageId, recipientIndex }, 'bounce.acme.com', secret);
const original = (messageId: string, mac = holdfastId(messageId, secret)) => Buffer.from(`From: a@acme.com\r\nX-Holdfast-Id: ${mac}\r\nSubject: x\r\n\r\nbody`);
const statuses = async (messageId: string) => (await test_.database.pool.query('select status from mail_recipient where message_id = $1 order by position', [messageId])).rows.map(({ status }: { status: string }) => status);
const events = async (messageId: string) => (await test_.database.pool.query('select type, source, applied, enhanced_code from mail_event where message_id = $1 order by sequence', [messageId])).rows;
const bounce = (messageId: string, recipient = 'r0@y.test', code = '5.1.1') => bounceReport({ envelopeFrom: verp(messageId), recipient, mime: original(messageId), at: new Date() }, code);

/** A conversation in which each line waits for its answer; answers with the codes. */
async function converse(lines: readonly (string | Buffer)[]): Promise<number[]> {
  const [host = '', port = ''] = listener.address.split(':');
  const socket = createConnection({ host, port: Number(port) });
  const codes: number[] = [];
  const left = [...lines];
  for await (const line of createInterface({ input: socket })) {
    if (line.charAt(3) === '-') continue;
    codes.push(Number(line.slice(0, 3)));
    const next = left.shift();
    if (next === undefined) break;
    socket.write(Buffer.isBuffer(next) ? Buffer.concat([next, Buffer.from('\r\n.\r\n')]) : `${next}\r\n`);
  }
  socket.destroy();
  return codes.slice(1);
}
const deliver = (to: string, bytes: Buffer) => converse(['EHLO mx.y.test', 'MAIL FROM:<>', `RCPT TO:<${to}>`, 'DATA', bytes]);

test('by SMTP: a bounce is merged before 250 is said, and the same bytes again change nothing', async () => {
  const messageId = await insertMessage(test_.database, serviceId, ['delivered', 'delivered']);
  const report = bounce(messageId, 'somebody-else@y.test');
  expect(await deliver(verp(messageId, 1).toUpperCase(), report)).toEqual([250, 250, 250, 354, 250]);
  expect(await statuses(messageId)).toEqual(['delivered', 'bounced']);
  expect(await events(messageId)).toEqual([{ type: 'bounced', source: 'dsn', applied: true, enhanced_code: '5.1.1' }]);
  expect(await deliver(verp(messageId, 1).toUpperCase(), report)).toEqual([250, 250, 250, 354, 250]);
  expect(await events(messageId)).toHaveLength(1);
  expect((await test_.database.pool.query(`select reason from mail_suppression where mail_service_id = $1 and address_key = 'r1@y.test'`, [serviceId])).rows).toEqual([{ reason: 'bounce' }]);
});

test('by SMTP: takes nothing for addresses without a right MAC, nothing too big, and no bare line feed', async () => {
  const messageId = await insertMessage(test_.database, serviceId, ['delivered']);
  const altered = verp(messageId).replace(/\.(\w)(\w{9})@/, (_all, first: string, rest: string) => `.${first === 'a' ? 'b' : 'a'}${rest}@`);
  for (const to of [altered, 'postmaster@bounce.holdfast.test', 'fbl@elsewhere.test', 'b+x@bounce.holdfast.test']) {
    expect(await converse(['EHLO mx.y.test', 'MAIL FROM:<>', `RCPT TO:<${to}>`])).toEqual([250, 250, 550]);
  }
  expect(await deliver(verp(messageId), Buffer.from(bounce(messageId).toString().replace('\r\n\r\nThis', '\n\nThis')))).toEqual([250, 250, 250, 354, 550]);
  expect(await deliver(verp(messageId), Buffer.concat([bounce(messageId), Buffer.alloc(1_100_000, 'x\r\n')]))).toEqual([250, 250, 250, 354, 552]);
  expect([await statuses(messageId), await events(messageId)]).toEqual([['delivered'], []]);
});

test('by SMTP: STARTTLS is offered, and a report may come through it', async () => {
  const [host = '', port = ''] = listener.address.split(':');
  const plain = createConnection({ host, port: Number(port) });
  const line = (text: string) => plain.write(`${text}\r\n`);
  const heard: string[] = [];
  for await (const reply of createInterface({ input: plain })) {
    heard.push(reply);
    if (reply.startsWith('220') && heard.length === 1) line('EHLO mx.y.test');
    if (reply.startsWith('250 ')) line('STARTTLS');
    if (reply.startsWith('220') && heard.length > 1) break;
  }
  expect(heard.some((reply) => /^250[- ]STARTTLS/.test(reply))).toBe(true);
  plain.removeAllListeners('data');
  const secure = connectTls({ socket: plain, rejectUnauthorized: false });
  const codes: string[] = [];
  secure.write('EHLO mx.y.test\r\n');
  for await (const reply of createInterface({ input: secure })) {
    codes.push(reply.slice(0, 4));
    if (reply.startsWith('250 ')) break;
  }
  expect([codes.at(-1), secure.getProtocol(), secure.getPeerCertificate().subject.CN]).toEqual(['250 ', 'TLSv1.3', 'mx.holdfast.test']);
  secure.destroy();
});

test('one address has so many connections and mails a minute, another its own; this machine has no bounds', () => {
  let now = 0;
  const limits = new AddressLimits({ connections: 2, mailsPerMinute: 3, exemptLoopback: true }, () => now);
  const enter = (address: string, times: number) => Array.from({ length: times }, () => limits.entered(address));
  expect([enter('192.0.2.1', 3), enter('2001:db8::1', 1), enter('2001:db8::2', 2), enter('127.0.0.1', 5)]).toEqual([[true, true, false], [true], [true, false], [true, true, true, true, true]]);
  limits.left('192.0.2.1');
  expect(enter('192.0.2.1', 2)).toEqual([true, false]);
  const bring = (address: string, times: number) => Array.from({ length: times }, () => limits.mayBring(address));
  expect([bring('192.0.2.1', 4), bring('::ffff:192.0.2.1', 1), bring('192.0.2.2', 1)]).toEqual([[true, true, true, false], [false], [true]]);
  now += 60_000;
  expect(bring('192.0.2.1', 1)).toEqual([true]);
});

test('by SMTP: an address that brings too much is asked to come later', async () => {
  const strict = await startIntakeListener({ ...deps(), addressLimits: { connections: 1, mailsPerMinute: 1, exemptLoopback: false } });
  const [host = '', port = ''] = strict.address.split(':');
  const first = createConnection({ host, port: Number(port) });
  await new Promise((resolve) => first.once('data', resolve));
  const [second] = await new Promise<string[]>((resolve) => createConnection({ host, port: Number(port) }).once('data', (bytes: Buffer) => resolve([bytes.toString().slice(0, 3)])));
  expect(second).toBe('421');
  const said: string[] = [];
  const left = ['MAIL FROM:<>', 'RSET', 'MAIL FROM:<>'];
  first.write('EHLO mx.y.test\r\n');
  for await (const reply of createInterface({ input: first })) {
    if (reply.charAt(3) === '-') continue;
    said.push(reply.slice(0, 3));
    const next = left.shift();
    if (next === undefined) break;
    first.write(`${next}\r\n`);
  }
  first.destroy();
  expect(said).toEqual(['250', '250', '250', '450']);
  await strict.close();
});

test('by SMTP: 451 while the report cannot be stored', async () => {
  const broken = { ...deps(), db: { ...test_.database, pool: { connect: () => Promise.reject(new Error('no database')) } } };
  const messageId = await insertMessage(test_.database, serviceId, ['delivered']);
  const other = await startIntakeListener(Object.assign(broken, { db: Object.assign(Object.create(test_.database), { pool: broken.db.pool }) }));
  const before = listener;
  listener = other;
  try {
    expect(await deliver(verp(messageId), bounce(messageId))).toEqual([250, 250, 250, 354, 451]);
  } finally {
    listener = before;
    await other.close();
  }
});

test('every group of a mixed report counts for the recipient it names; delays and relays only stand in the events', async () => {
  const messageId = await insertMessage(test_.database, serviceId, ['sent', 'sent', 'sent', 'sent']);
  const group = (n: number, action: string, status: string) => `\r\nFinal-Recipient: rfc822; R${n}@Y.test\r\nAction: ${action}\r\nStatus: ${status}\r\n`;
  const single = bounce(messageId).toString();
  const mixed = single.replace(/\r\nFinal-Recipient: [\s\S]*?Simulated late bounce\r\n(?=\r\n--)/, group(0, 'failed', '5.1.1') + group(1, 'delivered', '2.0.0') + group(2, 'delayed', '4.2.2') + group(3, 'expanded', '2.0.0'));
  expect(mixed).not.toBe(single);
  expect(await acceptReport(deps(), verp(messageId), Buffer.from(mixed))).toBe('applied');
  expect(await statuses(messageId)).toEqual(['bounced', 'delivered', 'sent', 'sent']);
  expect(await events(messageId)).toEqual([
    { type: 'bounced', source: 'dsn', applied: true, enhanced_code: '5.1.1' }, { type: 'delivered', source: 'dsn', applied: true, enhanced_code: '2.0.0' },
    { type: 'deferred', source: 'dsn', applied: false, enhanced_code: null }, { type: 'sent', source: 'dsn', applied: false, enhanced_code: null },
  ]);
});

test('a complaint counts if an envelope sender of ours or, with one recipient, the header proves it', async () => {
  const [one, two, forged] = [await insertMessage(test_.database, serviceId, ['delivered']), await insertMessage(test_.database, serviceId, ['delivered', 'delivered']), await insertMessage(test_.database, serviceId, ['delivered'])];
  const complain = (messageId: string, { mac, from = '' }: { mac?: string; from?: string } = {}) =>
    acceptReport(deps(), 'fbl@bounce.holdfast.test', complaintReport({ envelopeFrom: from, recipient: 'redacted@y.test', mime: original(messageId, mac), at: new Date() }, 'fbl@bounce.holdfast.test'));
  expect(await complain(one)).toBe('applied');
  expect(await complain(two)).toBe('unproven');
  expect(await complain(two, { from: verp(two, 1) })).toBe('applied');
  expect(await complain(forged, { mac: `${forged}.aaaaaaaaaaaaaaaa` })).toBe('unproven');
  expect([await statuses(one), await statuses(two), await statuses(forged)]).toEqual([['complained'], ['delivered', 'complained'], ['delivered']]);
  expect(await events(one)).toMatchObject([{ type: 'complained', source: 'arf', applied: true }]);
});

test('bounces without a report part need the envelope sender; other mail says nothing', async () => {
  const messageId = await insertMessage(test_.database, serviceId, ['delivered']);
  const informal = (body: string, headers = 'Subject: failed') => Buffer.from(`From: x@y.test\r\n${headers}\r\n\r\n${body}\r\n`);
  expect(await acceptReport(deps(), 'fbl@bounce.holdfast.test', informal('550 5.4.1 no'))).toBe('unproven');
  expect(await acceptReport(deps(), verp(messageId), informal('I am on holiday.'))).toBe('unreadable');
  expect(await statuses(messageId)).toEqual(['delivered']);
  expect(await acceptReport(deps(), verp(messageId), informal('550 5.4.1 no'))).toBe('applied');
  expect(await statuses(messageId)).toEqual(['bounced']);
});

test('what the capture transport planned reaches the intake when it is due, once', async () => {
  const messageId = await insertMessage(test_.database, serviceId, ['delivered']);
  const plan = (delaySeconds: number) => planReport(test_.database, { messageId, recipientId: 'rcp_x', kind: 'dsn', envelopeTo: verp(messageId), mime: bounce(messageId), delaySeconds });
  await plan(3_600);
  await plan(0);
  await feedDueReports(deps());
  expect(await statuses(messageId)).toEqual(['delivered']);
  await test_.database.pool.query(`update mail_capture_report set due_at = now() where message_id = $1`, [messageId]);
  expect(await feedDueReports(deps())).toBe(0);
  expect(await statuses(messageId)).toEqual(['bounced']);
  await feedDueReports(deps());
  expect(await events(messageId)).toHaveLength(1);
});
