import cluster, { type Worker } from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import { AggregatorRegistry, Registry } from 'prom-client';
import type { Log } from '../../core/log';
import { relayShared } from './exchange';
import { isWorkerMessage, type FromWorker, type ToWorker, type WorkerMetrics } from './worker-messages';

type Addresses = { http: string; https: string };
type Entry = { worker: Worker; index: number; instanceId: string | null; zones: number };
const restartMs = 500;
const metricsMs = 1_000;
/** How long a worker may take to store and leave after its drain. */
const leaveMs = 3_500;

/**
 * The processes of one gateway, sharing its addresses. Each follows the database and serves by itself; this one passes on what
 * they tell each other, and replaces one that dies: only its own open requests are lost.
 */
export class WorkerPool {
  private readonly workers = new Map<number, Entry>();
  private readonly asked = new Map<number, (metrics: WorkerMetrics) => void>();
  private lastAsked = 0;
  private closing = false;
  /** Of all processes together. */
  readonly registry: Registry;

  constructor(own: Registry, private readonly log: Log, private readonly forget: (instanceId: string) => Promise<void>) {
    this.registry = new GatheringRegistry(async () => [await own.getMetricsAsJSON(), ...await this.gather()]);
  }

  get size(): number {
    return this.workers.size;
  }

  /** Resolves when all serve. Errors: one of them cannot. */
  async start(count: number): Promise<{ addresses: Addresses; zones: () => number; stop: (graceMs: number) => Promise<void> }> {
    const bound = await Promise.all(Array.from({ length: count }, (_, index) => this.add(index)));
    return { addresses: bound[0] ?? { http: '', https: '' }, zones: () => Math.min(...[...this.workers.values()].map(({ zones }) => zones)), stop: (graceMs) => this.stop(graceMs) };
  }

  private async stop(graceMs: number): Promise<void> {
    this.closing = true;
    const all = [...this.workers.values()];
    const gone = all.map(({ worker }) => new Promise((resolve) => worker.once('exit', resolve)));
    for (const { worker } of all) tell(worker, { gateway: 'close', graceMs });
    await Promise.race([Promise.all(gone), pause(graceMs + leaveMs, undefined, { ref: false })]);
    for (const { worker } of this.workers.values()) worker.process.kill('SIGKILL');
  }

  private add(index: number): Promise<Addresses> {
    // Workers accept by themselves: a connection that this process has handed to one that dies would hang for ever.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // Set with every fork: a name server in the same process forks too.
    cluster.setupPrimary({ serialization: 'advanced', args: ['gateway', String(index)] });
    const worker = cluster.fork();
    const entry: Entry = { worker, index, instanceId: null, zones: 0 };
    this.workers.set(worker.id, entry);
    return new Promise((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        relayShared(message, worker, this.others());
        if (!isWorkerMessage<FromWorker>(message)) return;
        if (message.gateway === 'failed') return reject(new Error(message.message));
        entry.zones = message.zones;
        if (message.gateway === 'metrics') return this.asked.get(message.asked)?.(message.metrics);
        entry.instanceId = message.instanceId;
        resolve(message.addresses);
      });
      worker.once('exit', (code, signal) => {
        reject(new Error(`A gateway worker ended before it served (${signal ?? code}).`));
        this.left(worker, entry);
      });
    });
  }

  private others(): Worker[] {
    return [...this.workers.values()].map(({ worker }) => worker);
  }

  private left(worker: Worker, { index, instanceId }: { index: number; instanceId: string | null }): void {
    this.workers.delete(worker.id);
    if (instanceId !== null && !this.closing) this.forget(instanceId).catch(() => undefined);
    if (this.closing) return;
    this.log.error({ worker: worker.process.pid }, 'a gateway worker is gone; another takes its place');
    void pause(restartMs, undefined, { ref: false }).then(() => (this.closing ? undefined : this.add(index)))
      .catch((error: unknown) => this.log.error({ err: error }, 'a gateway worker could not be replaced yet'));
  }

  /** Of every worker that answers in time. */
  private gather(): Promise<WorkerMetrics[]> {
    const asks = [...this.workers.values()].map(({ worker }) => new Promise<WorkerMetrics | null>((resolve) => {
      const number = ++this.lastAsked;
      const finish = (metrics: WorkerMetrics | null) => {
        clearTimeout(late);
        this.asked.delete(number);
        resolve(metrics);
      };
      const late = setTimeout(() => finish(null), metricsMs);
      this.asked.set(number, finish);
      tell(worker, { gateway: 'metrics', asked: number });
    }));
    return Promise.all(asks).then((all) => all.filter((metrics) => metrics !== null));
  }
}

class GatheringRegistry extends Registry {
  constructor(private readonly gather: () => Promise<WorkerMetrics[]>) {
    super();
  }

  override async metrics(): Promise<string> {
    return AggregatorRegistry.aggregate(await this.gather()).metrics();
  }
}

/** What a worker that is just leaving does not get, its successor does not need. */
function tell(worker: Worker, message: ToWorker): void {
  worker.send(message, () => undefined);
}
