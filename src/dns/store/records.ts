import { createHash } from 'node:crypto';
import type { PageKey } from '../../core/cursor';
import { AppError } from '../../core/errors';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import { violates } from '../../db/errors';
import type { Tx } from '../../db/transaction';
import { isWithinName, relativeName } from '../rules/names';
import { rrsetValue, type RecordType, type ZoneRecord } from '../rules/rrset';

export type RecordRow = Omit<ZoneRecord, 'id'> & {
  id: Id<'rec'>; zoneId: Id<'zone'>; comment: string | null; managed: 'mail' | 'nameserver' | 'certificate' | null; managedId: string | null; challenge: boolean;
  version: number; createdAt: Date; updatedAt: Date; deletedAt: Date | null;
};

export const recordColumns = `r.id, r.zone_id as "zoneId", r.type, r.name, r.value, r.ttl, r.priority, r.proxied, r.origin_protocol as "originProtocol",
  r.origin_port as "originPort", r.origin_path as "originPath", r.origin_host_header as "originHostHeader", r.comment, r.managed,
  r.managed_id as "managedId", r.challenge, r.version, r.created_at as "createdAt", r.updated_at as "updatedAt", r.deleted_at as "deletedAt"`;

/** Every active record of a zone, challenge records included. */
export function readRecords(db: Db, zoneId: string): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select ${recordColumns} from dns_record r where r.zone_id = $1 and r.deleted_at is null`, zoneId);
}

/** A record of the zone, deleted ones too until they are purged; challenge records are not shown. */
export async function findRecord(db: Db, zoneId: string, recordId: string): Promise<RecordRow | null> {
  const [row] = await rows<RecordRow>(db, `select ${recordColumns} from dns_record r where r.zone_id = $1 and r.id = $2 and not r.challenge`, zoneId, recordId);
  return row ?? null;
}

export function findRecords(db: Db, zoneId: string, recordIds: readonly string[]): Promise<RecordRow[]> {
  return rows<RecordRow>(db, `select ${recordColumns} from dns_record r where r.zone_id = $1 and r.id = any($2::text[]) and not r.challenge`, zoneId, recordIds);
}

export type RecordFilter = {
  zoneId: string; type: RecordType | null; name: string | null; search: string | null; proxied: boolean | null; managed: boolean | null;
  status: 'active' | 'deleted' | 'all'; sort: 'created' | 'name';
};

const statusCondition = { active: 'r.deleted_at is null', deleted: 'r.deleted_at is not null', all: 'true' } as const;

/** Records of a zone after the key: newest first, or by name, type and id. A page begins where the key is in the index. */
export function listRecords(db: Db, filter: RecordFilter, { after, limit }: { after: PageKey | null; limit: number }): Promise<RecordRow[]> {
  const byName = filter.sort === 'name';
  const position = byName ? '(r.name, r.type, r.id) > ($8::text, $9::text, $10::text)' : '(r.created_at, r.id) < ($8::timestamptz, $9::text)';
  return rows<RecordRow>(db, `select ${recordColumns} from dns_record r
    where r.zone_id = $1 and not r.challenge and ${statusCondition[filter.status]}
      and ($2::text is null or r.type = $2::text) and ($3::text is null or r.name = $3::text)
      and ($4::text is null or position($4::text in r.name) > 0 or position($4::text in lower(r.value)) > 0 or position($4::text in lower(coalesce(r.comment, ''))) > 0)
      and ($5::boolean is null or r.proxied = $5::boolean) and ($6::boolean is null or (r.managed is not null) = $6::boolean)
      and ${after === null ? 'true' : position}
    order by ${byName ? 'r.name, r.type, r.id' : 'r.created_at desc, r.id desc'} limit $7::int`,
  filter.zoneId, filter.type, filter.name, filter.search, filter.proxied, filter.managed, limit, ...(after ?? []));
}

/** Deletes, then updates, then creates: a name may change hands within one write. Errors: `duplicate_record`, `cname_conflict`. */
export async function writeRecords(tx: Tx, version: number, write: { deleted: readonly string[]; updated: readonly RecordRow[]; created: readonly RecordRow[] }): Promise<void> {
  try {
    if (write.deleted.length > 0) {
      await execute(tx, 'update dns_record set deleted_at = now(), version = $2::int, updated_at = now() where id = any($1::text[])', write.deleted, version);
    }
    if (write.updated.length > 0) await updateRecords(tx, version, write.updated);
    if (write.created.length > 0) await insertRecords(tx, version, write.created);
  } catch (error) {
    if (violates(error, 'dns_record_rdata')) throw new AppError('duplicate_record', 'The zone has this record already.', { conflicts: [] });
    if (violates(error, 'dns_record_cname')) throw new AppError('cname_conflict', 'A CNAME stands alone at its name.', { conflicts: [] });
    throw error;
  }
}

/** Columns of a record as one JSON array of objects, so any number of rows is one statement. */
const fromJson = `jsonb_to_recordset($1::jsonb) as v (id text, zone_id text, type text, name text, value text, ttl int, priority int, proxied boolean,
  origin_protocol text, origin_port int, origin_path text, origin_host_header text, comment text, managed text, managed_id text, challenge boolean, hash text)`;

function toJson(records: readonly RecordRow[]): string {
  return JSON.stringify(records.map((record) => ({
    id: record.id, zone_id: record.zoneId, type: record.type, name: record.name, value: record.value, ttl: record.ttl, priority: record.priority,
    proxied: record.proxied, origin_protocol: record.originProtocol, origin_port: record.originPort, origin_path: record.originPath,
    origin_host_header: record.originHostHeader, comment: record.comment, managed: record.managed, managed_id: record.managedId,
    challenge: record.challenge, hash: rdataHash(record),
  })));
}

async function insertRecords(tx: Tx, version: number, records: readonly RecordRow[]): Promise<void> {
  await execute(tx, `insert into dns_record (id, zone_id, type, name, value, ttl, priority, proxied, origin_protocol, origin_port, origin_path, origin_host_header,
      comment, managed, managed_id, challenge, rdata_hash, version)
    select v.id, v.zone_id, v.type, v.name, v.value, v.ttl, v.priority, v.proxied, v.origin_protocol, v.origin_port, v.origin_path, v.origin_host_header,
      v.comment, v.managed, v.managed_id, v.challenge, decode(v.hash, 'hex'), $2::int from ${fromJson}`, toJson(records), version);
}

/** Also how a deleted record is restored. Two of them may trade values: the old ones are put aside first, for the unique indexes. */
async function updateRecords(tx: Tx, version: number, records: readonly RecordRow[]): Promise<void> {
  if (records.length > 1) await execute(tx, 'update dns_record set deleted_at = now() where id = any($1::text[]) and deleted_at is null', records.map(({ id }) => id));
  await execute(tx, `update dns_record r set name = v.name, value = v.value, ttl = v.ttl, priority = v.priority, proxied = v.proxied,
      origin_protocol = v.origin_protocol, origin_port = v.origin_port, origin_path = v.origin_path, origin_host_header = v.origin_host_header,
      comment = v.comment, rdata_hash = decode(v.hash, 'hex'), version = $2::int, updated_at = now(), deleted_at = null
    from ${fromJson} where r.id = v.id`, toJson(records), version);
}

/** SHA-256 of the canonical rdata with its priority. */
function rdataHash(record: Pick<RecordRow, 'type' | 'value' | 'priority'>): string {
  return createHash('sha256').update(rrsetValue(record)).digest('hex');
}

/** Deleted rows beyond ten times the limit go, the oldest first: how many went. */
export function trimDeleted(tx: Tx, zoneId: string, keep: number): Promise<number> {
  return execute(tx, `delete from dns_record where id in (
    select id from dns_record where zone_id = $1 and deleted_at is not null order by deleted_at desc, id desc offset $2::int)`, zoneId, keep);
}

/** Names inside the zone of name servers that its delegations name at or below themselves: their addresses are glue. */
export async function listGlueNames(db: Db, { id, domain }: { id: string; domain: string }): Promise<string[]> {
  const servers = await rows<{ name: string; value: string }>(db, `select name, value from dns_record where zone_id = $1 and type = 'NS' and deleted_at is null`, id);
  return servers.flatMap(({ name, value }) => {
    const host = relativeName(value, domain);
    return host !== null && isWithinName(host, name) ? [host] : [];
  });
}

/** Proxied names of a zone, those after `after` first: each has its turn. */
export async function listProxiedInTurn(db: Db, zoneId: string, after: string): Promise<string[]> {
  const found = await rows<{ name: string }>(db, `select name from dns_record where zone_id = $1 and proxied and deleted_at is null group by name order by name collate "C" <= $2 collate "C", name collate "C"`, zoneId, after);
  return found.map(({ name }) => name);
}
