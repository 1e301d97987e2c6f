import { isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import type { Id } from '../core/ids';
import type { Log } from '../core/log';
import { execute, rows, type Database, type Db } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import type { Temporal } from '../temporal/connection';
import type { Alerts } from './alerts';
import { startOperation } from './dispatcher';
import { operationColumns, type OperationRow } from './store';

/** A row whose deadline has passed while it was on its way from one status to the next. */
export type OverdueWork = {
  orgId: Id<'org'>;
  projectId: Id<'prj'> | null;
  /** As audit rows name it: `{ type: 'postgresService', id: 'pg_…' }`. */
  target: { type: string; id: string };
  status: string;
  deadlineAt: Date;
};

/** What a product tells reconcile about its transitional rows; deps.ts hands the rules in. */
export interface ReconcileRule {
  /** Label of the metric and key of the alert: 'postgres-service'. */
  readonly name: string;
  /** Rows past their deadline, oldest first, at most `limit`. */
  findOverdue(db: Db, limit: number): Promise<OverdueWork[]>;
  /**
   * Rows that are in a transitional status for two minutes without an open operation, each given a new one: opens at
   * most `limit`. Left out when accepting transaction and mark can only leave a row together with its operation.
   */
  reopen?(tx: Tx, limit: number): Promise<OperationRow[]>;
}

export type ReconcileDeps = {
  database: Database; temporal: Temporal; alerts: Alerts; log: Log; rules: readonly ReconcileRule[];
  /** Called between rows, for a heartbeat. */
  beat?: () => void;
};

export type Attendance = Omit<ReconcileDeps, 'rules'>;

const pageMax = 200;

/**
 * The safety net below dispatcher and relay (design.md §4): what is open without a run is started again, what has missed
 * its deadline is raised as an alert once and started again. Safe at any time and twice at once.
 */
export async function reconcile(deps: ReconcileDeps): Promise<{ restarted: number; overdue: number }> {
  let restarted = 0;
  let overdue = 0;
  for (const rule of [...deps.rules, longOpenOperations]) {
    const { reopen } = rule;
    const reopened = reopen ? await inTransaction(deps.database, (tx) => reopen.call(rule, tx, pageMax)) : [];
    for (const operation of reopened) restarted += await restart(deps, operation);
    for (const work of await rule.findOverdue(deps.database.prisma, pageMax)) overdue += await raiseOnce(deps, rule.name, work);
  }
  for (let after = ''; ;) {
    const page = await openOperations(deps.database.prisma, after);
    for (const operation of page) if (!await hasRun(deps, operation)) restarted += await restart(deps, operation);
    const last = page.at(-1);
    if (!last || page.length < pageMax) return { restarted, overdue };
    after = last.id;
  }
}

/** The same for the overdue rows of one product, between two runs of reconcile: raised once each, and started again where no run is. */
export async function attendOverdue(deps: Attendance, rule: ReconcileRule): Promise<{ restarted: number; overdue: number }> {
  const found = { restarted: 0, overdue: 0 };
  for (const work of await rule.findOverdue(deps.database.prisma, pageMax)) {
    found.overdue += await raiseOnce(deps, rule.name, work);
    for (const operation of await openRunsOf(deps.database.prisma, work.target.id)) {
      if (!await hasRun(deps, operation)) found.restarted += await restart(deps, operation);
    }
  }
  return found;
}

function openRunsOf(db: Db, resourceId: string): Promise<OperationRow[]> {
  return rows<OperationRow>(db, `select ${operationColumns} from operation where resource_id = $1 and workflow is not null and state in ('pending', 'running')`, resourceId);
}

/** Work that waits for the customer: their DNS. */
const patientKinds = ['mail.verify_domain'];

/** Work without a deadline of its own row: an hour is more than any of it should take. */
const longOpenOperations: ReconcileRule = {
  name: 'operation',
  findOverdue: async (db, limit) => {
    const found = await rows<Omit<OverdueWork, 'target'> & { id: string }>(db, `
      select org_id as "orgId", project_id as "projectId", id, state as status, created_at + interval '1 hour' as "deadlineAt" from operation
      where workflow is not null and state in ('pending', 'running') and created_at < now() - interval '1 hour' and kind <> all($2::text[])
      order by created_at limit $1::int`, limit, patientKinds);
    return found.map(({ id, ...work }) => ({ ...work, target: { type: 'operation', id } }));
  },
};

/** Open for two minutes, in the order of ids. */
function openOperations(db: Db, after: string): Promise<OperationRow[]> {
  return rows<OperationRow>(db, `select ${operationColumns} from operation
    where workflow is not null and state in ('pending', 'running') and created_at < now() - interval '2 minutes' and id > $1
    order by id limit ${pageMax}`, after);
}

async function hasRun({ temporal, beat }: Attendance, { workflowId }: OperationRow): Promise<boolean> {
  beat?.();
  if (workflowId === null) return true;
  try {
    const { status } = await temporal.client.workflow.getHandle(workflowId).describe();
    return status.name === 'RUNNING';
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || (isGrpcServiceError(error) && error.code === 5)) return false;
    throw error;
  }
}

/** One start more; its failure leaves the others their turn, and the next run of reconcile sees the row again. */
async function restart(deps: Attendance, operation: OperationRow): Promise<number> {
  deps.beat?.();
  await execute(deps.database.prisma, 'update operation set attempts = attempts + 1 where id = $1', operation.id);
  try {
    await startOperation(deps, operation);
    deps.log.warn({ operationId: operation.id, kind: operation.kind, workflowId: operation.workflowId }, 'started again what had no run');
    return 1;
  } catch (error) {
    deps.log.warn({ operationId: operation.id, err: error }, 'cannot start it again yet');
    return 0;
  }
}

/** 1 when the deadline was not raised before. A run in progress is not disturbed; one that is missing is found by the caller. */
async function raiseOnce(deps: Attendance, rule: string, work: OverdueWork): Promise<number> {
  deps.beat?.();
  return inTransaction(deps.database, async (tx) => {
    const inserted = await execute(tx, 'insert into overdue_alert (rule, target_id, deadline_at) values ($1, $2, $3) on conflict do nothing', rule, work.target.id, work.deadlineAt);
    if (inserted === 0) return 0;
    const { orgId, projectId, target, status, deadlineAt } = work;
    const deadline = deadlineAt.toISOString();
    deps.alerts.raise(tx, {
      action: 'overdueWork', by: rule, orgId, projectId, target,
      changes: [{ field: 'status', from: status, to: status }, { field: 'deadlineAt', from: deadline, to: deadline }],
    });
    return 1;
  });
}
