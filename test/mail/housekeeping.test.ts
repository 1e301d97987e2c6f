import { inTransaction } from '../../src/db/transaction';
import { eventReconcileRule, messageReconcileRule } from '../../src/mail/message-reconcile';
import { evaluateReputation } from '../../src/mail/reputation';
import { purgeExpiredMail } from '../../src/mail/retention';
import { createRefusalAlert } from '../../src/mail/delivery/refusals';
import { cancelServiceMessages, purgeServiceContent } from '../../src/mail/service';
import { keepCapture, planReport } from '../../src/mail/store/captures';
import { claimWaiting, markDispatched } from '../../src/mail/store/dispatch';
import { claimDeliveries } from '../../src/mail/store/webhook-deliveries';
import { withDatabase } from '../support/database';
import { platformOf } from '../../src/dns/rules/platform';
import { testConfig } from '../support/postgres-api';
import { createMetrics } from '../../src/core/metrics';
import { silent } from '../support/accepted-work';
import { acceptMessage, attempt, createMailTenant, deliveryDeps, eventsOf, messageOf, recipientsOf, ScriptedTransport } from '../support/mail-delivery';
import { createTenant } from '../support/tenant';

const test_ = withDatabase();
const db = () => test_.database;
const tenant = async () => createMailTenant(db(), await createTenant(db(), 'secret'));
const rules = { MAIL_REPUTATION_MIN_RECIPIENTS: 1_000, MAIL_BOUNCE_RATE_WARNING: 0.02, MAIL_BOUNCE_RATE_SUSPENSION: 0.05, MAIL_COMPLAINT_RATE_WARNING: 0.001, MAIL_COMPLAINT_RATE_SUSPENSION: 0.005 };

test.each([
  [999, 999, 0, 'active', null], [1_000, 19, 0, 'active', null], [1_000, 20, 0, 'active', 'service.warning'], [1_000, 50, 0, 'suspended', 'service.suspended'],
  [10_000, 0, 9, 'active', null], [10_000, 0, 10, 'active', 'service.warning'], [10_000, 0, 50, 'suspended', 'service.suspended'],
])('of %s recipients %s hard bounces and %s complaints leave a service %s (%s), told once', async (...row) => {
  const [attempted, bounced, complained, status, notice] = row;
  const { serviceId } = await tenant();
  await db().pool.query(`insert into mail_stats_hour (mail_service_id, hour, live_attempted, live_hard_bounced, live_complained) values ($1, date_trunc('hour', now() - interval '3 days'), $2, $3, $4)`, [serviceId, attempted, bounced, complained]);
  await evaluateReputation({ db: db(), config: rules });
  await evaluateReputation({ db: db(), config: rules });
  const { rows: [service] } = await db().pool.query('select status, suspended_reason from mail_service where id = $1', [serviceId]);
  expect(service).toEqual({ status, suspended_reason: status === 'suspended' ? 'reputation' : null });
  const { rows } = await db().pool.query('select type from mail_event where mail_service_id = $1', [serviceId]);
  expect(rows.map(({ type }) => type)).toEqual(notice === null ? [] : [notice]);
});

test('bodies go 30 days after settling, messages after the time of their plan, and what waits stays', async () => {
  const own = await tenant();
  const [fresh, settled, old, waiting] = [await acceptMessage(db(), own), await acceptMessage(db(), own), await acceptMessage(db(), own), await acceptMessage(db(), own)];
  await attempt(deliveryDeps(db(), new ScriptedTransport()), [fresh, settled, old]);
  await db().pool.query(`update mail_message set settled_at = now() - interval '31 days' where id = any($1)`, [[settled, old]]);
  await db().pool.query(`update mail_message set created_at = now() - interval '31 days' where id = any($1)`, [[old, waiting]]);
  await purgeExpiredMail({ db: db(), config: { MAIL_CONTENT_RETENTION_DAYS: 30 } });
  const left = async (table: string, column: string) => (await db().pool.query(`select ${column} as id from ${table} where ${column} = any($1) order by 1`, [[fresh, settled, old, waiting]])).rows.map(({ id }) => id);
  expect(await left('mail_message', 'id')).toEqual([fresh, settled, waiting].toSorted());
  expect(await left('mail_content', 'message_id')).toEqual([fresh, waiting].toSorted());
  expect(await messageOf(db(), settled)).toMatchObject({ content_purged_at: expect.any(Date), status: 'delivered' });
});

test('a message whose run is lost waits for another; one whose attempt is not overdue is left alone', async () => {
  const own = await tenant();
  const [lost, patient] = [await acceptMessage(db(), own), await acceptMessage(db(), own)];
  await markDispatched(db(), [lost, patient], 'mail-batch/gone');
  await db().pool.query(`update mail_message set dispatched_at = now() - interval '11 minutes' where id = any($1)`, [[lost, patient]]);
  await db().pool.query(`update mail_recipient set next_attempt_at = now() - interval '11 minutes' where message_id = $1`, [lost]);
  for (const rule of [messageReconcileRule, eventReconcileRule]) expect(await inTransaction(db(), async (tx) => rule.reopen?.(tx, 200))).toEqual([]);
  expect(await messageOf(db(), lost)).toMatchObject({ dispatched_at: null });
  expect(await messageOf(db(), patient)).toMatchObject({ dispatched_at: expect.any(Date) });
});

test('waiting messages are taken in turns between services, by one relay each', async () => {
  await db().pool.query('update mail_message set dispatched_at = now() where dispatched_at is null');
  const [flood, small] = [await tenant(), await tenant()];
  for (let i = 0; i < 30; i++) await acceptMessage(db(), flood);
  const few = [await acceptMessage(db(), small), await acceptMessage(db(), small)];
  const taken = await Promise.all([claimWaiting(db(), 6), claimWaiting(db(), 6), claimWaiting(db(), 6)]);
  const ids = taken.flat().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(expect.arrayContaining(few));
});

const steps = () => ({ db: db(), dnsPlatform: platformOf(testConfig(test_.url)) });

test('a service that goes: its waiting mail is cancelled and told so, its webhooks hear nothing more, and page by page nothing of it is left', async () => {
  const own = await tenant();
  const sql = (text: string, ...values: unknown[]) => db().pool.query(text, values);
  await sql(`insert into mail_webhook (id, mail_service_id, url, events, secret) values ($1, $1, 'https://x.test', '{message.cancelled,message.delivered}', 'x')`, own.serviceId);
  const ids = await Promise.all(Array.from({ length: 3 }, () => acceptMessage(db(), own, { to: ['a@y.org', 'b@y.org'] })));
  const [first = '', second = ''] = ids;
  await attempt(deliveryDeps(db(), new ScriptedTransport()), [second]);
  await sql(`update mail_recipient set status = 'sending', lease_until = now() + interval '1 minute', next_attempt_at = null where message_id = $1 and position = 0`, first);
  await sql(`update mail_service set status = 'deleting', deleted_at = now() where id = $1`, own.serviceId);
  expect(await inTransaction(db(), (tx) => claimDeliveries(tx, { limit: 10, perWebhook: 5, leaseSeconds: 60 }))).toEqual([]);
  for (let run = 0; run < 2; run++) await cancelServiceMessages(steps(), own.serviceId);
  expect((await recipientsOf(db(), first)).map(({ status, status_reason: reason }) => [status, reason])).toEqual([['sending', null], ['cancelled', 'service_deleted']]);
  expect((await eventsOf(db(), first)).map(({ type, source }) => [type, source])).toEqual([['cancelled', 'api']]);
  expect(await messageOf(db(), second)).toMatchObject({ status: 'delivered', cancel_requested_at: null });
  expect(await messageOf(db(), ids[2] ?? '')).toMatchObject({ status: 'cancelled', status_reason: 'service_deleted', counts: { cancelled: 2 }, settled_at: expect.any(Date) });
  expect((await sql('select type from mail_webhook_delivery where webhook_id = $1', own.serviceId)).rows).toEqual([{ type: 'message.delivered' }, { type: 'message.delivered' }]);
  await keepCapture(db(), Buffer.from('x'), { messageId: first, recipientId: 'rcp_x', envelopeFrom: 'b@x.test', recipient: 'a@y.org', attempt: 1 }, true);
  await planReport(db(), { messageId: first, recipientId: 'rcp_x', kind: 'dsn', envelopeTo: 'b@x.test', mime: Buffer.from('x'), delaySeconds: 60 });
  for (let run = 0; run < 2; run++) await purgeServiceContent(steps(), own.serviceId);
  const left = await sql(`select (select count(*) from mail_content where message_id = any($1)) + (select count(*) from mail_capture where message_id = any($1)) + (select count(*) from mail_capture_report where message_id = any($1))
    + (select count(*) from mail_webhook where mail_service_id = $2) + (select count(*) from mail_suppression where mail_service_id = $2) + (select count(*) from mail_message where id = any($1) and content_purged_at is null) as n`, ids, own.serviceId);
  expect(left.rows).toEqual([{ n: '0' }]);
});

test('reports of captured mail and old deliveries are gone after their time, those that are due are not', async () => {
  const own = await tenant();
  const id = await acceptMessage(db(), own);
  for (const [recipientId, age] of [['old', '8 days'], ['new', '1 day']]) {
    await planReport(db(), { messageId: id, recipientId: `${recipientId}-${id}`, kind: 'arf', envelopeTo: 'b@x.test', mime: Buffer.from('x'), delaySeconds: 0 });
    await db().pool.query(`update mail_capture_report set due_at = now() - $2::interval where recipient_id = $1`, [`${recipientId}-${id}`, age]);
  }
  await purgeExpiredMail({ db: db(), config: { MAIL_CONTENT_RETENTION_DAYS: 30 } });
  expect((await db().pool.query('select recipient_id from mail_capture_report where message_id = $1', [id])).rows).toEqual([{ recipient_id: `new-${id}` }]);
});

test('what happened is kept as long as the plan keeps messages', async () => {
  await db().pool.query(`select ensure_mail_partitions(now() - interval '3 months', now())`);
  const [launch, growth] = [await tenant(), await tenant()];
  await db().pool.query(`update mail_service set plan = 'growth' where id = $1`, [growth.serviceId]);
  const kept = await acceptMessage(db(), launch);
  const note = async (serviceId: string, id: string, messageId: string | null) => db().pool.query(`insert into mail_event (id, mail_service_id, message_id, sequence, type, source, occurred_at, received_at)
    values ($2, $1, $3, case when $3::text is not null then 1 end, 'quota.warning', 'api', now() - interval '31 days', now() - interval '31 days')`, [serviceId, id, messageId]);
  await note(launch.serviceId, 'of nobody', null);
  await note(launch.serviceId, 'of a message that is gone', 'msg_gone');
  await note(launch.serviceId, 'of a message that is kept', kept);
  await note(growth.serviceId, 'of a longer plan', null);
  await purgeExpiredMail({ db: db(), config: { MAIL_CONTENT_RETENTION_DAYS: 30 } });
  const { rows } = await db().pool.query('select id from mail_event where mail_service_id = any($1) order by id', [[launch.serviceId, growth.serviceId]]);
  expect(rows).toEqual([{ id: 'of a longer plan' }, { id: 'of a message that is kept' }]);
});

test('months of events that nobody keeps are dropped, and partitions for the months to come exist', async () => {
  await db().pool.query(`select ensure_mail_partitions(now() - interval '15 months', now() - interval '14 months')`);
  const months = async () => (await db().pool.query(`select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'mail_event'::regclass and c.relname ~ '_\\d{4}_\\d{2}$'`)).rows.length;
  const before = await months();
  await purgeExpiredMail({ db: db(), config: { MAIL_CONTENT_RETENTION_DAYS: 30 } });
  expect(before - await months()).toBe(2);
  const { rows } = await db().pool.query(`select to_regclass('mail_event_' || to_char(now() at time zone 'UTC' + interval '2 months', 'YYYY_MM')) is not null as there`);
  expect(rows).toEqual([{ there: true }]);
});

test('a message whose signing key is gone is not sent unsigned', async () => {
  const own = await tenant();
  const id = await acceptMessage(db(), own);
  await db().pool.query(`update mail_message set selector = 'hfgone' where id = $1`, [id]);
  const transport = new ScriptedTransport();
  await attempt(deliveryDeps(db(), transport), [id]);
  expect(transport.jobs).toEqual([]);
  expect(await recipientsOf(db(), id)).toMatchObject([{ status: 'deferred', diagnostic: 'the key that signs this message is gone' }]);
});

test('a provider that refuses us is counted each time and told of once a minute', async () => {
  const said: object[] = [];
  const metrics = createMetrics('test');
  let now = 0;
  const alert = createRefusalAlert({ log: Object.assign(Object.create(silent), { error: (facts: object) => said.push(facts) }), metrics }, () => now);
  const own = await tenant();
  const deps = deliveryDeps(db(), new ScriptedTransport('sent', () => ({ outcome: 'deferred', code: 401, operatorFault: true })), { alertRefusal: alert });
  await attempt(deps, [await acceptMessage(db(), own, { to: ['a@y.org', 'b@y.org'] })]);
  now = 60_000;
  await attempt(deps, [await acceptMessage(db(), own)]);
  expect(said).toMatchObject([{ alert: 'transportRefusesUs', transport: 'capture', code: 401 }, { alert: 'transportRefusesUs' }]);
  expect(await metrics.registry.getSingleMetricAsString('mail_transport_refusals')).toMatch(/transport="capture"[^\n]*\} 3/);
});
