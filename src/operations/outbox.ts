import { execute, rows, type Db } from '../db/client';
import { operationColumns, type OperationRow } from './store';

/** Rows whose workflow is to be started: the work has not begun, or a run that waits was not woken yet. As the index `operation_outbox`. */
const waiting = `workflow is not null and (state = 'pending' or (signal is not null and dispatched_at is null))`;

/** The workflow of this row was started. The relay looks again after a while: until a step begins nothing is proven. */
export async function markDispatched(db: Db, operationId: string): Promise<void> {
  await execute(db, `update operation set dispatched_at = now(), next_attempt_at = greatest(next_attempt_at, now() + interval '15 seconds')
    where id = $1 and dispatched_at is null`, operationId);
}

/**
 * Takes due rows whose work has not begun: each goes to one relay only, and comes due again by itself if that relay dies.
 * The pause doubles with every claim: up to a minute for a start that failed, up to ten for one nothing came of (no worker
 * serves the queue, or the run of the same id belonged to an older operation).
 */
export function claimDue(db: Db, limit: number): Promise<OperationRow[]> {
  return rows<OperationRow>(db, `
    update operation set attempts = attempts + 1, next_attempt_at = now() + case when dispatched_at is null
      then least(interval '1 minute', interval '2 seconds' * power(2, least(attempts, 8)))
      else least(interval '10 minutes', interval '15 seconds' * power(2, least(attempts, 8))) end
    where id in (
      select id from operation where ${waiting} and next_attempt_at <= now()
      order by next_attempt_at limit $1::int for update skip locked)
    returning ${operationColumns}`, limit);
}

/** Gives claimed rows back: not they failed, the server did. */
export async function releaseClaims(db: Db, operationIds: readonly string[]): Promise<void> {
  await execute(db, `update operation set attempts = greatest(attempts - 1, 0), next_attempt_at = now()
    where id = any($1::text[]) and ${waiting}`, operationIds);
}

/** Milliseconds until the next row comes due, 0 when one is; null when none waits. */
export async function nextDueInMs(db: Db): Promise<number | null> {
  const [row] = await rows<{ ms: number | null }>(db, `select (extract(epoch from min(next_attempt_at) - now()) * 1000)::float8 as ms
    from operation where ${waiting}`);
  return row?.ms == null ? null : Math.max(0, row.ms);
}

/** How much accepted work Temporal has not been told of, and for how long the oldest of it waits. */
export async function undispatched(db: Db): Promise<{ count: number; oldestSeconds: number }> {
  const [row] = await rows<{ count: number; oldestSeconds: number }>(db, `
    select count(*)::int as count, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as "oldestSeconds" from operation
    where dispatched_at is null and ${waiting}`);
  return row ?? { count: 0, oldestSeconds: 0 };
}
