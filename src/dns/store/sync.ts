import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { ServerState } from '../ports';
import type { SyncReport } from '../sync-report';
import { serverLiveSeconds } from './zones';

/** What each live server of ours has acknowledged of the zone. No zone: which servers live. */
export function readServers(db: Db, zoneId: string): Promise<ServerState[]> {
  return rows<ServerState>(db, `select s.id as name, a.version, case when a.version = z.version then z.serial::float8 end as serial, coalesce(a.version = z.version, false) as "inSync",
      case when a.version = z.version then 0 else greatest(0, round(extract(epoch from clock_timestamp() - z.version_at) * 1000))::float8 end as "lagMs"
    from dns_server s left join dns_zone z on z.id = $1 left join dns_ack a on a.server_id = s.id and a.zone_id = z.id
    where not s.push and s.heartbeat_at > now() - interval '${serverLiveSeconds} seconds' order by s.id`, zoneId);
}

/** The servers are told of the zone's version once more. */
export async function notifyServers(db: Db, zoneId: string): Promise<void> {
  await execute(db, `select pg_notify('dns_zone', id || ':' || version) from dns_zone where id = $1`, zoneId);
}

/** One sync of a zone at a time: until when it is the caller's turn; null while it is somebody else's. */
export async function takeSyncLease(db: Db, zoneId: string, seconds: number): Promise<string | null> {
  const [row] = await rows<{ until: string }>(db, `update dns_zone set sync_lease_until = clock_timestamp() + $2::int * interval '1 second'
    where id = $1 and (sync_lease_until is null or sync_lease_until < clock_timestamp()) returning sync_lease_until::text as until`, zoneId, seconds);
  return row?.until ?? null;
}

export async function releaseSyncLease(db: Db, zoneId: string, until: string): Promise<void> {
  await execute(db, 'update dns_zone set sync_lease_until = null where id = $1 and sync_lease_until = $2::timestamptz', zoneId, until);
}

/** The push backend has this version; what it has never goes back. */
export async function markApplied(db: Db, zoneId: string, version: number): Promise<void> {
  await execute(db, `update dns_zone set applied_version = least(version, $2::int), applied_at = now() where id = $1 and applied_version < $2::int`, zoneId, version);
}

/** Everybody has the zone as it is. `report`: how that was found; null when nobody looked. */
export async function markSynced(db: Db, zoneId: string, report: SyncReport | null): Promise<void> {
  await execute(db, `update dns_zone set last_synced_at = now(), sync_error_code = null, sync_error_message = null, sync_blocked = $2::json is null and sync_blocked, sync_forced = false,
    sync_report = coalesce($2::json, sync_report), sync_reported_at = case when $2::json is null then sync_reported_at else now() end where id = $1`, zoneId, report && JSON.stringify(report));
}

/** The guard held the repair back: nothing was changed. */
export async function markBlocked(db: Db, zoneId: string, report: SyncReport, error: { code: string; message: string }): Promise<void> {
  await execute(db, `update dns_zone set sync_blocked = true, sync_report = $2::json, sync_reported_at = now(), sync_error_code = $3, sync_error_message = $4 where id = $1`,
    zoneId, JSON.stringify(report), error.code, error.message);
}

/** The next sync may change everything. */
export async function markForced(db: Db, zoneId: string): Promise<void> {
  await execute(db, 'update dns_zone set sync_forced = true where id = $1', zoneId);
}

/** What the last sync said, if it is young enough. */
export async function readSyncReport(db: Db, zoneId: string, seconds: number): Promise<SyncReport | null> {
  const [row] = await rows<{ report: SyncReport | null }>(db, `select sync_report as report from dns_zone
    where id = $1 and sync_reported_at > clock_timestamp() - $2::float8 * interval '1 second'`, zoneId, seconds);
  return row?.report ?? null;
}

/** The last attempt did not succeed in its time. */
export async function markUnsynced(db: Db, zoneId: string, error: { code: string; message: string }): Promise<void> {
  await execute(db, 'update dns_zone set sync_error_code = $2, sync_error_message = $3 where id = $1', zoneId, error.code, error.message);
}

/** A push backend stands among the servers and is always waited for; null: there is none, our own servers answer. */
export async function registerPushBackend(db: Db, name: string | null): Promise<void> {
  if (name !== null) await execute(db, 'insert into dns_server (id, addresses, push) values ($1, $2::text[], true) on conflict (id) do update set push = true', name, []);
  await execute(db, 'delete from dns_server where push and id is distinct from $1', name);
}

export type UnsyncedZone = { id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'>; domain: string; version: number };
const unsyncedColumns = 'id, org_id as "orgId", project_id as "projectId", domain, version';

/** Versions a push backend does not have and whose workflow has not been told of them, oldest first. */
export function listUntold(db: Db, limit: number): Promise<UnsyncedZone[]> {
  return rows<UnsyncedZone>(db, `select ${unsyncedColumns} from dns_zone
    where version > applied_version and (served or applied_version > 0) and version > asked_version order by version_at limit $1::int`, limit);
}

export async function markAsked(db: Db, zoneId: string, version: number): Promise<void> {
  await execute(db, 'update dns_zone set asked_version = greatest(asked_version, $2::int) where id = $1', zoneId, version);
}

/** Zones that were given up, and with a push backend those whose version waits for two minutes, without an open operation. */
export function listUnsynced(db: Db, limit: number): Promise<UnsyncedZone[]> {
  return rows<UnsyncedZone>(db, `select ${unsyncedColumns} from dns_zone z
    where purged_at is null and ((sync_error_code is not null and deleted_at is null and not sync_blocked)
        or (version > applied_version and (served or applied_version > 0) and version_at < now() - interval '2 minutes' and exists (select from dns_server where push)))
      and not exists (select from operation o where o.resource_id = z.id and o.kind = 'dns.sync' and o.state in ('pending', 'running'))
    order by version_at limit $1::int`, limit);
}

/** Served zones after an id; `behind`: a live server of ours has not acknowledged the version for a minute. */
export function listServedZones(db: Db, after: string, limit: number): Promise<{ id: Id<'zone'>; behind: boolean }[]> {
  return rows(db, `select z.id, z.version_at < now() - interval '1 minute' and exists (
      select from dns_server s left join dns_ack a on a.server_id = s.id and a.zone_id = z.id
      where not s.push and s.heartbeat_at > now() - interval '${serverLiveSeconds} seconds' and a.version is distinct from z.version) as behind
    from dns_zone z where z.served and z.id > $1 order by z.id limit $2::int`, after, limit);
}
