import { ApplicationFailure } from '@temporalio/common';
import { createDeliveryActivities } from '../../activities/mail/delivery';
import { acceptMessage, createMailTenant, deliveryDeps, eventsOf, messageOf, recipientsOf, ScriptedTransport, type MailTenant } from '../support/mail-delivery';
import { withDatabase } from '../support/database';
import { createTenant } from '../support/tenant';
import { withTemporal } from '../support/temporal';
import { torture } from '../support/torture';
import { until } from '../support/until';
import { withWorkflowLab, type Activities } from '../support/workflow-lab';

const server = withTemporal();
const lab = withWorkflowLab(server);
const test_ = withDatabase();
const db = () => test_.database;
let tenant: MailTenant;
beforeAll(async () => {
  tenant = await createMailTenant(db(), await createTenant(db(), 'secret'));
});

/** Deferred recipients are due again after a second. */
const activities = (transport: ScriptedTransport): Activities => createDeliveryActivities(deliveryDeps(db(), transport, { retrySeconds: [1] }));
const dueNow = (messageId: string) => db().pool.query('update mail_recipient set next_attempt_at = now() where message_id = $1 and next_attempt_at is not null', [messageId]);

test('deliverMessage: whatever happens to an attempt, the message has one acceptance and one outcome', async () => {
  const steps = await torture(lab, {
    workflow: 'deliverMessage',
    begin: async () => {
      const messageId = await acceptMessage(db(), tenant);
      const transport = new ScriptedTransport();
      const own = activities(transport);
      return {
        input: { messageId },
        activities: { ...own, attemptMessages: async (input: never) => {
          await dueNow(messageId);
          return own['attemptMessages']?.(input);
        } },
        verify: async ({ end }, { torment }) => {
          const message = await messageOf(db(), messageId);
          if (torment?.startsWith('refused before') || torment === 'refused, every undo run twice') return;
          expect(transport.jobs.map(({ recipient }) => recipient)).toEqual(['x@y.org']);
          expect(message).toMatchObject({ status: 'delivered' });
          expect((await eventsOf(db(), messageId)).map(({ type }) => type)).toEqual(['delivered']);
          if (torment === null) expect(end).toBe('completed');
        },
      };
    },
    withoutEnd: ['attemptMessages'],
  });
  expect(steps).toEqual(['attemptMessages']);
}, 120_000);

test('deliverMessage with two recipients, one of them deferred: every attempt may be refused, lost or cancelled, and no recipient has two acceptances', async () => {
  const steps = await torture(lab, {
    workflow: 'deliverMessage',
    begin: async () => {
      const messageId = await acceptMessage(db(), tenant, { to: ['thick1@y.org', 'thick2@y.org'] });
      const transport = new ScriptedTransport('delivered', ({ recipient, attempt: n }) => (recipient === 'thick2@y.org' && n === 1 ? { outcome: 'deferred', code: 451 } : { outcome: 'accepted' }));
      const own = activities(transport);
      return {
        input: { messageId },
        activities: { ...own, attemptMessages: async (input: never) => {
          await dueNow(messageId);
          return own['attemptMessages']?.(input);
        } },
        verify: async ({ end }, { torment }) => {
          const accepted = (await eventsOf(db(), messageId)).filter(({ type }) => type === 'delivered').map(({ recipient }) => recipient);
          expect(accepted).toEqual([...new Set(accepted)]);
          expect(transport.jobs.length).toBeLessThanOrEqual(3);
          if (end === 'completed') expect(await messageOf(db(), messageId)).toMatchObject({ status: 'delivered', counts: { delivered: 2 } });
          else expect([end, torment]).toEqual(['cancelled', 'cancelled during it']);
        },
      };
    },
    withoutEnd: ['attemptMessages'],
  });
  expect(steps).toEqual(['attemptMessages', 'attemptMessages']);
}, 120_000);

test('deliverBatch: whatever happens to its attempt, each message is settled by it or has a run of its own', async () => {
  const children = new Set<string>();
  const hasRun = (id: string) => server.environment.client.workflow.getHandle(`mail-deliver/${id}`).describe().then(() => true, () => false);
  const steps = await torture(lab, {
    workflow: 'deliverBatch',
    begin: async () => {
      const ids = await Promise.all(Array.from({ length: 3 }, (_, i) => acceptMessage(db(), tenant, { to: [`torn${i}@y.org`] })));
      const transport = new ScriptedTransport('delivered', ({ recipient, attempt: n }) => (recipient === 'torn1@y.org' && n === 1 ? { outcome: 'deferred' } : { outcome: 'accepted' }));
      return {
        input: { messageIds: ids }, activities: activities(transport),
        verify: async ({ end }) => {
          const tries = transport.jobs.map(({ recipient, attempt: n }) => `${recipient} ${n}`);
          expect(tries.toSorted()).toEqual([...new Set(tries)].toSorted());
          expect(tries.filter((one) => one.endsWith(' 2') && !one.startsWith('torn1'))).toEqual([]);
          for (const id of ids) {
            children.add(id);
            const { settled_at: settledAt } = await messageOf(db(), id);
            if (end === 'completed') expect({ id, known: settledAt !== null || await hasRun(id) }).toEqual({ id, known: true });
          }
        },
      };
    },
  });
  expect(steps).toEqual(['attemptMessages']);
  for (const id of children) await server.environment.client.workflow.getHandle(`mail-deliver/${id}`).terminate().catch(() => undefined);
}, 120_000);

test('a batch and a single run at one message: one acceptance', async () => {
  const id = await acceptMessage(db(), tenant, { to: ['both@y.org'] });
  const transport = new ScriptedTransport('delivered', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return { outcome: 'accepted' };
  });
  const workflowId = `lab/both-${id}`;
  const single = lab.run({ workflow: 'deliverMessage', input: { messageId: id }, activities: activities(transport), workflowId });
  const batch = await lab.run({ workflow: 'deliverBatch', input: { messageIds: [id] }, activities: activities(transport) });
  await until(async () => (await messageOf(db(), id))['settled_at'] !== null);
  await server.environment.client.workflow.getHandle(workflowId).signal('wake').catch(() => undefined); // it may wait for the other's lease
  expect([batch.end, (await single).end]).toEqual(['completed', 'completed']);
  expect(transport.jobs).toHaveLength(1);
  expect((await eventsOf(db(), id)).map(({ type }) => type)).toEqual(['delivered']);
  await server.environment.client.workflow.getHandle(`mail-deliver/${id}`).terminate().catch(() => undefined);
}, 60_000);

test('deliverMessage waits as long as the rows say, is woken by its signal, and ends when all are settled', async () => {
  const messageId = await acceptMessage(db(), tenant);
  const workflowId = `lab/deliver-${messageId}`;
  const handle = () => server.environment.client.workflow.getHandle(workflowId);
  const transport = new ScriptedTransport('delivered', ({ attempt }) => (attempt === 1 ? { outcome: 'deferred', retryAfterSeconds: 3_600 } : { outcome: 'accepted' }));
  const running = lab.run({ workflow: 'deliverMessage', input: { messageId }, activities: activities(transport), workflowId });
  await until(() => handle().query<{ rounds: number; nextAttemptAt: string | null }>('progress').then(({ rounds, nextAttemptAt }) => rounds === 1 && nextAttemptAt !== null, () => false));
  expect(transport.jobs).toHaveLength(1);
  await dueNow(messageId);
  await handle().signal('wake');
  expect(await running).toMatchObject({ end: 'completed', result: { rounds: 2 } });
  expect(await messageOf(db(), messageId)).toMatchObject({ status: 'delivered' });
}, 60_000);

test('deliverBatch tries all at once; what is deferred has a run of its own', async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, (_, i) => acceptMessage(db(), tenant, { to: [`batch${i}@y.org`] })));
  const transport = new ScriptedTransport('delivered', ({ recipient, attempt }) => (recipient === 'batch3@y.org' && attempt === 1 ? { outcome: 'deferred' } : { outcome: 'accepted' }));
  const { end, result } = await lab.run({ workflow: 'deliverBatch', input: { messageIds: ids }, activities: activities(transport) });
  expect({ end, result }).toEqual({ end: 'completed', result: { settled: 4, handedOn: 1 } });
  const [deferred = ''] = ids.slice(3);
  expect(await server.environment.client.workflow.getHandle(`mail-deliver/${deferred}`).describe()).toMatchObject({ type: 'deliverMessage' });
  expect(await recipientsOf(db(), deferred)).toMatchObject([{ status: 'deferred' }]);
  await server.environment.client.workflow.getHandle(`mail-deliver/${deferred}`).terminate();
}, 60_000);

test('deliverBatch whose activity finally failed hands every message on; one with a run already is left to it', async () => {
  const ids = await Promise.all([acceptMessage(db(), tenant), acceptMessage(db(), tenant)]);
  const [first] = ids;
  await server.environment.client.workflow.start('deliverMessage', { workflowId: `mail-deliver/${first}`, taskQueue: 'nobody', args: [{ messageId: first }] });
  const refused = async () => { throw ApplicationFailure.nonRetryable('no', 'backend_error'); };
  const run = await lab.run({ workflow: 'deliverBatch', input: { messageIds: ids }, activities: { attemptMessages: refused } });
  expect(run).toMatchObject({ end: 'completed', result: { settled: 0, handedOn: 2 } });
  for (const id of ids) await server.environment.client.workflow.getHandle(`mail-deliver/${id}`).terminate();
}, 60_000);
