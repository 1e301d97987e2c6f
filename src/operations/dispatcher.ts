import { isGrpcServiceError } from '@temporalio/client';
import type { Log } from '../core/log';
import type { Metrics } from '../core/metrics';
import type { Database } from '../db/client';
import type { Temporal } from '../temporal/connection';
import { startOptions } from '../temporal/options';
import { searchAttributes } from '../temporal/search-attributes';
import { markDispatched } from './outbox';
import type { OperationRow } from './store';

/** Starts the workflows of accepted operations once their transaction is durable. */
export interface Dispatcher {
  /** Starts the operation's workflow and marks the row. Never rejects: what fails, or does not fit, is left to the relay. */
  start(operation: OperationRow): Promise<'started' | 'left'>;
  /** Resolves when nothing is in flight. */
  drain(): Promise<void>;
}

type DispatcherDeps = { database: Database; temporal: Temporal; log: Log; metrics: Pick<Metrics, 'operationStarts'>; inFlightMax?: number };

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const inFlight = new Set<Promise<unknown>>();
  const limit = deps.inFlightMax ?? startOptions.inFlightMax;
  const count = (result: 'started' | 'failed' | 'full') => deps.metrics.operationStarts.inc({ by: 'dispatcher', result });
  return {
    async start(operation) {
      if (operation.workflow === null) return 'left';
      if (inFlight.size >= limit) {
        count('full');
        return 'left';
      }
      const attempt = startOperation(deps, operation);
      inFlight.add(attempt);
      try {
        await attempt;
        count('started');
        return 'started';
      } catch (error) {
        count('failed');
        deps.log.warn({ operationId: operation.id, code: grpcCode(error), err: error }, 'a start is left to the relay');
        return 'left';
      } finally {
        inFlight.delete(attempt);
      }
    },
    drain: async () => void (await Promise.allSettled(inFlight)),
  };
}

/**
 * One start, idempotent: a running workflow of the same id is used, a closed one does not stand in the way, because
 * Temporal forgets ids and the row is the guard (design.md §4.2). A row with a signal wakes the run it finds. Errors: the gRPC status of the start.
 */
export async function startOperation(deps: { database: Database; temporal: Temporal }, operation: OperationRow): Promise<void> {
  const { workflow, workflowId, taskQueue, signal } = operation;
  if (workflow === null || workflowId === null || taskQueue === null) throw new Error(`Operation ${operation.id} has no workflow.`);
  const [product = operation.kind] = operation.kind.split('.');
  const { client } = deps.temporal;
  const options = {
    workflowId,
    taskQueue,
    args: [operation.payload],
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE' as const,
    typedSearchAttributes: searchAttributes({ ...operation, product, operation: operation.id }),
    memo: { displayName: operation.summary, requestId: operation.requestId ?? '' },
    staticSummary: operation.summary,
    priority: { fairnessKey: operation.orgId, fairnessWeight: operation.weight },
  };
  await deps.temporal.within<unknown>(startOptions.deadlineMs, () => (
    signal === null ? client.workflow.start(workflow, options) : client.workflow.signalWithStart(workflow, { ...options, signal })
  ));
  await markDispatched(deps.database.prisma, operation.id);
}

/** True when the server did not answer; another row would fare no better now. */
export function isUnavailable(error: unknown): boolean {
  return [4, 8, 14].includes(grpcCode(error) ?? -1);
}

function grpcCode(error: unknown): number | undefined {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return isGrpcServiceError(cause) ? cause.code : undefined;
}
