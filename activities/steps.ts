import type { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Log } from '../src/core/log';
import type { Database } from '../src/db/client';
import { finishStep, startStep } from '../src/operations/store';
import { toFailure } from './failures';

/**
 * Around every activity: what it throws becomes a failure that may be kept, and an activity whose input names an
 * operation is written down as a step of it, under the activity's name. `mark…Failed` is no step: it settles the job.
 */
export function activityInterceptor(deps: { database: Database; log: Log }): ActivityInterceptorsFactory {
  return (context) => ({
    inbound: {
      async execute(input, next) {
        const operationId = operationOf(input.args[0]);
        const step = context.info.activityType;
        const recorded = operationId !== null && !/^(mark\w*Failed|report\w+)$/.test(step);
        if (recorded) await record(deps, context, () => startStep(deps.database, operationId, step));
        try {
          const result: unknown = await next(input);
          if (recorded) await record(deps, context, () => finishStep(deps.database, operationId, step, 'succeeded'));
          return result;
        } catch (error) {
          const failure = toFailure(error);
          logFailure(deps.log, context, error, failure);
          const final = failure instanceof ApplicationFailure && failure.nonRetryable === true && failure.type !== 'superseded';
          if (recorded && final) await record(deps, context, () => finishStep(deps.database, operationId, step, 'failed'));
          throw failure;
        }
      },
    },
  });
}

/** Steps inform; the work does not hang on them. */
async function record(deps: { log: Log }, context: Context, write: () => Promise<void>): Promise<void> {
  await write().catch((error: unknown) => deps.log.warn({ err: error, ...facts(context) }, 'a step was not written down'));
}

function logFailure(log: Log, context: Context, error: unknown, failure: Error): void {
  const benign = failure instanceof ApplicationFailure && failure.category === 'BENIGN';
  const code = failure instanceof ApplicationFailure ? failure.type : failure.name;
  log[benign ? 'debug' : 'warn']({ err: error, code, ...facts(context) }, 'an activity failed');
}

function facts({ info }: Context) {
  return { activity: info.activityType, attempt: info.attempt, workflowId: info.workflowExecution?.workflowId };
}

function operationOf(input: unknown): string | null {
  return typeof input === 'object' && input !== null && 'operationId' in input && typeof input.operationId === 'string' ? input.operationId : null;
}
