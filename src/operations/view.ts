import { z } from 'zod';
import { isErrorCode } from '../core/errors';
import { time } from '../core/fields';
import type { OperationRow } from './store';

export const operationStates = ['pending', 'running', 'succeeded', 'failed', 'cancelled'] as const;

/** What the customer follows after a 202 (contract api.md §9). */
export const operationSchema = z.object({
  id: z.string(),
  kind: z.string().meta({ description: '`<product>.<verb>`' }),
  resourceId: z.string(),
  state: z.enum(operationStates).meta({ description: 'succeeded, failed and cancelled are final.' }),
  steps: z.array(z.object({
    name: z.string(),
    state: z.enum(['running', 'succeeded', 'failed', 'cancelled']),
    startedAt: time,
    finishedAt: time.nullable(),
  })),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  createdAt: time,
  updatedAt: time,
  startedAt: time.nullable(),
  finishedAt: time.nullable(),
}).meta({ id: 'Operation' });

export type OperationView = z.infer<typeof operationSchema>;

export function viewOperation(row: OperationRow): OperationView {
  return {
    id: row.id,
    kind: row.kind,
    resourceId: row.resourceId,
    state: row.state,
    steps: row.steps.map(({ name, state, startedAt, finishedAt }) => ({ name, state, startedAt, finishedAt })),
    error: row.errorCode === null ? null : { code: isErrorCode(row.errorCode) ? row.errorCode : 'internal_error', message: row.errorMessage ?? '' },
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    startedAt: row.startedAt?.toISOString() ?? null,
    finishedAt: row.finishedAt?.toISOString() ?? null,
  };
}

export function isFinal(state: OperationRow['state']): boolean {
  return state === 'succeeded' || state === 'failed' || state === 'cancelled';
}
