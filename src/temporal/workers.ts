import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { makeTelemetryFilterString, NativeConnection, Runtime, Worker, type ActivityInterceptorsFactory, type WorkerOptions } from '@temporalio/worker';
import type { Log } from '../core/log';
import { deploymentName, workerOptions } from './options';
import { queuesInUse, type Queue } from './queues';

export interface WorkerSetup {
  address: string;
  namespace: string;
  queues: readonly Queue[];
  activities: object;
  interceptor: ActivityInterceptorsFactory;
  /** Turns Worker Versioning on. */
  buildId?: string | undefined;
  log: Log;
  /**
   * Namespace, search attributes and schedules exist. Runs with each new connection before work is taken (`first`), and again
   * every ten seconds: a Temporal that lost its data is made usable without a restart of ours.
   */
  prepare(first: boolean): Promise<void>;
  /** Work is taken now. Called again after an outage. */
  serving(): void;
}

export interface Workers {
  readonly state: 'connecting' | 'serving' | 'stopped';
  /** Takes no more work; running activities have `shutdownGraceTime` to end, then they are told to stop. */
  stop(): Promise<void>;
}

const prepareEveryMs = 10_000;
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
      warn: (message, meta) => child[isRepeatedRetry(meta) ? 'debug' : 'warn']({ ...meta }, message),
      error: (message, meta) => child.error({ ...meta }, message),
    },
  });
}

let retryLoggedAt = 0;

/** While Temporal is away every poller complains several times a second: one line in 30 s says it. */
function isRepeatedRetry(meta: object | undefined): boolean {
  if (!meta || !('target' in meta) || meta.target !== 'temporalio_client::retry') return false;
  if (Date.now() - retryLoggedAt < 30_000) return true;
  retryLoggedAt = Date.now();
  return false;
}

const levels = { TRACE: 'debug', DEBUG: 'debug', INFO: 'debug', WARN: 'warn', ERROR: 'error' } as const;

async function serveOnce(setup: WorkerSetup, holder: { state: Workers['state']; workers: Worker[] }, signal: AbortSignal, began: () => void): Promise<void> {
  const connection = await NativeConnection.connect({ address: setup.address, grpcCompression: { codec: 'none' } });
  try {
    await setup.prepare(true);
    const options = optionsOf(setup, connection);
    const served = queuesInUse.filter((queue) => setup.queues.includes(queue));
    holder.workers = await Promise.all(served.map((taskQueue) => Worker.create({ ...options, taskQueue })));
    const runs = holder.workers.map((worker) => worker.run().finally(() => holder.workers.forEach(shutDown)));
    if (signal.aborted) holder.workers.forEach(shutDown);
    holder.state = 'serving';
    began();
    if (!signal.aborted) setup.serving();
    const done = new AbortController();
    const kept = keepPrepared(setup, AbortSignal.any([signal, done.signal]));
    const ends = await Promise.allSettled(runs.length > 0 || signal.aborted ? runs : [once(signal, 'abort')]);
    done.abort();
    await kept;
    const broken = ends.find((end) => end.status === 'rejected');
    if (broken) throw broken.reason;
  } finally {
    holder.workers = [];
    await connection.close();
  }
}

async function keepPrepared({ prepare, log }: WorkerSetup, signal: AbortSignal): Promise<void> {
  for (;;) {
    await delay(prepareEveryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    await prepare(false).catch((error: unknown) => log.warn({ err: error }, 'Temporal cannot be checked'));
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
