import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Status, StorageState } from '../state';
import { serviceColumns, type ServiceRow } from './services';

/** Running totals of a server; two of them make a rate. */
export type Totals = { transactions: number; blocksHit: number; blocksRead: number; walBytes: number };
export type KeptMetrics = {
  connections: { active: number; idle: number; waiting: number };
  transactionsPerSecond: number; cacheHitRatio: number; walBytesPerSecond: number; oldestTransactionSeconds: number; blockedSessions: number;
};
export type ObservationRow = { metrics: KeptMetrics; totals: Totals | null; measuredAt: Date };
export type Seen = { compute: ServiceRow['compute']; usedBytes: number | null; inSync: boolean | null; metrics: KeptMetrics; totals: Totals | null };

/** Services that run or could, in the order of ids. */
export function listObservable(db: Db, after: string, limit: number): Promise<ServiceRow[]> {
  return rows<ServiceRow>(db, `select ${serviceColumns}, null as "operationId" from postgres_service s
    where s.id > $1 and s.status in ('available', 'updating', 'suspended') and s.host_id is not null order by s.id limit $2::int`, after, limit);
}

/** What a server last said of itself; null before it was first asked. */
export async function findObservation(db: Db, serviceId: string): Promise<ObservationRow | null> {
  const [row] = await rows<ObservationRow>(db, `select metrics, totals, measured_at as "measuredAt" from postgres_observation where service_id = $1`, serviceId);
  return row ?? null;
}

/**
 * What was seen is shown, and the largest size of the hour is kept for billing; null leaves a fact as it was. Nothing of a
 * service that has a newer intent is written.
 */
export async function recordSeen(db: Db, service: { id: string; generation: number }, seen: Seen): Promise<void> {
  await rows(db, `
    with seen as (
      update postgres_service set compute = $3, used_bytes = coalesce($4::bigint, used_bytes), measured_at = case when $4::bigint is null then measured_at else now() end
      where id = $1 and generation = $2::int and status in ('available', 'updating', 'suspended') returning id),
    synced as (
      update postgres_credential set in_sync = $5::boolean, checked_at = now() from seen
      where service_id = seen.id and state = 'current' and $5::boolean is not null),
    observed as (
      insert into postgres_observation (service_id, metrics, totals) select seen.id, $6::jsonb, $7::jsonb from seen
      on conflict (service_id) do update set metrics = excluded.metrics, totals = excluded.totals, measured_at = now())
    insert into postgres_usage as u (service_id, hour, max_bytes)
    select seen.id, date_trunc('hour', now(), 'UTC'), $4::bigint from seen where $4::bigint is not null
    on conflict (service_id, hour) do update set max_bytes = greatest(u.max_bytes, excluded.max_bytes) returning 1 as one`,
  service.id, service.generation, seen.compute, seen.usedBytes, seen.inSync, JSON.stringify(seen.metrics), seen.totals && JSON.stringify(seen.totals));
}

/** Storage state and whether owners were told, as a compare-and-set against what they were. */
export async function setStorage(tx: Tx, service: Pick<ServiceRow, 'id' | 'generation' | 'storageState' | 'storageNoticed'>, next: { state: StorageState; noticed: boolean }): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set storage_state = $3, storage_noticed = $4::boolean
    where id = $1 and generation = $2::int and storage_state = $5 and storage_noticed = $6::boolean and status in ('available', 'updating', 'suspended')`,
  service.id, service.generation, next.state, next.noticed, service.storageState, service.storageNoticed);
}

/** Living services by status. */
export function countByStatus(db: Db): Promise<{ status: Status; count: number }[]> {
  return rows(db, `select status, count(*)::int as count from postgres_service where status <> 'deleted' group by status`);
}

export type ClosedHour = { serviceId: string; orgId: string; hour: Date; gibHours: string };

/** Hours that have ended and are not billed yet, locked for whoever bills them. */
export function takeClosedHours(tx: Tx, limit: number): Promise<ClosedHour[]> {
  return rows<ClosedHour>(tx, `select u.service_id as "serviceId", s.org_id as "orgId", u.hour, round(u.max_bytes / 1073741824.0, 6)::text as "gibHours"
    from postgres_usage u join postgres_service s on s.id = u.service_id
    where not u.billed and u.hour < date_trunc('hour', now(), 'UTC') order by u.hour, u.service_id limit $1::int for update of u skip locked`, limit);
}

export async function markBilled(tx: Tx, hours: readonly ClosedHour[]): Promise<void> {
  await execute(tx, `update postgres_usage u set billed = true from unnest($1::text[], $2::timestamptz[]) as h (service_id, hour)
    where u.service_id = h.service_id and u.hour = h.hour`, hours.map(({ serviceId }) => serviceId), hours.map(({ hour }) => hour.toISOString()));
}

/** Hours are kept for 40 days. */
export async function dropOldHours(db: Db): Promise<void> {
  await execute(db, `delete from postgres_usage where hour < now() - interval '40 days'`);
}
