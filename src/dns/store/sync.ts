import { execute, rows, type Db } from '../../db/client';
import type { SyncReport } from '../sync-report';
import { serverLiveSeconds } from './zones';

/** `lagMs`: since its last heartbeat. */
export type ServerVersion = { name: string; version: number | null; lagMs: number };

/** The version of the zone each live server answers with; null: it does not have the zone. */
export function readServers(db: Db, zoneId: string): Promise<ServerVersion[]> {
  return rows<ServerVersion>(db, `select s.id as name, a.version, greatest(0, round(extract(epoch from clock_timestamp() - s.heartbeat_at) * 1000))::float8 as "lagMs"
    from dns_server s left join dns_ack a on a.server_id = s.id and a.zone_id = $1
    where s.heartbeat_at > now() - interval '${serverLiveSeconds} seconds' order by s.id`, zoneId);
}

/** The servers are told of the zone's version once more. */
export async function notifyServers(db: Db, zoneId: string): Promise<void> {
  await execute(db, `select pg_notify('dns_zone', id || ':' || version) from dns_zone where id = $1`, zoneId);
}

export async function markSynced(db: Db, zoneId: string, report: SyncReport): Promise<void> {
  await execute(db, `update dns_zone set last_synced_at = now(), sync_error_code = null, sync_error_message = null, sync_report = $2::json where id = $1`, zoneId, JSON.stringify(report));
}

/** What the last sync said, if it is young enough. */
export async function readSyncReport(db: Db, zoneId: string, seconds: number): Promise<SyncReport | null> {
  const [row] = await rows<{ report: SyncReport | null }>(db, `select sync_report as report from dns_zone
    where id = $1 and last_synced_at > now() - $2::int * interval '1 second'`, zoneId, seconds);
  return row?.report ?? null;
}

/** The last attempt did not succeed in its time. */
export async function markUnsynced(db: Db, zoneId: string, error: { code: string; message: string }): Promise<void> {
  await execute(db, 'update dns_zone set sync_error_code = $2, sync_error_message = $3 where id = $1 and deleted_at is null', zoneId, error.code, error.message);
}
