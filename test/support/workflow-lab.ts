import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { activityInfo } from '@temporalio/activity';
import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ActivityFailure, ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { bundleWorkflowCode, NativeConnection, Worker, type ActivityInterceptorsFactory, type WorkflowBundle } from '@temporalio/worker';
import type { TestTemporal } from './temporal';

/** Any activity; the kit passes its input on and does not look at it. */
export type AnyActivity = (input: never) => Promise<unknown>;
export type Activities = Readonly<Record<string, AnyActivity>>;
/** One call of an activity by the run: `index` counts from 0 over all attempts of all activities. */
export type ActivityCall = { name: string; index: number; attempt: number };
/** Stands between the workflow and its activities. `run` is the activity itself and may be called any number of times. */
export type Interference = (call: ActivityCall, run: () => Promise<unknown>, control: { cancel(): Promise<void> }) => Promise<unknown>;

/** How a run ended: `code` is the type of the failure that ended it. */
export type RunEnd = { end: 'completed' | 'failed' | 'cancelled'; result: unknown; code: string | null; calls: string[]; workflowId: string };

export interface WorkflowLab {
  /** Runs one workflow to its end with these activities, and says how it ended and what it called. */
  run(what: { workflow: string; input: unknown; activities: Activities; interfere?: Interference; workflowId?: string }): Promise<RunEnd>;
  /** The recorded history of a run, as it is kept for replay. */
  history(workflowId: string): Promise<Uint8Array>;
}

/**
 * One real worker for the test file, with the real workflow code; every run brings activities of its own. Call it where tests
 * are declared. `interceptor` is what the product's worker has around activities; `workflowsPath`: other than the product's own.
 */
export function withWorkflowLab(server: TestTemporal, options: { interceptor?: () => ActivityInterceptorsFactory; workflowsPath?: string } = {}): WorkflowLab {
  const taskQueue = `lab-${randomBytes(6).toString('hex')}`;
  const runs = new Map<string, (name: string, attempt: number, input: unknown) => Promise<unknown>>();
  let worker: Worker | undefined;
  let running: Promise<void> | undefined;
  let connection: NativeConnection | undefined;
  beforeAll(async () => {
    const { interceptor } = options;
    connection = await NativeConnection.connect({ address: server.address });
    worker = await Worker.create({
      connection, namespace: server.namespace, taskQueue, workflowBundle: await bundledWorkflows(options.workflowsPath),
      shutdownGraceTime: '1s',
      activities: { default: dispatch(runs) },
      ...(interceptor ? { interceptors: { activity: [interceptor()] } } : {}),
    });
    running = worker.run();
  }, 120_000);
  afterAll(async () => {
    worker?.shutdown();
    await running;
    await connection?.close();
  });
  return {
    run: async ({ workflow, input, activities, interfere = (_call, run) => run(), workflowId = `lab/${randomBytes(8).toString('hex')}` }) => {
      const calls: string[] = [];
      const { workflow: client } = server.environment.client;
      runs.set(workflowId, (name, attempt, given) => {
        const activity = activities[name];
        if (!activity) throw ApplicationFailure.nonRetryable(`The test gives no activity ${name}.`, 'no_such_activity');
        const call = { name, index: calls.push(name) - 1, attempt };
        return interfere(call, () => Promise.resolve(Reflect.apply(activity, activities, [given])), { cancel: () => client.getHandle(workflowId).cancel().then(() => undefined) });
      });
      const handle = await client.start(workflow, { workflowId, taskQueue, args: [input] });
      return { ...await endOf(handle), calls, workflowId };
    },
    history: async (workflowId) => {
      const history = await server.environment.client.workflow.getHandle(workflowId).fetchHistory();
      return temporal.api.history.v1.History.encode(history).finish();
    },
  };
}

export const productWorkflows = join(__dirname, '../../workflows/index.ts');

/** The whole of workflows/, as a worker of the product gets it. */
export function bundledWorkflows(workflowsPath = productWorkflows): Promise<WorkflowBundle> {
  return bundleWorkflowCode({ workflowsPath, logger: quiet });
}

const nothing = () => undefined;
const quiet = { log: nothing, trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing };

function dispatch(runs: ReadonlyMap<string, (name: string, attempt: number, input: unknown) => Promise<unknown>>) {
  return async (input: unknown): Promise<unknown> => {
    const { activityType, attempt, workflowExecution } = activityInfo();
    const run = runs.get(workflowExecution?.workflowId ?? '');
    if (!run) throw ApplicationFailure.nonRetryable('No test runs this workflow.', 'no_such_run');
    return run(activityType, attempt, input);
  };
}

async function endOf(handle: WorkflowHandle): Promise<Pick<RunEnd, 'end' | 'result' | 'code'>> {
  try {
    const result: unknown = await handle.result();
    return { end: 'completed', result, code: null };
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const cause = error.cause instanceof ActivityFailure ? error.cause.cause : error.cause;
    if (cause instanceof CancelledFailure) return { end: 'cancelled', result: undefined, code: null };
    return { end: 'failed', result: undefined, code: cause instanceof ApplicationFailure ? (cause.type ?? null) : (cause?.name ?? null) };
  }
}
