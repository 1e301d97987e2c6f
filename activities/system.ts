import { heartbeat } from '@temporalio/activity';
import type { Log } from '../src/core/log';
import type { Database } from '../src/db/client';
import { inTransaction } from '../src/db/transaction';
import type { Alerts } from '../src/operations/alerts';
import { reconcile, type ReconcileRule } from '../src/operations/reconcile';
import { dropExpiredFrameRows } from '../src/operations/retention';
import { getOperation } from '../src/operations/store';
import type { Temporal } from '../src/temporal/connection';

export type SystemActivityDeps = { db: Database; temporal: Temporal; alerts: Alerts; log: Log; reconcileRules: readonly ReconcileRule[] };
export type SystemActivities = ReturnType<typeof createSystemActivities>;

/** What the platform does for itself, on the queue `system`; `reportFailedUndo` on every queue. */
export function createSystemActivities(deps: SystemActivityDeps) {
  return {
    /** Accepted work without a run has one again; missed deadlines are raised. */
    async restartStuckWork(): Promise<{ restarted: number; overdue: number }> {
      const { db: database, temporal, alerts, log, reconcileRules: rules } = deps;
      return reconcile({ database, temporal, alerts, log, rules, beat: () => heartbeat() });
    },

    /** Answers kept for Idempotency-Keys, counts of past limits and raised alerts are gone after their time. */
    async dropExpiredRows(): Promise<void> {
      await dropExpiredFrameRows(deps.db, () => heartbeat());
    },

    /** An undo was refused for good: an operator must look at what is left. */
    async reportFailedUndo(input: { operationId: string; step: string; code: string }): Promise<void> {
      const operation = await getOperation(deps.db.prisma, input.operationId);
      await inTransaction(deps.db, async (tx) => deps.alerts.raise(tx, {
        action: 'failedUndo', by: input.step, orgId: operation?.orgId ?? null, projectId: operation?.projectId ?? null,
        target: { type: 'operation', id: input.operationId }, changes: [{ field: input.step, from: null, to: input.code }],
      }));
    },
  };
}
