import { withDatabase } from '../support/database';
import { rounds } from '../support/rounds';
import { acceptMessage, attempt, createMailTenant, deliveryDeps, eventsOf, messageOf, recipientsOf, ScriptedTransport, type MailTenant } from '../support/mail-delivery';
import { createTenant } from '../support/tenant';
import { until } from '../support/until';

const test_ = withDatabase();
const db = () => test_.database;
let tenant: MailTenant;
beforeAll(async () => {
  tenant = await createMailTenant(db(), await createTenant(db(), 'secret'));
});
const due = (messageId: string) => db().pool.query(`update mail_recipient set next_attempt_at = now() where message_id = $1 and next_attempt_at is not null`, [messageId]);

test('an accepted message is tried once, and its recipients, events, counts and status say so', async () => {
  const transport = new ScriptedTransport();
  const id = await acceptMessage(db(), tenant, { to: ['a@y.org', 'b@y.org'] });
  expect(await attempt(deliveryDeps(db(), transport), [id])).toEqual([{ messageId: id, settled: true, nextAttemptAt: null }]);
  expect(transport.jobs.map((job) => [job.recipient, job.attempt])).toEqual([['a@y.org', 1], ['b@y.org', 1]]);
  expect(transport.jobs[0]?.envelopeFrom).toMatch(/^b\+[0-9a-z]{26}\.0\.[a-z2-7]{10}@bounce\.holdfast\.test$/);
  expect(transport.jobs[0]?.mime.toString()).toContain(`d=${tenant.domain}; s=hftest`);
  expect(await messageOf(db(), id)).toMatchObject({ status: 'delivered', counts: { delivered: 2 }, event_sequence: 2, workflow_id: 'test', selector: 'hftest', first_attempt_at: expect.any(Date), settled_at: expect.any(Date), dispatched_at: expect.any(Date) });
  expect(await recipientsOf(db(), id)).toMatchObject([{ status: 'delivered', attempt_no: 1, smtp_code: 250, delivered_at: expect.any(Date), lease_until: null }, { status: 'delivered' }]);
  expect((await eventsOf(db(), id)).map(({ type, sequence }) => [type, sequence])).toEqual([['delivered', 1], ['delivered', 2]]);
  expect(await attempt(deliveryDeps(db(), transport), [id])).toMatchObject([{ settled: true }]);
  expect(transport.jobs).toHaveLength(2);
});

test('a deferral waits, keeps what was said, and the next attempt sends the same bytes', async () => {
  const transport = new ScriptedTransport('delivered', ({ attempt: n }) => (n === 1 ? { outcome: 'deferred', code: 451, enhancedCode: '4.7.1', text: 'greylisted, try again in 600 seconds' } : { outcome: 'accepted', code: 250 }));
  const id = await acceptMessage(db(), tenant, { text: null, html: '<p>Grüße</p>' });
  const [first] = await attempt(deliveryDeps(db(), transport), [id]);
  const [row] = await recipientsOf(db(), id);
  expect(row).toMatchObject({ status: 'deferred', retry_owner: 'us', smtp_code: 451, enhanced_code: '4.7.1', attempt_no: 1 });
  expect(Math.round((row?.['next_attempt_at'] - row?.['last_attempt_at']) / 1_000)).toBeGreaterThanOrEqual(600);
  expect(first).toMatchObject({ settled: false, nextAttemptAt: row?.['next_attempt_at'] });
  expect(await attempt(deliveryDeps(db(), transport), [id])).toMatchObject([{ settled: false }]);
  expect(transport.jobs).toHaveLength(1);
  await due(id);
  expect(await attempt(deliveryDeps(db(), transport), [id])).toMatchObject([{ settled: true }]);
  expect(transport.jobs[1]?.mime.equals(transport.jobs[0]?.mime ?? Buffer.alloc(0))).toBe(true);
  expect((await eventsOf(db(), id)).map(({ type, attempt: n }) => [type, n])).toEqual([['deferred', 1], ['delivered', 2]]);
});

test.each([
  ['refused', { outcome: 'refused' as const, code: 550, enhancedCode: '5.1.1' }, { status: 'bounced', bounce_class: 'hard' }],
  ['rejected by the provider', { outcome: 'rejected' as const, code: 422 }, { status: 'failed', status_reason: 'provider_rejected' }],
  ['interrupted', { outcome: 'interrupted' as const }, { status: 'deferred', retry_owner: 'us' }],
])('an attempt that was %s', async (_, result, expected) => {
  const id = await acceptMessage(db(), tenant, { to: [`r${Math.random()}@y.org`] });
  await attempt(deliveryDeps(db(), new ScriptedTransport('delivered', () => result)), [id]);
  expect(await recipientsOf(db(), id)).toMatchObject([expected]);
  expect((await eventsOf(db(), id)).map(({ type }) => type)).toEqual([result.outcome === 'interrupted' ? 'interrupted' : expected.status]);
});

test('a hard bounce suppresses its address: the next message is not sent to it, and says why', async () => {
  const to = ['gone@y.org'];
  await attempt(deliveryDeps(db(), new ScriptedTransport('delivered', () => ({ outcome: 'refused', code: 550, enhancedCode: '5.1.1' }))), [await acceptMessage(db(), tenant, { to })]);
  const transport = new ScriptedTransport();
  const id = await acceptMessage(db(), tenant, { to: ['GONE@y.org'] });
  expect(await attempt(deliveryDeps(db(), transport), [id])).toMatchObject([{ settled: true }]);
  expect(transport.jobs).toEqual([]);
  expect(await messageOf(db(), id)).toMatchObject({ status: 'suppressed', status_reason: 'suppressed_bounce' });
  const { rows } = await db().pool.query(`select type from mail_event where mail_service_id = $1 and type = 'suppression.created'`, [tenant.serviceId]);
  expect(rows.length).toBeGreaterThanOrEqual(1);
});

test('a late worker changes nothing: its lease ended, another run tried, then it returns', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => { release = resolve; });
  const id = await acceptMessage(db(), tenant);
  const slow = new ScriptedTransport('delivered', async () => { await held; return { outcome: 'refused', code: 550, enhancedCode: '5.1.1' }; });
  const late = attempt(deliveryDeps(db(), slow), [id]);
  while (slow.jobs.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(await attempt(deliveryDeps(db(), new ScriptedTransport()), [id])).toMatchObject([{ settled: false }]);
  await db().pool.query('update mail_recipient set lease_until = now() where message_id = $1', [id]);
  expect(await attempt(deliveryDeps(db(), new ScriptedTransport()), [id])).toMatchObject([{ settled: true }]);
  release();
  expect(await late).toMatchObject([{ settled: true }]);
  expect(await recipientsOf(db(), id)).toMatchObject([{ status: 'delivered', attempt_no: 2, fence: 2 }]);
  expect((await eventsOf(db(), id)).map(({ type, attempt: n }) => [type, n])).toEqual([['interrupted', 1], ['delivered', 2]]);
});

test('what may not be sent any more is not: expired, cancelled, a domain that lost its proof, a suspended and a deleted service', async () => {
  const transport = new ScriptedTransport();
  const deps = deliveryDeps(db(), transport);
  const own = await createMailTenant(db(), await createTenant(db(), 'secret'));
  const [expired, cancelled, unproven, waiting, going] = [await acceptMessage(db(), own), await acceptMessage(db(), own), await acceptMessage(db(), own), await acceptMessage(db(), own), await acceptMessage(db(), own)];
  const sql = (text: string, ...values: unknown[]) => db().pool.query(text, values);
  await sql('update mail_message set expires_at = now() where id = $1', expired);
  await sql('update mail_message set cancel_requested_at = now() where id = $1', cancelled);
  await attempt(deps, [expired, cancelled]);
  await sql(`update mail_domain set status = 'suspended' where id = $1`, own.domainId);
  await attempt(deps, [unproven]);
  await sql(`update mail_service set status = 'suspended', suspended_reason = 'admin', suspended_at = now() where id = $1`, own.serviceId);
  await sql(`update mail_domain set status = 'verified' where id = $1`, own.domainId);
  await attempt(deps, [waiting]);
  await sql(`update mail_service set status = 'deleting', suspended_reason = null, suspended_at = null, deleted_at = now() where id = $1`, own.serviceId);
  await attempt(deps, [going]);
  expect(transport.jobs).toEqual([]);
  expect(await messageOf(db(), expired)).toMatchObject({ status: 'failed', status_reason: 'expired' });
  expect(await messageOf(db(), cancelled)).toMatchObject({ status: 'cancelled' });
  expect(await messageOf(db(), unproven)).toMatchObject({ status: 'failed', status_reason: 'domain_not_verified' });
  expect(await messageOf(db(), waiting)).toMatchObject({ status: 'deferred', settled_at: null });
  expect(await messageOf(db(), going)).toMatchObject({ status: 'cancelled', status_reason: 'service_deleted' });
});

const mailsOfTwenty = rounds(100, 5_000);
test(`one 250 per recipient: 20 workers over the same ${mailsOfTwenty} messages try each recipient once`, async () => {
  const own = await createMailTenant(db(), await createTenant(db(), 'secret'));
  const ids: string[] = [];
  for (let i = 0; i < mailsOfTwenty; i += 50) ids.push(...await Promise.all(Array.from({ length: 50 }, (_, n) => acceptMessage(db(), own, { to: [`a${i + n}@y.org`, `b${i + n}@y.org`] }))));
  const tried = new Map<string, number>();
  const transport = new ScriptedTransport('delivered', ({ recipientId }) => {
    tried.set(recipientId, (tried.get(recipientId) ?? 0) + 1);
    transport.jobs.length = 0;
    return { outcome: 'accepted', code: 250 };
  });
  const groups = Array.from({ length: ids.length / 50 }, (_, at) => ids.slice(at * 50, at * 50 + 50));
  await Promise.all(Array.from({ length: 20 }, async (_, worker) => {
    const deps = deliveryDeps(db(), transport);
    for (const group of worker % 2 === 0 ? groups : groups.toReversed()) await attempt(deps, worker % 3 === 0 ? group : group.toReversed());
  }));
  expect([tried.size, [...tried.values()].filter((times) => times !== 1)]).toEqual([mailsOfTwenty * 2, []]);
  const { rows } = await db().pool.query(`select count(*)::int as n from mail_message where mail_service_id = $1 and status = 'delivered' and counts = '{"delivered": 2}'`, [own.serviceId]);
  expect(rows[0].n).toBe(mailsOfTwenty);
}, rounds(60_000, 900_000));

test('an attempt that takes long keeps its lease; a cut ends it, and it is tried again', async () => {
  const cut = new AbortController();
  const id = await acceptMessage(db(), tenant, { to: ['long@y.org'] });
  const transport = new ScriptedTransport('delivered', (_job, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ outcome: 'interrupted', text: 'the attempt was cancelled' }))));
  const running = attempt(deliveryDeps(db(), transport), [id], { cut: cut.signal });
  await until(() => transport.jobs.length === 1);
  await db().pool.query(`update mail_recipient set lease_until = now() + interval '20 seconds' where message_id = $1`, [id]);
  await until(async () => (await recipientsOf(db(), id))[0]?.['lease_until'] > new Date(Date.now() + 60_000), 'the lease to be renewed');
  cut.abort();
  expect(await running).toMatchObject([{ settled: false, nextAttemptAt: expect.any(Date) }]);
  expect(await eventsOf(db(), id)).toMatchObject([{ type: 'interrupted', attempt: 1 }]);
}, 60_000);

test('a stop takes no new recipient, and what was taken ends', async () => {
  const own = await createMailTenant(db(), await createTenant(db(), 'secret'));
  const stop = new AbortController();
  const id = await acceptMessage(db(), own, { to: Array.from({ length: 75 }, (_, i) => `r${i}@y.org`) });
  const transport = new ScriptedTransport('delivered', () => { stop.abort(); return { outcome: 'accepted' }; });
  expect(await attempt(deliveryDeps(db(), transport), [id], { stop: stop.signal })).toMatchObject([{ settled: false }]);
  expect(transport.jobs.length).toBeLessThanOrEqual(20);
  const rows = await recipientsOf(db(), id);
  expect(rows.map(({ status, attempt_no }) => `${status} ${attempt_no}`).filter((text) => !['delivered 1', 'queued 0'].includes(text))).toEqual([]);
  expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(transport.jobs.length);
  expect(await attempt(deliveryDeps(db(), new ScriptedTransport()), [id])).toMatchObject([{ settled: true }]);
  const { rows: [hour] } = await db().pool.query('select live_attempted, delivered from mail_stats_hour where mail_service_id = $1', [own.serviceId]);
  expect(hour).toEqual({ live_attempted: '75', delivered: '75' });
});

test('statistics of the hour count what became of recipients, and live mail alone for reputation', async () => {
  const own = await createMailTenant(db(), await createTenant(db(), 'secret'));
  const answer = ({ recipient }: { recipient: string }) => (recipient.startsWith('bad') ? { outcome: 'refused' as const, code: 550, enhancedCode: '5.1.1' } : { outcome: 'accepted' as const });
  const ids = [await acceptMessage(db(), own, { to: ['ok@y.org', 'bad@y.org'] }), await acceptMessage(db(), own, { to: ['bad2@y.org'], mode: 'test' })];
  await attempt(deliveryDeps(db(), new ScriptedTransport('delivered', answer)), ids);
  const { rows } = await db().pool.query('select * from mail_stats_hour where mail_service_id = $1', [own.serviceId]);
  expect(rows).toMatchObject([{ accepted: '3', delivered: '1', bounced: '2', live_attempted: '2', live_hard_bounced: '1' }]);
});
