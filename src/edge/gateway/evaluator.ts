import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '../../core/errors';
import type { DescribedRequest, Evaluation, PolicyEvaluator, RuleDescription } from '../../gateway/ports';
import type { Policy } from '../../gateway/schemas';

export type EvaluatorOptions = { rulesDir: string; crsDir: string | null };
export type LoadedRules = { version: string | null; rules: readonly RuleDescription[] };
export type EvaluatorTask = { task: number; zoneId: string; policy: Policy; request: DescribedRequest };
export type FromThread = { ready: { crs: LoadedRules; base: LoadedRules } } | { task: number; evaluation: Evaluation } | { task: number; fault: string };

const evaluationMs = 1_000;

/** The gateway's own pipeline and rule engine in a thread of this process: a request that takes long holds up nobody else. Started when first asked. */
export function createPolicyEvaluator(options: EvaluatorOptions): PolicyEvaluator {
  let thread: EvaluatorThread | null = null;
  const running = (): EvaluatorThread => {
    if (!thread?.isAlive) thread = new EvaluatorThread(options);
    return thread;
  };
  return {
    ruleSets: async () => {
      const { crs, base } = await running().ready;
      return { crs: crs.version, base: base.version };
    },
    describe: async (ruleSet) => (await running().ready)[ruleSet].rules,
    evaluate: async (zoneId, policy, request) => {
      const asked = running();
      await asked.ready;
      return asked.evaluate({ zoneId, policy, request });
    },
    close: async () => {
      await thread?.end();
    },
  };
}

type Waiting = { done: (evaluation: Evaluation) => void; fail: (error: Error) => void };

class EvaluatorThread {
  readonly ready: Promise<{ crs: LoadedRules; base: LoadedRules }>;
  isAlive = true;
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private lastTask = 0;

  constructor(options: EvaluatorOptions) {
    // Tests run the sources as they are.
    const isSource = __filename.endsWith('.ts');
    this.worker = new Worker(join(__dirname, `evaluator-thread.${isSource ? 'ts' : 'js'}`), {
      workerData: options, ...(isSource ? { execArgv: ['-r', join(__dirname, '../../../test/support/typescript.cjs')] } : {}),
    });
    this.worker.unref();
    this.ready = new Promise((resolve, reject) => {
      this.worker.on('message', (message: FromThread) => ('ready' in message ? resolve(message.ready) : this.settle(message)));
      this.worker.on('error', (error) => this.fail(error, reject));
      this.worker.on('exit', () => this.fail(new Error('The thread that evaluates requests has ended.'), reject));
    });
    this.ready.catch(() => undefined);
  }

  evaluate(asked: Omit<EvaluatorTask, 'task'>): Promise<Evaluation> {
    const task = ++this.lastTask;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        reject(new AppError('deadline_exceeded', 'Judging this request took longer than a second.'));
        void this.end();
      }, evaluationMs);
      const over = () => {
        clearTimeout(late);
        this.waiting.delete(task);
      };
      this.waiting.set(task, {
        done: (evaluation) => {
          over();
          resolve(evaluation);
        },
        fail: (error) => {
          over();
          reject(error);
        },
      });
      this.worker.postMessage({ task, ...asked } satisfies EvaluatorTask);
    });
  }

  async end(): Promise<void> {
    this.isAlive = false;
    await this.worker.terminate();
  }

  private settle(message: Exclude<FromThread, { ready: unknown }>): void {
    const waiting = this.waiting.get(message.task);
    if ('evaluation' in message) waiting?.done(message.evaluation);
    else waiting?.fail(new Error(message.fault));
  }

  private fail(error: Error, reject: (error: Error) => void): void {
    this.isAlive = false;
    reject(error);
    for (const { fail } of this.waiting.values()) fail(error);
  }
}
