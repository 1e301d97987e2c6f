import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { requireZone } from './faults';
import { recordKey } from './rules/managed-records';
import { nameserversOf, type Platform } from './rules/platform';
import type { RecordFields } from './rules/plan';
import { valueAsGiven } from './rules/values';
import { writeZoneFile } from './rules/zone-file';
import { readZoneFile, type ImportedRecord } from './rules/zone-file-reader';
import { readRecords, type RecordRow } from './store/records';
import { findZone } from './store/zones';
import { beginWhole, write, type RecordRequest, type WriteDeps, type ZoneWritten } from './zone-writes';

/** The zone's active records, managed ones included, as a zone file of one version. Errors: `not_found`. */
export function exportZone({ db, dnsPlatform }: { db: Database; dnsPlatform: Platform }, projectId: string, zoneId: string): Promise<{ zoneFile: string; version: number; serial: number }> {
  return inTransaction(db, async (tx) => {
    const zone = requireZone(await findZone(tx, projectId, zoneId));
    const records = (await readRecords(tx, zone.id)).filter(({ challenge }) => !challenge);
    const { domain, version, serial } = zone;
    return { zoneFile: writeZoneFile({ domain, serial, nameservers: nameserversOf(dnsPlatform, zone), soaRname: dnsPlatform.soaRname }, records), version, serial };
  }, { isolation: 'repeatable read' });
}

export type Import = { zoneFile: string; strategy: 'merge' | 'replace'; dryRun: boolean };
export type Imported = ZoneWritten & { skipped: { line: number; reason: string }[] };

/**
 * The file's records are in the zone, as one version: with `merge` beside what the file does not name, with `replace` instead
 * of it. Records a product keeps stay as they are. Lines that cannot be taken are `skipped`; a conflict refuses the whole.
 * Errors: as beginWhole, writeZone.
 */
export async function importZone(tx: Tx, deps: WriteDeps, request: RecordRequest & { file: Import }): Promise<Imported> {
  const { file: { zoneFile, strategy, dryRun }, cause } = request;
  const zone = await beginWhole(tx, request);
  const { records, skipped } = readZoneFile(zoneFile, { domain: zone.domain, platformPorts: deps.dnsPlatform.ports });
  const present = new Map((await readRecords(tx, zone.id)).map((record) => [recordKey(record), record]));
  const wanted = new Map<string, ImportedRecord>();
  for (const record of records) {
    const key = recordKey(record);
    const there = present.get(key);
    if (wanted.has(key)) skipped.push({ line: record.line, reason: 'is given twice' });
    else if (there?.managed) skipped.push({ line: record.line, reason: `is kept by ${there.managed === 'nameserver' ? 'the zone itself' : there.managed}` });
    else wanted.set(key, record);
  }
  const whole = strategy === 'replace';
  const done = await write(tx, deps, { zone, cause, dryRun }, {
    deletes: whole ? [...present].filter(([key, record]) => !wanted.has(key) && isUsers(record)).map(([, record]) => record) : [],
    updates: [...wanted].flatMap(([key, record]) => {
      const there = present.get(key);
      return there && isUsers(there) ? [{ record: there, fields: fieldsOf(record, whole) }] : [];
    }),
    creates: [...wanted].flatMap(([key, record]) => (present.has(key) ? [] : [{ type: record.type, fields: { ...fieldsOf(record, whole), name: record.name, value: valueAsGiven(record), ...(record.priority === null ? {} : { priority: record.priority }) } }])),
  });
  return { ...done, skipped: skipped.toSorted((a, b) => a.line - b.line) };
}

function isUsers({ managed, challenge }: RecordRow): boolean {
  return managed === null && !challenge;
}

/** What a line says beside its name and data. A file that replaces says also what it leaves out. */
function fieldsOf({ ttl, proxied, originProtocol, originPort, originPath, originHostHeader, comment, hasSettings }: ImportedRecord, whole: boolean): RecordFields {
  const settings = whole || hasSettings ? { proxied, originProtocol, originPort, originPath, originHostHeader } : {};
  return { ttl, ...settings, ...(whole || comment !== null ? { comment } : {}) };
}
