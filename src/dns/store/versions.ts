import type { Actor } from '../../core/caller';
import type { PageKey } from '../../core/cursor';
import { rows, type Db } from '../../db/client';
import type { Change, KeptRecord } from '../change';

export type VersionRow = { version: number; serial: number; actor: Actor; requestId: string | null; created: number; updated: number; deleted: number; createdAt: Date };

const columns = `version, serial::float8 as serial, actor, request_id as "requestId", created, updated, deleted, created_at as "createdAt"`;

/** Versions of a zone, newest first, after the key. */
export function listVersions(db: Db, zoneId: string, page: { after: PageKey | null; limit: number }): Promise<VersionRow[]> {
  return rows<VersionRow>(db, `select ${columns} from dns_change_set where zone_id = $1 and ($2::int is null or version < $2::int) order by version desc limit $3::int`,
    zoneId, page.after?.[0] ?? null, page.limit);
}

export async function findVersion(db: Db, zoneId: string, version: number): Promise<(VersionRow & { changes: Change[] }) | null> {
  const [row] = await rows<VersionRow & { changes: Change[] }>(db, `select ${columns}, changes from dns_change_set where zone_id = $1 and version = $2::int`, zoneId, version);
  return row ?? null;
}

/** How many versions after this one are still kept. */
export async function countVersionsAfter(db: Db, zoneId: string, version: number): Promise<number> {
  const [row] = await rows<{ count: number }>(db, 'select count(*)::int as count from dns_change_set where zone_id = $1 and version > $2::int', zoneId, version);
  return row?.count ?? 0;
}

/** Every record that a version after this one changed, as it was at this one; null: it was not there. */
export function recordsAtVersion(db: Db, zoneId: string, version: number): Promise<{ id: string; before: KeptRecord | null }[]> {
  return rows(db, `select distinct on (c ->> 'recordId') c ->> 'recordId' as id, nullif(c -> 'before', 'null')::jsonb as before
    from dns_change_set s, jsonb_array_elements(s.changes::jsonb) c where s.zone_id = $1 and s.version > $2::int order by c ->> 'recordId', s.version`, zoneId, version);
}
