import { systemCause, type Cause } from '../core/caller';
import type { Id } from '../core/ids';
import type { Log } from '../core/log';
import type { Metrics } from '../core/metrics';
import { afterCommit, type Tx } from '../db/transaction';

/** Something an operator should look at: it is counted, logged and written into the organisation's audit log. */
export type Alert = {
  action: 'overdueWork' | 'failedUndo' | 'failedDrill' | 'strayInstance';
  /** The rule or the step that found it; a label of the metric. */
  by: string;
  orgId: Id<'org'> | null;
  projectId: Id<'prj'> | null;
  target: { type: string; id: string };
  changes: readonly { field: string; from: unknown; to: unknown }[];
};

export interface Alerts {
  /** Part of the transaction; counted and logged once that is durable. */
  raise(tx: Tx, alert: Alert): void;
}

/** Identity's `appendAudit`, handed in: this folder does not know identity. */
type AppendAudit = (tx: Tx, facts: {
  orgId: Id<'org'> | null; projectId: Id<'prj'> | null; cause: Cause; outcome: 'done'; target: Alert['target']; changes: Alert['changes'];
}) => void;

export function createAlerts(deps: { appendAudit: AppendAudit; metrics: Pick<Metrics, 'overdueWork' | 'failedUndo' | 'operatorAlerts'>; log: Log }): Alerts {
  return {
    raise(tx, { action, by, orgId, projectId, target, changes }) {
      deps.appendAudit(tx, { orgId, projectId, cause: systemCause(action), outcome: 'done', target, changes });
      afterCommit(tx, () => {
        if (action === 'overdueWork') deps.metrics.overdueWork.inc({ rule: by });
        else if (action === 'failedUndo') deps.metrics.failedUndo.inc({ step: by });
        else deps.metrics.operatorAlerts.inc({ action });
        deps.log.error({ alert: action, by, orgId, projectId, target }, 'an operator should look at this');
      });
    },
  };
}
