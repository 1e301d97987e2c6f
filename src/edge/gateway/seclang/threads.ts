import { Worker } from 'node:worker_threads';
import type { ManagedVerdict } from '../../../gateway/ports';
import { budgetMsDefault, emptyVerdict, type Inspected } from './engine';
import type { FromThread, RuleFolders, Work } from './thread-messages';

export interface Threads {
  /** Resolves when every thread has loaded its rules. */
  readonly ready: Promise<void>;
  inspect(inspected: Inspected): Promise<ManagedVerdict>;
  close(): Promise<void>;
}

export interface ThreadOptions extends RuleFolders {
  readonly count: number;
  /** Of Node, e.g. `-r` of a transpiler in tests. */
  readonly execArgv?: readonly string[];
}

/** More than these wait for one thread: the engine is overloaded and says so at once. */
const waitingMax = 64;
/** A thread ends by itself when the time is over and says what it found; this much later it is not waited for any more. */
const graceMs = 50;
/** One that stays silent this much longer is replaced. */
const patienceMs = 1_000;

/** Threads that judge what takes long. Never rejects: a thread that dies or is late gives a fault. */
export function startThreads(options: ThreadOptions): Threads {
  const threads = Array.from({ length: options.count }, () => new Thread(options));
  return {
    ready: Promise.all(threads.map((thread) => thread.ready)).then(() => undefined),
    inspect: (inspected) => {
      const [least] = threads.toSorted((a, b) => a.waiting - b.waiting);
      return least && least.waiting < waitingMax ? least.inspect(inspected) : Promise.resolve(emptyVerdict(inspected, 'budget'));
    },
    close: async () => { await Promise.all(threads.map((thread) => thread.close())); },
  };
}

interface Waiting { readonly inspected: Inspected; readonly answer: (verdict: ManagedVerdict) => void; readonly timer: NodeJS.Timeout }

class Thread {
  readonly ready: Promise<void>;
  private becomeReady: () => void = () => undefined;
  private worker: Worker;
  private closed = false;
  private lastId = 0;
  private readonly pending = new Map<number, Waiting>();

  constructor(private readonly options: ThreadOptions) {
    this.ready = new Promise((resolve) => { this.becomeReady = resolve; });
    this.worker = this.start();
  }

  get waiting(): number { return this.pending.size; }

  inspect(inspected: Inspected): Promise<ManagedVerdict> {
    const id = ++this.lastId;
    return new Promise((resolve) => {
      const timer = setTimeout(() => { this.late(id); }, budgetMsDefault + graceMs);
      this.pending.set(id, { inspected, answer: resolve, timer });
      this.worker.postMessage({ id, inspected, until: performance.timeOrigin + performance.now() + budgetMsDefault } satisfies Work);
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.worker.terminate();
  }

  private start(): Worker {
    const { crsDir, rulesDir, execArgv } = this.options;
    const worker = new Worker(require.resolve('./thread'), { workerData: { crsDir, rulesDir } satisfies RuleFolders, ...(execArgv ? { execArgv: [...execArgv] } : {}) });
    worker.unref();
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'ready') this.becomeReady();
      else this.settle(message.id, message.verdict);
    });
    worker.on('error', () => undefined);
    worker.on('exit', () => { this.replace(worker); });
    return worker;
  }

  private settle(id: number, verdict: ManagedVerdict): void {
    const waiting = this.pending.get(id);
    if (!waiting) return;
    clearTimeout(waiting.timer);
    this.pending.delete(id);
    waiting.answer(verdict);
  }

  /** The request goes on; if the thread stays silent it hangs in one value and is replaced. */
  private late(id: number): void {
    const waiting = this.pending.get(id);
    if (!waiting) return;
    waiting.answer(emptyVerdict(waiting.inspected, 'budget'));
    const timer = setTimeout(() => { void this.worker.terminate(); }, patienceMs).unref();
    this.pending.set(id, { ...waiting, answer: () => undefined, timer });
  }

  private replace(worker: Worker): void {
    if (worker !== this.worker) return;
    for (const [id, { inspected }] of this.pending) this.settle(id, emptyVerdict(inspected, 'exception'));
    this.becomeReady();
    if (!this.closed) setTimeout(() => { if (!this.closed) this.worker = this.start(); }, patienceMs).unref();
  }
}
