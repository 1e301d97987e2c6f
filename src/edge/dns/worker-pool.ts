import cluster, { type Worker } from 'node:cluster';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../core/log';
import type { ZoneChangeSet } from '../../dns/ports';
import { isDnsMessage, type FromWorker, type ToWorker } from './worker-messages';
import type { ZoneStore } from './zone-store';
import { wholeZone } from './zone-text';

type Addresses = readonly { host: string; port: number }[];
type Mark = { mark: number; waitsFor: Set<number>; resolve: () => void };

const restartMs = 500;
const closeMs = 5_000;

/**
 * The processes that answer for one name server (DNS_WORKERS): each has all zones, sharing one socket per address. This process
 * follows the database, and hands them every change; one that dies is replaced.
 */
export class WorkerPool {
  private readonly workers = new Map<number, Worker>();
  private readonly marks = new Set<Mark>();
  private lastMark = 0;
  private closing = false;

  constructor(private readonly store: ZoneStore, private readonly log: Log) {}

  /** Resolves with where they listen when all do. Errors: one of them cannot bind. */
  async start(count: number): Promise<Addresses> {
    const bound = await Promise.all(Array.from({ length: count }, () => this.add()));
    return bound[0] ?? [];
  }

  broadcast(changes: ZoneChangeSet): void {
    for (const worker of this.workers.values()) tell(worker, { dns: 'apply', changes });
  }

  /** Resolves when every worker that lives now has applied what was broadcast before. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      const mark: Mark = { mark: ++this.lastMark, waitsFor: new Set(this.workers.keys()), resolve };
      this.marks.add(mark);
      for (const worker of this.workers.values()) tell(worker, { dns: 'mark', mark: mark.mark });
      this.release();
    });
  }

  /** Resolves when all have told their last counts and are gone. */
  async close(): Promise<void> {
    this.closing = true;
    const gone = [...this.workers.values()].map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
    for (const worker of this.workers.values()) tell(worker, { dns: 'close' });
    await Promise.race([Promise.all(gone), pause(closeMs, undefined, { ref: false })]);
    for (const worker of this.workers.values()) worker.process.kill('SIGKILL');
  }

  private add(): Promise<Addresses> {
    // Set with every fork: a gateway in the same process forks too.
    cluster.setupPrimary({ serialization: 'advanced', args: ['dns'] });
    const worker = cluster.fork();
    return new Promise((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        if (!isDnsMessage<FromWorker>(message)) return;
        if (message.dns === 'bound') resolve(message.addresses);
        else if (message.dns === 'failed') reject(new Error(message.message));
        else this.heard(worker, message);
      });
      worker.once('exit', (code, signal) => {
        reject(new Error(`A DNS worker ended before it listened (${signal ?? code}).`));
        this.left(worker);
      });
    });
  }

  private heard(worker: Worker, message: Exclude<FromWorker, { dns: 'bound' | 'failed' }>): void {
    switch (message.dns) {
      case 'ready': return this.load(worker);
      case 'counts': return this.store.counts.add(message.counts);
      case 'marked': {
        for (const mark of this.marks) if (mark.mark === message.mark) mark.waitsFor.delete(worker.id);
        return this.release();
      }
    }
  }

  /** All in one turn, so that the next change comes after what it changes. */
  private load(worker: Worker): void {
    for (const zone of this.store.all()) tell(worker, { dns: 'apply', changes: wholeZone(zone) });
    tell(worker, { dns: 'loaded' });
    this.workers.set(worker.id, worker);
  }

  private left(worker: Worker): void {
    this.workers.delete(worker.id);
    for (const mark of this.marks) mark.waitsFor.delete(worker.id);
    this.release();
    if (this.closing) return;
    this.log.error({ worker: worker.process.pid }, 'a DNS worker is gone; another takes its place');
    void pause(restartMs, undefined, { ref: false }).then(() => (this.closing ? undefined : this.add()))
      .catch((error: unknown) => this.log.error({ err: error }, 'a DNS worker could not be replaced yet'));
  }

  private release(): void {
    for (const mark of this.marks) {
      if (mark.waitsFor.size > 0) continue;
      this.marks.delete(mark);
      mark.resolve();
    }
  }
}

/** What a worker that is just leaving does not get, its successor gets. */
function tell(worker: Worker, message: ToWorker): void {
  worker.send(message, () => undefined);
}
