import { execute, prepared, type Database, type Db } from '../../db/client';

/** Channel on which relays hear that mail waits. */
export const waitingChannel = 'mail_waiting';

export async function notifyWaiting(db: Database): Promise<void> {
  await prepared(db, `select pg_notify('${waitingChannel}', '')`, []);
}

/** These messages are in the hands of the run of this id. */
export async function markDispatched(database: Database, messageIds: readonly string[], workflowId: string): Promise<void> {
  await prepared(database, `update mail_message set dispatched_at = now(), workflow_id = $2 where id = any($1::text[]) and dispatched_at is null`, [messageIds, workflowId]);
}

/** Gives claimed messages back: not they failed, the server did. */
export async function releaseWaiting(db: Db, messageIds: readonly string[]): Promise<void> {
  await execute(db, `update mail_message set dispatch_after = now() where id = any($1::text[]) and dispatched_at is null`, messageIds);
}

/**
 * Takes messages no workflow was started for, in turns between the services that have some, each service's oldest first: a
 * flood of one service delays no other. Another relay passes them over for 30 seconds.
 */
export function claimWaiting(database: Database, limit: number): Promise<{ id: string; orgId: string; projectId: string }[]> {
  return prepared(database, `
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
    select t.id, s.org_id as "orgId", s.project_id as "projectId" from turns t join claimed c on c.id = t.id join mail_service s on s.id = c.mail_service_id order by t.turn, t.dispatch_after`, [limit]);
}

/** Milliseconds until the next message comes due, 0 when one is; null when none waits. */
export async function nextWaitingInMs(database: Database): Promise<number | null> {
  const [row] = await prepared<{ ms: number | null }>(database, `select (extract(epoch from min(dispatch_after) - now()) * 1000)::float8 as ms from mail_message where dispatched_at is null`, []);
  return row?.ms == null ? null : Math.max(0, row.ms);
}

/** Messages with work that is ten minutes overdue wait for a run again; answers how many. The first attempt is due with the creation. */
export function redispatchLost(db: Db, limit: number): Promise<number> {
  return execute(db, `
    update mail_message set dispatched_at = null, dispatch_after = now(), updated_at = now() where id in (
      select m.id from mail_message m where m.settled_at is null and m.dispatched_at < now() - interval '10 minutes' and exists (
        select from mail_recipient r where r.message_id = m.id and (r.status in ('queued', 'sending') or r.status = 'deferred' and r.retry_owner = 'us')
          and greatest(r.next_attempt_at, r.lease_until) < now() - interval '10 minutes')
      order by m.created_at limit $1::int for update skip locked)`, limit);
}
