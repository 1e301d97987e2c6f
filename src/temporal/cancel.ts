import { isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import type { Temporal } from './connection';

const deadlineMs = 2_000;

/** Asks a run to end, and does not wait for it; one that is closed or was never there is success. */
export type CancelRun = (workflowId: string) => Promise<void>;

/** Errors: the gRPC status when the server does not answer. */
export function createCancelRun(temporal: Temporal): CancelRun {
  return async (workflowId) => {
    try {
      await temporal.within(deadlineMs, () => temporal.client.workflow.getHandle(workflowId).cancel());
    } catch (error) {
      if (!isAbsent(error)) throw error;
    }
  };
}

function isAbsent(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError || (isGrpcServiceError(error) && error.code === 5);
}
