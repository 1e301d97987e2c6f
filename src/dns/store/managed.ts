import type { Id } from '../../core/ids';
import { rows, type Db } from '../../db/client';
import { loadZone, type ZoneRow } from './zones';

/** The project's zone with the longest name at or above the domain. */
export async function findClosestZone(db: Db, projectId: string, domain: string): Promise<ZoneRow | null> {
  const labels = domain.split('.');
  const names = labels.map((_, i) => labels.slice(i).join('.'));
  const [row] = await rows<{ id: string }>(db, `select id from dns_zone where project_id = $1 and domain = any($2::text[]) and deleted_at is null
    order by length(domain) desc limit 1`, projectId, names);
  return row ? loadZone(db, row.id) : null;
}

/** Zones that hold records of this owner. */
export async function listManagedZones(db: Db, owner: string, ownerId: string): Promise<Id<'zone'>[]> {
  const found = await rows<{ id: Id<'zone'> }>(db, `select distinct zone_id as id from dns_record where managed = $1 and managed_id = $2 and deleted_at is null order by 1`, owner, ownerId);
  return found.map(({ id }) => id);
}

/** Records of the project's zones that point at a host: warned about when it goes away. */
export function findRecordsPointingAt(db: Db, projectId: string, host: string): Promise<{ id: Id<'rec'>; zoneId: Id<'zone'>; fqdn: string; type: string }[]> {
  return rows(db, `select r.id, r.zone_id as "zoneId", case r.name when '@' then z.domain else r.name || '.' || z.domain end as fqdn, r.type
    from dns_record r join dns_zone z on z.id = r.zone_id
    where z.project_id = $1 and r.value = $2 and r.type in ('CNAME', 'MX', 'NS') and r.deleted_at is null and z.deleted_at is null order by r.id`, projectId, host.toLowerCase());
}
