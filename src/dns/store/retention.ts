import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { serverLiveSeconds } from './zones';

export type ZoneRef = { id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'>; domain: string };

/** Zones whose time to be restored is over and that nobody is purging. */
export function listPurgeable(db: Db, limit: number): Promise<ZoneRef[]> {
  return rows(db, `select z.id, z.org_id as "orgId", z.project_id as "projectId", z.domain from dns_zone z
    where z.purge_at <= now() and z.purged_at is null
      and not exists (select from operation o where o.resource_id = z.id and o.kind = 'dns.purge' and o.state in ('pending', 'running'))
    order by z.purge_at limit $1::int`, limit);
}

/** Whether the zone is still to be purged, and whether a server answers for it. Null: it is not, having been restored or purged. */
export async function readPurge(db: Db, zoneId: string): Promise<{ answered: boolean } | null> {
  const [row] = await rows<{ answered: boolean }>(db, `select z.served
      or exists (select from dns_ack a join dns_server s on s.id = a.server_id where a.zone_id = z.id and s.heartbeat_at > now() - interval '${serverLiveSeconds} seconds')
      or (z.applied_version between 1 and z.version - 1 and exists (select from dns_server where push)) as answered
    from dns_zone z where z.id = $1 and z.purge_at <= now() and z.purged_at is null`, zoneId);
  return row ?? null;
}

/** Some of what a zone to be purged has: how many rows went; 0 when nothing is left, or the zone was restored. */
export async function dropContent(tx: Tx, zoneId: string, rowsMax: number): Promise<number> {
  const due = await rows(tx, 'select id from dns_zone where id = $1 and purge_at <= now() and purged_at is null for update', zoneId);
  if (due.length === 0) return 0;
  const records = await execute(tx, 'delete from dns_record where ctid = any(array(select ctid from dns_record where zone_id = $1 limit $2::int))', zoneId, rowsMax);
  const sets = await execute(tx, 'delete from dns_change_set where ctid = any(array(select ctid from dns_change_set where zone_id = $1 limit $2::int))', zoneId, rowsMax);
  return records + sets + await execute(tx, 'delete from dns_flattened where zone_id = $1', zoneId);
}

/** The row stays: it names what was; its tokens lead nowhere from now on. False: it was purged before, or is not to be. */
export async function markPurged(tx: Tx, zoneId: string): Promise<boolean> {
  const purged = await execute(tx, `update dns_zone set purged_at = now(), record_count = 0, proxied_count = 0, report = null, sync_report = null, updated_at = now()
    where id = $1 and purge_at <= now() and purged_at is null`, zoneId) === 1;
  // The platform's own zones hold a name per token: servers look again.
  if (purged) await execute(tx, `select pg_notify('dns_zone', id || ':' || version) from dns_zone where id = $1`, zoneId);
  return purged;
}

/** Some deleted records older than `days`: how many went. */
export function dropDeletedRecords(db: Db, days: number, rowsMax: number): Promise<number> {
  return execute(db, `delete from dns_record where ctid = any(array(
    select ctid from dns_record where deleted_at < now() - $1::int * interval '1 day' limit $2::int))`, days, rowsMax);
}

/** Some change sets older than `days`: how many went. */
export function dropChangeSets(db: Db, days: number, rowsMax: number): Promise<number> {
  return execute(db, `delete from dns_change_set where ctid = any(array(
    select ctid from dns_change_set where created_at < now() - $1::int * interval '1 day' limit $2::int))`, days, rowsMax);
}

/** Zones after an id that keep deleted records. */
export function listWithDeleted(db: Db, after: string, limit: number): Promise<{ id: string; orgId: Id<'org'> }[]> {
  return rows(db, `select z.id, z.org_id as "orgId" from dns_zone z
    where z.id > $1 and exists (select from dns_record r where r.zone_id = z.id and r.deleted_at is not null) order by z.id limit $2::int`, after, limit);
}
