import { inTransaction } from '../../src/db/transaction';
import { eventReconcileRule, messageReconcileRule } from '../../src/mail/message-reconcile';
import { evaluateReputation } from '../../src/mail/reputation';
import { purgeExpiredMail } from '../../src/mail/retention';
import { claimWaiting, markDispatched } from '../../src/mail/store/dispatch';
import { withDatabase } from '../support/database';
import { acceptMessage, attempt, createMailTenant, deliveryDeps, messageOf, ScriptedTransport } from '../support/mail-delivery';
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
  await markDispatched(db().prisma, [lost, patient], 'mail-batch/gone');
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
  const taken = await Promise.all([claimWaiting(db().prisma, 6), claimWaiting(db().prisma, 6), claimWaiting(db().prisma, 6)]);
  const ids = taken.flat().map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toEqual(expect.arrayContaining(few));
});
