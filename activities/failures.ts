import { CompleteAsyncError } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { AppError } from '../src/core/errors';
import { Superseded, TryLater } from '../src/core/job-errors';

/**
 * What leaves an activity and is kept in a history: our code as type, a sentence we wrote, and whether another attempt may
 * help. Messages of drivers and providers (which quote rows, addresses and statements) stay in the log of the worker.
 */
export function toFailure(error: unknown): Error {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure || error instanceof CompleteAsyncError) return error;
  if (error instanceof Superseded) {
    return ApplicationFailure.create({ type: 'superseded', message: error.message, nonRetryable: true, category: 'BENIGN' });
  }
  if (error instanceof TryLater) {
    const { afterMs, expected } = error.options;
    return ApplicationFailure.create({
      type: 'backend_error', message: error.message,
      ...(afterMs === undefined ? {} : { nextRetryDelay: afterMs }), ...(expected ? { category: 'BENIGN' as const } : {}),
    });
  }
  if (error instanceof AppError && error.retryAfterSeconds !== undefined) {
    return ApplicationFailure.create({ type: error.code, message: error.message, nextRetryDelay: error.retryAfterSeconds * 1_000 });
  }
  if (error instanceof AppError) return ApplicationFailure.create({ type: error.code, message: error.message, nonRetryable: true });
  return ApplicationFailure.create({ type: 'backend_error', message: `A dependency failed (${kindOf(error)}).` });
}

/** SQLSTATE, errno or class name: enough to tell faults apart, nothing of what was said. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' && /^[A-Z0-9_]{3,40}$/.test(error.code) ? error.code : error.constructor.name;
}
