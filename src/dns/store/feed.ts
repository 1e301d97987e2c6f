import { execute, rows, type Database, type Db } from '../../db/client';
import { inTransaction } from '../../db/transaction';
import type { RecordRow } from './records';
import { changedNames, readRecords, recordsAt } from './records';
import { loadZone, type ZoneRow } from './zones';

/** A zone as its servers need it: all of it, or what changed at some names since the version they have. */
export type ZoneReading =
  | { kind: 'gone' }
  | { kind: 'full'; zone: ZoneRow; records: RecordRow[] }
  | { kind: 'diff'; zone: ZoneRow; fromVersion: number; names: string[]; records: RecordRow[] };

/** One state of the zone: the rows are read in one snapshot. `known`: the version the server has, null for none. */
export function readZone(database: Database, zoneId: string, known: number | null): Promise<ZoneReading> {
  return inTransaction(database, async (db): Promise<ZoneReading> => {
    const zone = await loadZone(db, zoneId);
    if (!zone || !zone.served) return { kind: 'gone' };
    const [whole] = await rows<{ statusVersion: number }>(db, 'select status_version as "statusVersion" from dns_zone where id = $1', zoneId);
    if (known === null || known < (whole?.statusVersion ?? 0)) return { kind: 'full', zone, records: await readRecords(db, zoneId) };
    const names = (await changedNames(db, zoneId, known)).map(({ name }) => name);
    return { kind: 'diff', zone, fromVersion: known, names, records: await recordsAt(db, zoneId, names) };
  }, { isolation: 'repeatable read' });
}

/** Ids of all served zones, in pages. */
export function listServed(db: Db, after: string, limit: number): Promise<{ id: string }[]> {
  return rows(db, 'select id from dns_zone where served and id > $1 order by id limit $2::int', after, limit);
}

/** Zones whose state this server has not acknowledged: a notification that was lost costs one poll. */
export function listBehind(db: Db, serverId: string): Promise<{ id: string }[]> {
  return rows(db, `select z.id from dns_zone z left join dns_ack a on a.server_id = $1 and a.zone_id = z.id where z.served and a.version is distinct from z.version
    union all
    select a.zone_id from dns_ack a left join dns_zone z on z.id = a.zone_id where a.server_id = $1 and z.served is not true`, serverId);
}

export async function registerServer(db: Db, serverId: string, addresses: readonly string[]): Promise<void> {
  await execute(db, `insert into dns_server (id, addresses) values ($1, $2::text[])
    on conflict (id) do update set addresses = excluded.addresses, started_at = now(), heartbeat_at = now()`, serverId, addresses);
  await execute(db, 'delete from dns_ack where server_id = $1', serverId);
}

export async function beat(db: Db, serverId: string): Promise<void> {
  await execute(db, 'update dns_server set heartbeat_at = now() where id = $1', serverId);
}

/** The server has gone in order: nobody waits for it. */
export async function unregisterServer(db: Db, serverId: string): Promise<void> {
  await execute(db, 'delete from dns_server where id = $1', serverId);
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
