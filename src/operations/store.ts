import { newId, type Id } from '../core/ids';
import { execute, prepared, rows, type Database, type Db } from '../db/client';
import type { Tx } from '../db/transaction';
import type { QueueInUse } from '../temporal/queues';

export type OperationState = 'pending' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export type Step = { name: string; state: 'running' | 'succeeded' | 'failed' | 'cancelled'; startedAt: string; finishedAt: string | null };

export type OperationRow = {
  id: Id<'op'>; orgId: Id<'org'>; projectId: Id<'prj'> | null; kind: string; resourceId: string; state: OperationState; steps: Step[];
  errorCode: string | null; errorMessage: string | null; workflow: string | null; workflowId: string | null; taskQueue: QueueInUse | null;
  signal: string | null; payload: Record<string, string | number>; weight: number; summary: string; requestId: string | null; attempts: number;
  createdAt: Date; updatedAt: Date; startedAt: Date | null; finishedAt: Date | null;
};

export type NewOperation = {
  orgId: Id<'org'>;
  projectId: Id<'prj'> | null;
  /** `<product>.<verb>` */
  kind: string;
  resourceId: string;
  /** What the job does, in words for an operator: 'Provision Postgres "orders" (starter)'. No secret, no address. */
  summary: string;
  requestId: string | null;
  /** The workflow that carries it out; absent when the operation is settled by the request itself. Ids and generation only. */
  start?: {
    workflow: string;
    /** A function of the operation's id where each operation has a run of its own. */
    workflowId: string | ((operationId: string) => string);
    queue: QueueInUse; payload: Record<string, string | number>;
    /** The organisation's share of busy workers for this job, by plan; 1 unless given. */
    weight?: number;
    /** Sent with the start: wakes a run of the same id that is waiting. It is sent until Temporal took it, also when the work was done meanwhile. */
    signal?: string;
  };
};

export const operationColumns = `id, org_id as "orgId", project_id as "projectId", kind, resource_id as "resourceId", state, steps,
  error_code as "errorCode", error_message as "errorMessage", workflow, workflow_id as "workflowId", task_queue as "taskQueue", signal,
  payload, weight, summary, request_id as "requestId", attempts, created_at as "createdAt", updated_at as "updatedAt",
  started_at as "startedAt", finished_at as "finishedAt"`;

const openedIn = new WeakMap<Tx, OperationRow[]>();

/**
 * The operation row is the outbox: written with the effect, started after the commit, by the relay if that start fails.
 * The workflow's input is `start.payload` with `operationId` added.
 */
export async function openOperation(tx: Tx, operation: NewOperation): Promise<OperationRow> {
  const id = newId('op');
  const { start } = operation;
  const [row] = await rows<OperationRow>(tx, `
    insert into operation (id, org_id, project_id, kind, resource_id, workflow, workflow_id, task_queue, payload, weight, summary, request_id, signal, next_attempt_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::float8, $11, $12, $13, now() + interval '2 seconds') returning ${operationColumns}`,
  id, operation.orgId, operation.projectId, operation.kind, operation.resourceId, start?.workflow ?? null,
  typeof start?.workflowId === 'function' ? start.workflowId(id) : start?.workflowId ?? null,
  start?.queue ?? null, JSON.stringify({ ...start?.payload, operationId: id }), start?.weight ?? 1, operation.summary, operation.requestId, start?.signal ?? null);
  if (!row) throw new Error('The operation row was not written.');
  openedIn.set(tx, [...openedOperations(tx), row]);
  return row;
}

/** Operations opened in this transaction; whoever commits it starts them. */
export function openedOperations(tx: Tx): readonly OperationRow[] {
  return openedIn.get(tx) ?? [];
}

/**
 * pending → running, with its steps. Safe twice. Steps inform a reader and are written without waiting for the disk: a
 * crash of the database may lose one, never the work; which is why they take no transaction.
 */
export async function startStep(database: Database, operationId: string, name: string): Promise<void> {
  const step = JSON.stringify([{ name, state: 'running', startedAt: new Date().toISOString(), finishedAt: null }]);
  await prepared(database, `
    with lax as materialized (select set_config('synchronous_commit', 'off', true))
    update operation set state = 'running', started_at = coalesce(started_at, now()), updated_at = now(),
      steps = jsonb_path_query_array(steps, '$[*] ? (@.name != $name)', jsonb_build_object('name', $2::text)) || $3::jsonb
    from lax where id = $1 and state in ('pending', 'running')`, [operationId, name, step]);
}

/** Nothing happens once the operation is settled: that has closed its steps. */
export async function finishStep(database: Database, operationId: string, name: string, state: 'succeeded' | 'failed'): Promise<void> {
  await prepared(database, `
    with lax as materialized (select set_config('synchronous_commit', 'off', true))
    update operation set updated_at = now(), steps = (
      select jsonb_agg(case when step->>'name' = $2 then step || jsonb_build_object('state', $3::text, 'finishedAt', $4::text) else step end)
      from jsonb_array_elements(steps) step)
    from lax where id = $1 and state = 'running' and jsonb_array_length(steps) > 0`, [operationId, name, state, new Date().toISOString()]);
}

/** Settles an open operation and the steps that run; false when it was settled before. `error` goes with `failed` alone. */
export async function settleOperation(
  db: Db, operationId: string, state: 'succeeded' | 'failed' | 'cancelled', error?: { code: string; message: string },
): Promise<boolean> {
  const changed = await execute(db, `
    update operation set state = $2, error_code = $3, error_message = $4, started_at = coalesce(started_at, now()), finished_at = now(), updated_at = now(),
      steps = coalesce((
        select jsonb_agg(case when step->>'state' = 'running' then step || jsonb_build_object('state', $2::text, 'finishedAt', $5::text) else step end)
        from jsonb_array_elements(steps) step), '[]')
    where id = $1 and state in ('pending', 'running')`, operationId, state, error?.code ?? null, error?.message ?? null, new Date().toISOString());
  return changed === 1;
}

/** The open operation of a resource and kind, newest first; null when there is none. */
export async function findOpenOperation(db: Db, resourceId: string, kinds: readonly string[]): Promise<OperationRow | null> {
  const [row] = await rows<OperationRow>(db, `select ${operationColumns} from operation
    where resource_id = $1 and kind = any($2::text[]) and state in ('pending', 'running') order by created_at desc, id desc limit 1`, resourceId, kinds);
  return row ?? null;
}

export async function getOperation(db: Db, operationId: string): Promise<OperationRow | null> {
  const [row] = await rows<OperationRow>(db, `select ${operationColumns} from operation where id = $1`, operationId);
  return row ?? null;
}

/** Every open operation of a resource and kind. */
export function openOperationsOf(db: Db, resourceId: string, kind: string): Promise<OperationRow[]> {
  return rows<OperationRow>(db, `select ${operationColumns} from operation where resource_id = $1 and kind = $2 and state in ('pending', 'running')`, resourceId, kind);
}
