import {
  ActivityFailure, ApplicationFailure, CancellationScope, defineQuery, isCancellation, proxyActivities, setCurrentDetails,
  setHandler, TimeoutFailure,
} from '@temporalio/workflow';
import type { SystemActivities } from '../activities/system';
import { isErrorCode, type ErrorCode } from '../src/core/errors';
import { marking } from './policies';

/**
 * The frame of a job with steps: says in words what is being done, answers the query `progress`, undoes in reverse what
 * was done when a step fails, and ends as done, superseded or failed. Step names are the activities' names; their
 * bookkeeping on the operation row happens in the activity worker (activities/steps.ts), so a step costs one activity.
 */
export interface Job {
  /** One step. `words` are for the operator who looks at Temporal's UI: 'Placing the service'. */
  step<T>(words: string, run: () => Promise<T>): Promise<T>;
  /** Call before the step it undoes: the step may have taken effect although its answer was lost. */
  undo(name: string, run: () => Promise<unknown>): void;
}

export type JobFailure = { code: ErrorCode; message: string; cancelled: boolean };
export type JobEnd = 'done' | 'superseded';
export type Progress = { doing: string; done: string[]; undoing: boolean };

export const progress = defineQuery<Progress>('progress');
const system = proxyActivities<SystemActivities>(marking);

/**
 * Runs the steps. A step that fails for good: the undos run in reverse, not to be cancelled, then `failed` settles the row
 * and the run fails with the code. A superseded step ends the run at once: the newer intent cleans up.
 */
export async function runJob(
  input: { operationId: string }, steps: (job: Job) => Promise<void>, failed?: (failure: JobFailure) => Promise<void>,
): Promise<JobEnd> {
  const seen: Progress = { doing: 'Starting', done: [], undoing: false };
  const undos: Undo[] = [];
  setHandler(progress, () => seen);
  try {
    await steps({
      step: async (words, run) => {
        tell(seen, words);
        const value = await run();
        seen.done.push(words);
        return value;
      },
      undo: (name, run) => undos.push({ name, run }),
    });
    tell(seen, 'Done');
    return 'done';
  } catch (error) {
    if (isSuperseded(error)) {
      tell(seen, 'Superseded by a newer intent');
      return 'superseded';
    }
    return await CancellationScope.nonCancellable(async (): Promise<JobEnd> => {
      const failure = failureOf(error);
      seen.undoing = true;
      const superseded = await undoAll(input.operationId, undos, seen) || await settle(failed, failure);
      if (superseded) return 'superseded';
      tell(seen, failure.cancelled ? 'Cancelled' : `Failed: ${failure.message}`);
      throw failure.cancelled ? error : ApplicationFailure.nonRetryable(failure.message, failure.code);
    });
  }
}

type Undo = { name: string; run: () => Promise<unknown> };

/** True when a newer intent took over meanwhile. An undo that is refused is recorded and raised as an alert; the others still run. */
async function undoAll(operationId: string, undos: Undo[], seen: Progress): Promise<boolean> {
  for (const { name, run } of undos.toReversed()) {
    tell(seen, `Undoing: ${name}`);
    try {
      await run();
    } catch (error) {
      if (isSuperseded(error)) return true;
      await system.reportFailedUndo({ operationId, step: name, code: failureOf(error).code });
    }
  }
  return false;
}

async function settle(failed: ((failure: JobFailure) => Promise<void>) | undefined, failure: JobFailure): Promise<boolean> {
  try {
    await failed?.(failure);
    return false;
  } catch (error) {
    if (isSuperseded(error)) return true;
    throw error;
  }
}

/**
 * The code and the sentence a customer may read; what is not ours has neither. Attempts that ran out of time are told as
 * that: Temporal gives the last failure when the next attempt would come too late.
 */
export function failureOf(error: unknown): JobFailure {
  if (isCancellation(error)) return { code: 'internal_error', message: 'The job was cancelled.', cancelled: true };
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof TimeoutFailure || (error instanceof ActivityFailure && error.retryState === 'TIMEOUT')) {
    return { code: 'deadline_exceeded', message: 'The job did not end in time.', cancelled: false };
  }
  if (cause instanceof ApplicationFailure && isErrorCode(cause.type)) return { code: cause.type, message: cause.message, cancelled: false };
  return { code: 'internal_error', message: 'The job failed for an internal reason.', cancelled: false };
}

function isSuperseded(error: unknown): boolean {
  return error instanceof ActivityFailure && error.cause instanceof ApplicationFailure && error.cause.type === 'superseded';
}

function tell(seen: Progress, words: string): void {
  seen.doing = words;
  setCurrentDetails([...seen.done.map((done) => `- ${done}: done`), `- **${words}**`].join('\n'));
}
