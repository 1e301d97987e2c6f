import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Product } from './product';
import { bundledWorkflows } from './workflow-lab';

/** Where a run is to stand still. */
export type Moment = { step: string; when: 'before' | 'after' };

/** One after the other, workers of the queue `postgres` in processes of their own; the next stands by before the last is killed. */
export class WorkerLine {
  private readonly children: ChildProcess[] = [];

  private constructor(private readonly env: Record<string, string>) {}

  static async of(product: Product): Promise<WorkerLine> {
    const bundle = join(product.clone.dir, 'workflows.js');
    await writeFile(bundle, (await bundledWorkflows()).code);
    return new WorkerLine({ ...await product.environment(), WORKFLOW_BUNDLE: bundle });
  }

  /** Loaded and connected, serving nothing yet. */
  async next(): Promise<WaitingWorker> {
    const child = fork(resolve(__dirname, 'postgres-worker-process.ts'), [], {
      execArgv: ['-r', resolve(__dirname, 'typescript.cjs')], stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: this.env,
    });
    this.children.push(child);
    await new Promise<void>((done, fail) => {
      child.once('exit', (code) => fail(new Error(`The worker ended (${code}) before it was ready.`)));
      child.once('message', () => done());
    });
    return new WaitingWorker(child);
  }

  stop(): void {
    for (const child of this.children) child.kill('SIGKILL');
  }
}

export class WaitingWorker {
  constructor(private readonly child: ChildProcess) {}

  serve(): void {
    this.child.send({ halts: {} });
  }

  /** Serves until each of these services stands still at its moment. */
  async serveUntil(moments: ReadonlyMap<string, Moment>): Promise<void> {
    const waiting = new Set(moments.keys());
    const allHalted = new Promise<void>((done) => {
      this.child.on('message', (message: unknown) => {
        if (typeof message !== 'object' || message === null || !('halted' in message)) return;
        waiting.delete(String(message.halted));
        if (waiting.size === 0) done();
      });
    });
    this.child.send({ halts: Object.fromEntries(moments) });
    await allHalted;
  }

  async kill(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}
