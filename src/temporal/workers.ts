import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeTelemetryFilterString, NativeConnection, Runtime, Worker, type ActivityInterceptorsFactory, type WorkerOptions } from '@temporalio/worker';
import type { Log } from '../core/log';
import { deploymentName, workerOptions } from './options';
import type { Queue } from './queues';

export interface WorkerSetup {
  address: string;
  namespace: string;
  queues: readonly Queue[];
  activities: object;
  interceptor: ActivityInterceptorsFactory;
  /** Turns Worker Versioning on. */
  buildId?: string | undefined;
  log: Log;
  /** Runs with each new connection, before work is taken: namespace, search attributes, schedules. */
  prepare(): Promise<void>;
  /** Work is taken now. Called again after an outage. */
  serving(): void;
}

export interface Workers {
  readonly state: 'connecting' | 'serving' | 'stopped';
  /** Takes no more work; running activities have `shutdownGraceTime` to end, then they are told to stop. */
  stop(): Promise<void>;
}

const retryMinMs = 250;
const retryMaxMs = 5_000;

/** Serves the queues for as long as the process lives: waits for Temporal when it is away, and starts over when a worker breaks. */
export function serveQueues(setup: WorkerSetup): Workers {
  const control = new AbortController();
  const holder: { state: Workers['state']; workers: Worker[] } = { state: 'connecting', workers: [] };
  const running = (async () => {
    for (let retryMs = retryMinMs; !control.signal.aborted; retryMs = Math.min(retryMaxMs, retryMs * 2)) {
      try {
        await serveOnce(setup, holder, control.signal, () => { retryMs = retryMinMs; });
      } catch (error) {
        setup.log.warn({ err: error }, 'cannot take work from Temporal yet');
      }
      holder.state = 'connecting';
      await delay(retryMs, undefined, { signal: control.signal }).catch(() => undefined);
    }
  })();
  return {
    get state() {
      return holder.state;
    },
    async stop() {
      control.abort();
      holder.workers.forEach(shutDown);
      await running;
      holder.state = 'stopped';
    },
  };
}

/** The SDK's own words go into our log; our drain decides when workers stop, not the SDK's signal handlers. Once per process. */
export function installRuntime(log: Log): void {
  const child = log.child({ from: 'temporal' });
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} } },
    logger: {
      log: (level, message, meta) => child[levels[level]]({ ...meta }, message),
      trace: () => undefined,
      debug: (message, meta) => child.debug({ ...meta }, message),
      info: (message, meta) => child.debug({ ...meta }, message),
      warn: (message, meta) => child.warn({ ...meta }, message),
      error: (message, meta) => child.error({ ...meta }, message),
    },
  });
}

const levels = { TRACE: 'debug', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

async function serveOnce(setup: WorkerSetup, holder: { state: Workers['state']; workers: Worker[] }, signal: AbortSignal, began: () => void): Promise<void> {
  const connection = await NativeConnection.connect({ address: setup.address, grpcCompression: { codec: 'none' } });
  try {
    await setup.prepare();
    const options = optionsOf(setup, connection);
    holder.workers = await Promise.all(setup.queues.map((taskQueue) => Worker.create({ ...options, taskQueue })));
    if (signal.aborted) return;
    const runs = holder.workers.map((worker) => worker.run().finally(() => holder.workers.forEach(shutDown)));
    holder.state = 'serving';
    began();
    setup.serving();
    const ends = await Promise.allSettled(runs);
    const broken = ends.find((end) => end.status === 'rejected');
    if (broken) throw broken.reason;
  } finally {
    holder.workers = [];
    await connection.close();
  }
}

function shutDown(worker: Worker): void {
  if (worker.getState() === 'RUNNING') worker.shutdown();
}

function optionsOf({ namespace, activities, interceptor, buildId }: WorkerSetup, connection: NativeConnection): Omit<WorkerOptions, 'taskQueue'> {
  return {
    ...workerOptions, connection, namespace, activities,
    ...workflowCode(),
    interceptors: { activity: [interceptor] },
    ...(buildId ? { workerDeploymentOptions: { version: { deploymentName, buildId }, useWorkerVersioning: true, defaultVersioningBehavior: 'PINNED' } } : {}),
  };
}

/** The build's bundle; without a build the workflows are bundled at the start, which costs seconds. */
function workflowCode(): Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'> {
  const codePath = join(__dirname, '../../workflow-bundle.js');
  return existsSync(codePath) ? { workflowBundle: { codePath } } : { workflowsPath: require.resolve('../../workflows') };
}
