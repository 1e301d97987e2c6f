import type { Id } from '../../core/ids';
import { rows, type Db } from '../../db/client';
import type { ZoneRecord } from '../rules/rrset';

export type RouteRecord = Pick<ZoneRecord, 'type' | 'name' | 'value' | 'proxied' | 'originProtocol' | 'originPort' | 'originPath' | 'originHostHeader'> & { id: Id<'rec'> };

/** One claim per name counts: the active or degraded one, else the moved one last activated that has not lost the name (contract dns.md §2.3, rules 1 and 2). */
const holders = `select distinct on (domain) id, domain, mode, served from dns_zone
  where deleted_at is null and status <> 'pending' and (status <> 'moved' or status_reason is distinct from 'claimed_elsewhere')`;
const holderFirst = `order by domain, status = 'moved', activated_at desc nulls last`;

/** The zone's domain when visitors may be led to the gateway for it; null otherwise. A hosted zone must be answered by our servers. */
export async function findRoutedDomain(db: Db, zoneId: string): Promise<string | null> {
  const [row] = await rows<{ domain: string }>(db, `with claimed as (select domain from dns_zone where id = $1), holder as (${holders} and domain = (select domain from claimed) ${holderFirst})
    select domain from holder where id = $1 and (mode = 'external' or served)`, zoneId);
  return row?.domain ?? null;
}

/** Domains of held zones below one: their names are theirs. */
export async function listHeldBelow(db: Db, domain: string): Promise<string[]> {
  const found = await rows<{ domain: string }>(db, `with holder as (${holders} and reverse(domain) like reverse('.' || $1) || '%' ${holderFirst}) select domain from holder where mode = 'external' or served`, domain);
  return found.map((row) => row.domain);
}

/** Every active record of the zone, as far as routes depend on it. */
export function readRouteRecords(db: Db, zoneId: string): Promise<RouteRecord[]> {
  return rows<RouteRecord>(db, `select id, type, name, value, proxied, origin_protocol as "originProtocol", origin_port as "originPort", origin_path as "originPath", origin_host_header as "originHostHeader"
    from dns_record where zone_id = $1 and deleted_at is null order by id`, zoneId);
}

/** Null: no such zone. */
export async function readZoneVersion(db: Db, zoneId: string): Promise<{ domain: string; version: number } | null> {
  const [row] = await rows<{ domain: string; version: number }>(db, 'select domain, version from dns_zone where id = $1', zoneId);
  return row ?? null;
}

/** Versions of the zones that have proxied names, or of all that changed within so many seconds, deleted ones too. */
export function listProxyVersions(db: Db, withinSeconds: number | null): Promise<{ zoneId: string; version: number }[]> {
  return rows<{ zoneId: string; version: number }>(db, `select id as "zoneId", version from dns_zone
    where case when $1::int is null then proxied_count > 0 and deleted_at is null else version_at > now() - make_interval(secs => $1::int) end`, withinSeconds);
}
