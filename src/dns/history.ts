import { notFound } from '../core/errors';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Tx } from '../db/transaction';
import type { Change, KeptRecord } from './change';
import type { DnsDeps } from './deps';
import type { RecordFields } from './rules/plan';
import { valueAsGiven } from './rules/values';
import { findRecords, type RecordRow } from './store/records';
import { countVersionsAfter, findVersion, listVersions, recordsAtVersion, type VersionRow } from './store/versions';
import type { ZoneRow } from './store/zones';
import type { RecordWrites } from './write';
import { beginWhole, write, type RecordRequest, type WriteDeps, type ZoneWritten } from './zone-writes';

/** Versions of a zone, newest first. Errors: `invalid_cursor`. */
export function pageVersions({ db, cursors }: Pick<DnsDeps, 'db' | 'cursors'>, zoneId: string, query: PageRequest): Promise<Page<VersionRow>> {
  return readPage(cursors, { list: 'dns.versions', zoneId }, query, {
    limitDefault: unpagedMax, keyOf: ({ version }) => [String(version)], fetch: (after, limit) => listVersions(db.prisma, zoneId, { after, limit }),
  });
}

/** A version with what it changed; challenge records are nobody's to see. Errors: `not_found` for one that is not kept any more, too. */
export async function getVersion({ db }: Pick<DnsDeps, 'db'>, zoneId: string, version: string): Promise<VersionRow & { changes: Change[] }> {
  const found = /^\d{1,9}$/.test(version) ? await findVersion(db.prisma, zoneId, Number(version)) : null;
  if (!found) throw noVersion();
  return { ...found, changes: found.changes.filter(({ before, after }) => !(before ?? after)?.challenge) };
}

/**
 * The users' records are those of a former version again, under the same ids where they are still kept; products' records
 * stay as they are now. It is a new version, unless nothing differs. Errors: as beginWhole; `not_found` for a version that
 * never was or is too old to be known; as writeZone.
 */
export async function restoreVersion(tx: Tx, deps: WriteDeps, request: RecordRequest & { version: string; dryRun: boolean }): Promise<ZoneWritten> {
  const zone = await beginWhole(tx, request);
  const version = await knownVersion(tx, zone, request.version);
  const then = await recordsAtVersion(tx, zone.id, version);
  const now = new Map<string, RecordRow>((await findRecords(tx, zone.id, then.map(({ id }) => id))).map((record) => [record.id, record]));
  return write(tx, deps, { zone, cause: request.cause, dryRun: request.dryRun }, writesBack(then, now));
}

async function knownVersion(tx: Tx, zone: ZoneRow, text: string): Promise<number> {
  const version = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : null;
  if (version === null || version > zone.version || await countVersionsAfter(tx, zone.id, version) < zone.version - version) throw noVersion();
  return version;
}

function writesBack(then: readonly { id: string; before: KeptRecord | null }[], now: ReadonlyMap<string, RecordRow>): RecordWrites {
  const users = then.filter(({ id, before }) => !before?.managed && !before?.challenge && !now.get(id)?.managed);
  return {
    deletes: users.flatMap(({ id, before }) => (before ? [] : now.get(id) ?? [])).filter(({ deletedAt }) => !deletedAt),
    updates: users.flatMap(({ id, before }) => {
      const record = now.get(id);
      return before && record ? [{ record: { ...record, deletedAt: null }, fields: fieldsOf(before) }] : [];
    }),
    creates: users.flatMap(({ id, before }) => (before && !now.has(id) ? [{ type: before.type, fields: fieldsOf(before) }] : [])),
  };
}

/** Everything said, so that nothing is taken from what stands there now. */
function fieldsOf(record: KeptRecord): RecordFields {
  const { name, ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment } = record;
  return { name, value: valueAsGiven(record), ttl, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment };
}

function noVersion(): Error {
  return notFound('Version of the DNS zone');
}
