import { execute, prepared, rows, type Database, type Db } from '../../db/client';

/** Channel on which relays hear that mail waits. */
export const waitingChannel = 'mail_waiting';

export async function notifyWaiting(db: Database): Promise<void> {
  await prepared(db, `select pg_notify('${waitingChannel}', '')`, []);
}

/** These messages are in the hands of the run of this id. */
export async function markDispatched(db: Db, messageIds: readonly string[], workflowId: string): Promise<void> {
  await execute(db, `update mail_message set dispatched_at = now(), workflow_id = $2 where id = any($1::text[]) and dispatched_at is null`, messageIds, workflowId);
}

/** Gives claimed messages back: not they failed, the server did. */
export async function releaseWaiting(db: Db, messageIds: readonly string[]): Promise<void> {
  await execute(db, `update mail_message set dispatch_after = now() where id = any($1::text[]) and dispatched_at is null`, messageIds);
}

/**
 * Takes messages no workflow was started for, in turns between the services that have some, each service's oldest first: a
 * flood of one service delays no other. Another relay passes them over for 30 seconds.
 */
export function claimWaiting(db: Db, limit: number): Promise<{ id: string; orgId: string; projectId: string }[]> {
  return rows(db, `
    with recursive service as (
      (select mail_service_id as id from mail_message where dispatched_at is null order by mail_service_id limit 1)
      union all
      select (select m.mail_service_id from mail_message m where m.dispatched_at is null and m.mail_service_id > s.id order by m.mail_service_id limit 1)
      from service s where s.id is not null),
    turns as materialized (
      select w.id, w.dispatch_after, w.turn from service s cross join lateral (
        select l.id, l.dispatch_after, row_number() over (order by l.dispatch_after, l.id) as turn from (
          select m.id, m.dispatch_after from mail_message m where m.mail_service_id = s.id and m.dispatched_at is null and m.dispatch_after <= now()
          order by m.dispatch_after limit $1::int for update skip locked) l) w
      where s.id is not null order by w.turn, w.dispatch_after limit $1::int),
    claimed as (
      update mail_message m set dispatch_after = now() + interval '30 seconds' from turns t where m.id = t.id returning m.id, m.mail_service_id)
    select t.id, s.org_id as "orgId", s.project_id as "projectId" from turns t join claimed c on c.id = t.id join mail_service s on s.id = c.mail_service_id order by t.turn, t.dispatch_after`, limit);
}

/** Milliseconds until the next message comes due, 0 when one is; null when none waits. */
export async function nextWaitingInMs(db: Db): Promise<number | null> {
  const [row] = await rows<{ ms: number | null }>(db, `select (extract(epoch from min(dispatch_after) - now()) * 1000)::float8 as ms from mail_message where dispatched_at is null`);
  return row?.ms == null ? null : Math.max(0, row.ms);
}
