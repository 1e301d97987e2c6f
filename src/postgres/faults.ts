import { AppError, notFound } from '../core/errors';
import type { ServiceRow } from './store/services';

/** What billing counts: services of a plan in a project (contract billing.md §1). */
export const quotaResource = 'postgres.services';

export function noService(): AppError {
  return notFound('Postgres service');
}

export function invalidState(service: Pick<ServiceRow, 'status' | 'operationId'>, message: string): AppError {
  return new AppError('invalid_state', message, { status: service.status, operationId: service.operationId });
}
