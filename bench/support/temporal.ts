import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { NativeConnection, Runtime, Worker, type ActivityInterceptorsFactory } from '@temporalio/worker';
import { pino } from 'pino';
import { anyFreePort } from '../../src/dev/ports';
import { findTemporalBinary } from '../../src/dev/temporal-binary';
import { startTemporalServer } from '../../src/dev/temporal-server';
import { bootstrapTemporal } from '../../src/temporal/bootstrap';
import { openTemporal, type Temporal } from '../../src/temporal/connection';
import { workerOptions } from '../../src/temporal/options';
import type { QueueInUse } from '../../src/temporal/queues';

/** A development server as `npm start` runs it, with its file on disk, gone afterwards. */
export async function withBenchTemporal(measure: (temporal: Temporal, address: string) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'holdfast-bench-temporal-'));
  const server = await startTemporalServer({
    binary: await findTemporalBinary({ env: process.env, root: resolve('.'), say: () => undefined }),
    port: await anyFreePort(), httpPort: await anyFreePort(), metricsPort: await anyFreePort(), uiPort: null,
    dbFile: join(home, 'temporal.db'), logFile: join(home, 'log'), removeAfterwards: home,
  });
  const temporal = openTemporal({ address: server.address, namespace: 'default', identity: 'bench' });
  try {
    await bootstrapTemporal(temporal.connection, { namespace: 'default', retentionHours: 24, log: pino({ level: 'silent' }) });
    await measure(temporal, server.address);
  } finally {
    await temporal.close();
    await server.stop();
  }
}

/** A worker with the product's workflows and options, and activities of the benchmark's own. */
export async function withBenchWorker(
  options: { address: string; queue: QueueInUse; activities: object; interceptor?: ActivityInterceptorsFactory }, measure: () => Promise<void>,
): Promise<void> {
  installQuietRuntime();
  const connection = await NativeConnection.connect({ address: options.address, grpcCompression: { codec: 'none' } });
  const worker = await Worker.create({
    ...workerOptions, connection, namespace: 'default', taskQueue: options.queue, activities: options.activities,
    workflowBundle: { codePath: resolve('dist/workflow-bundle.js') }, ...(options.interceptor ? { interceptors: { activity: [options.interceptor] } } : {}),
  });
  const running = worker.run();
  try {
    await measure();
  } finally {
    worker.shutdown();
    await running;
    await connection.close();
  }
}

let installed = false;

function installQuietRuntime(): void {
  const nothing = () => undefined;
  if (!installed) Runtime.install({ logger: { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing } });
  installed = true;
}
