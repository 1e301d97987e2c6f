import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { LeashedServer } from '../../src/dev/leash';
import { anyFreePort } from '../../src/dev/ports';
import { findTemporalBinary } from '../../src/dev/temporal-binary';
import { startTemporalServer } from '../../src/dev/temporal-server';
import { acceptOperation, eventually } from '../support/accepted-work';
import { withDatabase } from '../support/database';
import { masterKey } from '../support/postgres-api';

const root = join(__dirname, '../..');
const db = withDatabase();
const running: { worker?: ChildProcess; server?: LeashedServer; connection?: Connection; home: string; port: number; metrics: number } = { home: '', port: 0, metrics: 0 };

beforeAll(async () => {
  running.home = await mkdtemp(join(tmpdir(), 'holdfast-test-worker-'));
  running.port = await anyFreePort();
  running.metrics = await anyFreePort();
});
afterAll(async () => {
  running.worker?.kill('SIGKILL');
  await running.connection?.close();
  await running.server?.stop();
  await rm(running.home, { recursive: true, force: true });
});

/** Keeps its data between starts, unless `name` is another. */
async function startServer(name = 'temporal'): Promise<void> {
  running.server = await startTemporalServer({
    binary: await findTemporalBinary({ env: process.env, root, say: () => undefined }),
    port: running.port, httpPort: await anyFreePort(), metricsPort: await anyFreePort(), uiPort: null,
    dbFile: join(running.home, `${name}.db`), logFile: join(running.home, 'log'),
  });
}

async function stopServer(): Promise<void> {
  if (running.server) process.kill(running.server.pid, 'SIGKILL');
  await running.server?.exited;
}

function startWorker(): ChildProcess {
  running.worker = fork(join(root, 'dist/src/worker.js'), {
    cwd: root, silent: true,
    env: {
      PATH: process.env['PATH'], DATABASE_URL: db.url, TEMPORAL_ADDRESS: `127.0.0.1:${running.port}`, TEMPORAL_NAMESPACE: 'reliability', HOLDFAST_MASTER_KEY: masterKey,
      AUTH_SECRET: 'test-secret-test-secret-test-secret', METRICS_ADDR: `127.0.0.1:${running.metrics}`, WORKER_QUEUES: 'system', LOG_LEVEL: 'error',
    },
  });
  return running.worker;
}

const readiness = () => fetch(`http://127.0.0.1:${running.metrics}/readyz`).then(async (response) => ({ status: response.status, body: await response.text() }), () => null);

/** Any workflow of the queue will do: what is proven is that it is started and done. */
const accept = (name: string) => acceptOperation(db.database, {
  kind: 'system.test', start: { workflow: 'reconcile', workflowId: `system-test/${name}`, queue: 'system', payload: {} },
});

async function isDone(name: string): Promise<boolean> {
  running.connection ??= Connection.lazy({ address: `127.0.0.1:${running.port}`, channelArgs: { 'grpc.max_reconnect_backoff_ms': 500 } });
  const { connection } = running;
  const { workflow } = new Client({ connection, namespace: 'reliability' });
  return connection.withDeadline(Date.now() + 2_000, () => workflow.getHandle(`system-test/${name}`).describe()).then(({ status }) => status.name === 'COMPLETED', () => false);
}

test('what is accepted while Temporal is stopped is done once it is there, without anybody doing anything', async () => {
  const worker = startWorker();
  const ready = once(worker, 'message');
  await accept('before');
  await eventually(async () => (await readiness())?.status === 503);
  await startServer();
  expect(await ready).toEqual([expect.objectContaining({ ready: true }), undefined]);
  await eventually(() => isDone('before'));
  expect(await readiness()).toMatchObject({ status: 200 });

  await stopServer();
  await accept('meanwhile');
  await eventually(async () => ((await readiness())?.body ?? '').includes('no answer'));
  await startServer();
  await eventually(() => isDone('meanwhile'));
}, 120_000);

test('a Temporal that comes back empty is made usable again while the worker runs', async () => {
  await stopServer();
  await accept('into-emptiness');
  await startServer('empty');
  await eventually(() => isDone('into-emptiness'));
}, 120_000);

test('asked to end, the worker drains and ends with code 0', async () => {
  const { worker } = running;
  if (!worker) throw new Error('There is no worker.');
  worker.kill('SIGTERM');
  expect(await once(worker, 'exit')).toEqual([0, null]);
}, 60_000);
