import type { ReconcileRule } from '../operations/reconcile';
import { findOverdue } from './store/runs';

/**
 * Overdue services are raised as alerts. A missing run needs no rule here: the accepting transaction writes service and
 * operation together and every mark settles both, so whatever is transitional has an open operation, and reconcile starts
 * open operations that have no run.
 */
export const postgresReconcileRule: ReconcileRule = {
  name: 'postgres-service',
  findOverdue: async (db, limit) => (await findOverdue(db, limit))
    .map(({ id, orgId, projectId, status, deadlineAt }) => ({ orgId, projectId, status, deadlineAt, target: { type: 'postgresService', id } })),
};
