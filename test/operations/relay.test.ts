import { execute, rows } from '../../src/db/client';
import { createListener } from '../../src/db/listen';
import { claimDue } from '../../src/operations/outbox';
import { startRelay, type Relay } from '../../src/operations/relay';
import { settleOperation } from '../../src/operations/store';
import { acceptOperation, eventually, silent, temporalOf, testMetrics } from '../support/accepted-work';
import { withDatabase } from '../support/database';
import { withTemporal } from '../support/temporal';

const db = withDatabase();
const server = withTemporal();

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
  await execute(db.database.prisma, 'delete from operation');
});

function openRelay(address = server.address): { relay: Relay; metrics: ReturnType<typeof testMetrics> } {
  const temporal = temporalOf({ address, namespace: server.namespace });
  const listener = createListener({ url: db.url, process: 'test', log: silent });
  const metrics = testMetrics();
  const relay = startRelay({ database: db.database, temporal, listener, log: silent, metrics });
  closers.push(() => temporal.close(), () => listener.close(), () => relay.stop());
  return { relay, metrics };
}

const due = (id: string) => execute(db.database.prisma, 'update operation set next_attempt_at = now() where id = $1', id);
const dispatched = async (id: string) => (await rows<{ id: string }>(db.database.prisma, 'select id from operation where id = $1 and dispatched_at is not null', id)).length === 1;
const isRunning = (workflowId: string | null) => server.environment.client.workflow.getHandle(workflowId ?? '').describe().then(({ status }) => status.name === 'RUNNING', () => false);

test('what nobody started after the commit is started by the relay', async () => {
  const operation = await acceptOperation(db.database);
  await due(operation.id);
  openRelay();
  await eventually(() => dispatched(operation.id));
  expect(await isRunning(operation.workflowId)).toBe(true);
});

test('a row written while the relay runs is started once its grace is over, without being told', async () => {
  openRelay();
  const operation = await acceptOperation(db.database);
  await eventually(() => dispatched(operation.id));
  expect(await isRunning(operation.workflowId)).toBe(true);
});

test('a row the API is about to start is left alone for two seconds', async () => {
  await acceptOperation(db.database);
  expect(await claimDue(db.database.prisma, 10)).toEqual([]);
});

test('two relays claim each row once', async () => {
  const operations = await Promise.all(Array.from({ length: 40 }, () => acceptOperation(db.database)));
  await execute(db.database.prisma, 'update operation set next_attempt_at = now()');
  const relays = [openRelay(), openRelay()];
  for (const { id } of operations) await eventually(() => dispatched(id));
  await Promise.all(relays.map(({ relay }) => relay.stop()));
  const counts = await Promise.all(relays.map(async ({ metrics }) => (await metrics.operationStarts.get()).values.reduce((sum, { value }) => sum + value, 0)));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(operations.length);
});

test('while Temporal is away rows keep their turn; what was accepted is done after it returns', async () => {
  const operation = await acceptOperation(db.database);
  await due(operation.id);
  const away = openRelay('127.0.0.1:1');
  await eventually(async () => ((await away.metrics.operationStarts.get()).values.find(({ labels }) => labels.result === 'unavailable')?.value ?? 0) >= 2);
  await away.relay.stop();
  const [row] = await rows<{ attempts: number; due: boolean }>(db.database.prisma, 'select attempts, next_attempt_at <= now() as due from operation where id = $1', operation.id);
  expect(row).toEqual({ attempts: 0, due: true });
  openRelay();
  await eventually(() => dispatched(operation.id));
});

test('a relay outlives its database connections being cut', async () => {
  openRelay();
  await db.database.pool.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()');
  const operation = await eventually(() => acceptOperation(db.database).catch(() => null));
  await eventually(() => dispatched(operation.id).catch(() => false));
});

test('started work that never began is started again, ever more slowly: its id may have been held by an older run', async () => {
  const operation = await acceptOperation(db.database);
  await execute(db.database.prisma, 'update operation set dispatched_at = now(), next_attempt_at = now() where id = $1', operation.id);
  openRelay();
  await eventually(() => isRunning(operation.workflowId));
  const [row] = await rows<{ attempts: number; pause: number }>(db.database.prisma,
    'select attempts, extract(epoch from next_attempt_at - now())::float8 as pause from operation where id = $1', operation.id);
  expect(row?.attempts).toBe(1);
  expect(row?.pause).toBeGreaterThan(10);
});

test('a run that Temporal was not told to wake is woken by the relay, also when the work was done meanwhile', async () => {
  const operation = await acceptOperation(db.database, {}, { signal: 'recheck' });
  const plain = await acceptOperation(db.database);
  for (const { id } of [operation, plain]) {
    await settleOperation(db.database.prisma, id, 'succeeded');
    await due(id);
  }
  openRelay();
  await eventually(() => dispatched(operation.id));
  expect(await isRunning(operation.workflowId)).toBe(true);
  expect(await claimDue(db.database.prisma, 10)).toEqual([]);
  expect(await dispatched(plain.id)).toBe(false);
});
