import type { Id } from '../../core/ids';
import { execute, prepared, rows, type Database, type Db } from '../../db/client';
import type { ZoneContent } from '../rules/change-set';
import type { ServedRecord } from '../rules/effective';
import { recordTypes } from '../rules/rrset';

/** A zone as its servers need it: all of it, or what its names hold that changed since the version they have. */
export type ZoneReading = { kind: 'gone' } | (ZoneContent & { zone: FeedZone });
type FeedZone = ZoneContent['zone'] & { zoneId: Id<'zone'> };

type ReadRow = FeedZone & { names: string[] | null; records: unknown };

const zoneColumns = `z.id as "zoneId", z.domain, z.mode, z.status, z.version, z.serial::float8 as serial, z.custom_nameservers as "customNameservers",
  (select n.token from dns_nameserver_assignment n where n.project_id = z.project_id and n.domain = z.domain) as token,
  (select json_build_object('ipv4', f.ipv4, 'ipv6', f.ipv6, 'ttl', f.ttl) from dns_record c join dns_flattened f on f.zone_id = c.zone_id and f.target = c.value
    where c.zone_id = z.id and c.name = '@' and c.type = 'CNAME' and c.deleted_at is null and f.ipv4 || f.ipv6 <> '{}') as flattened`;
const recordArray = `coalesce(json_agg(json_build_array(r.name, r.type, r.value, r.ttl, r.priority, r.proxied)), '[]')`;

/**
 * One state of a zone, read in one statement. `known`: the version the server has, null for none. All of it when more than
 * records changed since, or when a change set of the way is no longer kept. A name that a record has left is among `names`.
 */
export async function readZone(database: Database, zoneId: string, known: number | null): Promise<ZoneReading> {
  const [row] = await prepared<ReadRow>(database, `
    with steps as (select version, changes from dns_change_set where zone_id = $1 and version > $2::int),
    changed as (select case when $2::int >= z.status_version and (select count(*) from steps where version <= z.version) = z.version - $2::int then array(
      select distinct n from steps, json_array_elements(changes) c, lateral (values (c -> 'before' ->> 'name'), (c -> 'after' ->> 'name')) as v (n) where n is not null
        union select '@' from dns_flattened where zone_id = $1 and version > $2::int) end as names
      from dns_zone z where z.id = $1)
    select ${zoneColumns}, changed.names, (select ${recordArray} from dns_record r
      where r.zone_id = z.id and r.deleted_at is null and (changed.names is null or r.name = any(changed.names))) as records
    from dns_zone z, changed where z.id = $1 and z.served`, [zoneId, known]);
  if (!row) return { kind: 'gone' };
  const { names, records, ...zone } = row;
  const read = recordsIn(records);
  return names === null || known === null ? { kind: 'full', zone, records: read } : { kind: 'diff', zone, fromVersion: known, names, records: read };
}

/** Served zones after an id with all their records: as many as hold about `recordsMax`, one at least. Each is of one state. */
export async function readServed(database: Database, after: string, recordsMax: number): Promise<{ zone: FeedZone; records: ServedRecord[] }[]> {
  const found = await prepared<ReadRow>(database, `
    with candidate as (select id, record_count from dns_zone where served and id > $1 order by id limit 1000),
    page as (select id from (select id, sum(record_count) over (order by id) - record_count as held from candidate) c where held <= $2::int)
    select ${zoneColumns}, (select ${recordArray} from dns_record r where r.zone_id = z.id and r.deleted_at is null) as records
    from page join dns_zone z using (id) order by z.id`, [after, recordsMax]);
  return found.map(({ records, names: _, ...zone }) => ({ zone, records: recordsIn(records) }));
}

/** Zones whose state this server has not acknowledged: a notification that was lost costs one poll. */
export function listBehind(db: Db, serverId: string): Promise<{ id: string }[]> {
  return rows(db, `select z.id from dns_zone z left join dns_ack a on a.server_id = $1 and a.zone_id = z.id where z.served and a.version is distinct from z.version
    union all
    select a.zone_id from dns_ack a left join dns_zone z on z.id = a.zone_id where a.server_id = $1 and z.served is not true`, serverId);
}

/** The server has nothing yet, or what it has it will acknowledge anew. Since when it is registered. */
export async function registerServer(db: Db, serverId: string, addresses: readonly string[]): Promise<Date> {
  const [row] = await rows<{ startedAt: Date }>(db, `insert into dns_server (id, addresses) values ($1, $2::text[])
    on conflict (id) do update set addresses = excluded.addresses, started_at = now(), heartbeat_at = now() returning started_at as "startedAt"`, serverId, addresses);
  await execute(db, 'delete from dns_ack where server_id = $1', serverId);
  return row?.startedAt ?? new Date();
}

/** False: the server is not registered. */
export async function beat(db: Db, serverId: string): Promise<boolean> {
  return await execute(db, 'update dns_server set heartbeat_at = now() where id = $1', serverId) > 0;
}

/** The server has gone in order: nobody waits for it. Whoever has taken its place since stays. */
export async function unregisterServer(db: Db, serverId: string, startedAt: Date): Promise<void> {
  await execute(db, 'delete from dns_server where id = $1 and started_at = $2::timestamptz', serverId, startedAt);
}

/** What the server answers with now; null for zones it has dropped. */
export async function acknowledge(db: Db, serverId: string, versions: readonly { zoneId: string; version: number | null }[]): Promise<void> {
  const kept = versions.filter(({ version }) => version !== null);
  const dropped = versions.filter(({ version }) => version === null).map(({ zoneId }) => zoneId);
  if (kept.length > 0) {
    await execute(db, `insert into dns_ack (server_id, zone_id, version) select $1, v.zone_id, v.version from unnest($2::text[], $3::int[]) as v(zone_id, version)
      on conflict (server_id, zone_id) do update set version = excluded.version, at = now()`,
    serverId, kept.map(({ zoneId }) => zoneId), kept.map(({ version }) => version));
  }
  if (dropped.length > 0) await execute(db, 'delete from dns_ack where server_id = $1 and zone_id = any($2::text[])', serverId, dropped);
}

/** Tokens of unpurged zones: names below DNS_NAMESERVER_SUFFIX, and of external ones below DNS_EDGE_SUFFIX. */
export function listTokens(db: Db): Promise<{ token: string; cnameToken: string | null }[]> {
  return rows(db, `select n.token, z.cname_token as "cnameToken" from dns_zone z
    join dns_nameserver_assignment n on n.project_id = z.project_id and n.domain = z.domain where z.purged_at is null`);
}

/** Whose zones these are, for what is counted per organisation. */
export function listOwners(db: Db, zoneIds: readonly string[]): Promise<{ zoneId: string; orgId: string }[]> {
  return rows(db, 'select id as "zoneId", org_id as "orgId" from dns_zone where id = any($1::text[])', zoneIds);
}

/** Rows of `recordArray`. Errors: something else stands in the column. */
function recordsIn(column: unknown): ServedRecord[] {
  if (!Array.isArray(column)) throw new TypeError('records are an array');
  return column.map((row: unknown): ServedRecord => {
    const fields: readonly unknown[] = Array.isArray(row) ? row : [];
    const [name, type, value, ttl, priority, proxied] = fields;
    const known = recordTypes.find((one) => one === type);
    if (!known || typeof name !== 'string' || typeof value !== 'string' || typeof ttl !== 'number') throw new TypeError('a record is a row of six');
    return { name, type: known, value, ttl, priority: typeof priority === 'number' ? priority : null, proxied: proxied === true };
  });
}
