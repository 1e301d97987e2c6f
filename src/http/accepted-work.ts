import { z } from 'zod';
import type { OrgCaller, ProjectCaller } from '../core/caller';
import type { Cursors } from '../core/cursor';
import { notFound } from '../core/errors';
import { text } from '../core/fields';
import { digits, pageAnswer, pageQuery, readPage } from '../core/page';
import type { Database } from '../db/client';
import { findOperation, readOperations, type OperationScope } from '../operations/read';
import type { OperationRow } from '../operations/store';
import { operationSchema, operationStates, viewOperation } from '../operations/view';
import type { OperationWatch } from '../operations/watch';
import { operationsOf, orgPrefix } from './operation';

export interface AcceptedWorkDeps {
  readonly db: Database;
  readonly cursors: Cursors;
  readonly watch: OperationWatch;
}

const { project } = operationsOf<AcceptedWorkDeps>();

const getOperation = project('org:read')({
  id: 'getOperation',
  method: 'get',
  path: '/operations/:operationId',
  aliases: [`${orgPrefix}/operations/:operationId`],
  summary: 'Follow accepted work',
  description: 'With `wait` the answer comes when the state is final, or after that many seconds with the state as it is.',
  tag: 'Operations',
  query: z.object({ wait: digits.pipe(z.number().max(30, 'must be 0 to 30')).optional().meta({ description: 'Seconds to wait for the end, 0 to 30.' }) }),
  answer: z.object({ operation: operationSchema }),
  errors: ['not_found'],
  async handle({ deps, caller, params, query }) {
    const found = await findOperation(deps.db.prisma, scopeOf(caller), params.operationId);
    if (!found) throw notFound('Operation');
    const operation = query.wait ? await deps.watch.awaitFinal(found.id, query.wait * 1_000) : found;
    return { operation: viewOperation(operation ?? found) };
  },
});

const listOperations = project('org:read')({
  id: 'listOperations',
  method: 'get',
  path: '/operations',
  aliases: [`${orgPrefix}/operations`],
  summary: 'List accepted work, newest first',
  tag: 'Operations',
  query: z.object({
    ...pageQuery,
    resourceId: text.pipe(z.string().min(1).max(100)).optional().meta({ description: 'Only work on this resource.' }),
    state: z.enum(operationStates).optional(),
  }),
  answer: z.object({ operations: z.array(operationSchema), ...pageAnswer }),
  errors: ['invalid_cursor'],
  async handle({ deps, caller, query }) {
    const { resourceId = null, state = null } = query;
    const scope = scopeOf(caller);
    const page = await readPage(deps.cursors, ['operations', scope, resourceId, state], query, {
      limitDefault: 25,
      keyOf: (row: OperationRow) => [row.createdAt.toISOString(), row.id],
      fetch: (after, limit) => readOperations(deps.db.prisma, scope, { resourceId, state, after, limit }),
    });
    return { operations: page.items.map(viewOperation), nextCursor: page.nextCursor, hasMore: page.hasMore };
  },
});

export const acceptedWorkOperations = [getOperation, listOperations];

/** Below the alias there is no project in the path: then all of the organisation's work is meant. */
function scopeOf(caller: OrgCaller | ProjectCaller): OperationScope {
  return { orgId: caller.org.id, projectId: 'project' in caller ? caller.project.id : null };
}
