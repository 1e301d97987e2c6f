import { rows, type Db } from '../../db/client';
import { serviceColumns, type ServiceRow } from './services';

export type Seen = { compute: ServiceRow['compute']; usedBytes: number | null; limitBytes: number; inSync: boolean | null };

/** Share of the plan's storage from which it is a warning (contract postgres.md §4.5). */
const warningShare = 0.8;

/** Services that run or could, in the order of ids. */
export function listObservable(db: Db, after: string, limit: number): Promise<ServiceRow[]> {
  return rows<ServiceRow>(db, `select ${serviceColumns}, null as "operationId" from postgres_service s
    where s.id > $1 and s.status in ('available', 'updating', 'suspended') and s.host_id is not null order by s.id limit $2::int`, after, limit);
}

/**
 * What was seen is shown, and the largest size of the hour is kept for billing; null leaves a fact as it was. Nothing of a
 * service that has a newer intent is written.
 */
export async function recordSeen(db: Db, service: { id: string; generation: number }, seen: Seen): Promise<void> {
  await rows(db, `
    with seen as (
      update postgres_service set compute = $3, used_bytes = coalesce($4::bigint, used_bytes), measured_at = case when $4::bigint is null then measured_at else now() end,
        storage_state = case when storage_state not in ('ok', 'warning') or $4::bigint is null then storage_state
          when $4::bigint >= $5::float8 * $6::bigint then 'warning' else 'ok' end
      where id = $1 and generation = $2::int and status in ('available', 'updating', 'suspended') returning id),
    synced as (
      update postgres_credential set in_sync = $7::boolean, checked_at = now() from seen
      where service_id = seen.id and state = 'current' and $7::boolean is not null)
    insert into postgres_usage as u (service_id, hour, max_bytes)
    select seen.id, date_trunc('hour', now(), 'UTC'), $4::bigint from seen where $4::bigint is not null
    on conflict (service_id, hour) do update set max_bytes = greatest(u.max_bytes, excluded.max_bytes) returning 1 as one`,
  service.id, service.generation, seen.compute, seen.usedBytes, warningShare, seen.limitBytes, seen.inSync);
}
