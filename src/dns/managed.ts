import { systemCause } from '../core/caller';
import { invalid } from '../core/errors';
import type { Id } from '../core/ids';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import type { DnsDeps } from './deps';
import { requireZone } from './faults';
import { placeRecords, recordKey, type WantedRecord } from './rules/managed-records';
import { canonicalRecordName } from './rules/names';
import type { RecordType } from './rules/rrset';
import { canonicalRecord } from './rules/values';
import { findClosestZone, listManagedZones } from './store/managed';
import { readRecords, type RecordRow } from './store/records';
import { lockAnyZone, type ZoneMode, type ZoneRow } from './store/zones';
import { publishedVersionOf } from './view';
import { writeZone } from './write';

type Owner = { owner: NonNullable<RecordRow['managed']>; ownerId: string };
/** `value` as an element of an RRset: MX `10 mail.example.com`. */
export type ManagedRecord = { type: RecordType; name: string; value: string; ttl: number };
type WriteDeps = Pick<DnsDeps, 'dnsPlatform'>;

/** The closest zone of the project at or above a domain; null when the project hosts none. */
export async function findHostedZone(db: Db, projectId: string, domain: string): Promise<{ zoneId: Id<'zone'>; domain: string; mode: ZoneMode; version: number; publishedVersion: number } | null> {
  const zone = await findClosestZone(db, projectId, domain);
  return zone && { zoneId: zone.id, domain: zone.domain, mode: zone.mode, version: zone.version, publishedVersion: publishedVersionOf(zone) };
}

/**
 * The owner's records of the zone are exactly these, but for those that something a user wrote stands in the way of: that
 * stays, and `published` is false. A record that a user wrote alike stands for its own. Read-only for users.
 * Errors: `not_found`, `validation_error`, 402 `quota_exceeded`.
 */
export async function ensureManagedRecords(
  tx: Tx, deps: WriteDeps, { zoneId, owner, ownerId, records }: Owner & { zoneId: string; records: readonly ManagedRecord[] },
): Promise<{ version: number; records: { type: RecordType; name: string; published: boolean }[] }> {
  const zone = requireZone(await lockAnyZone(tx, zoneId));
  const wanted = records.map((record, i) => canonical(zone, record, i));
  const keys = new Set(wanted.map(recordKey));
  const present = await readRecords(tx, zone.id);
  const deletes = present.filter((record) => record.managed === owner && record.managedId === ownerId && !keys.has(recordKey(record)));
  const staying = present.filter((record) => !deletes.includes(record));
  const { placed, added } = placeRecords(zone.domain, staying, wanted);
  const written = await writeZone(tx, { platform: deps.dnsPlatform, zone, cause: systemCause('ensureManagedRecords') }, {
    deletes, owner: { managed: owner, managedId: ownerId, challenge: false },
    updates: staying.flatMap((record) => {
      const own = record.managed === owner && record.managedId === ownerId ? wanted.find((one) => recordKey(one) === recordKey(record)) : undefined;
      return own && own.ttl !== record.ttl ? [{ record, fields: { ttl: own.ttl } }] : [];
    }),
    creates: added.map(({ type, name, value, priority, ttl }) => ({ type, fields: { name, value, ttl, ...(priority === null ? {} : { priority }) } })),
  });
  return { version: written.version, records: wanted.map((record) => ({ type: record.type, name: record.name, published: placed.has(recordKey(record)) })) };
}

/** Nothing of the owner is left in any zone; null when it had nothing. */
export async function removeManagedRecords(tx: Tx, deps: WriteDeps, { owner, ownerId }: Owner): Promise<{ version: number | null }> {
  let version: number | null = null;
  for (const zoneId of await listManagedZones(tx, owner, ownerId)) {
    const zone = await lockAnyZone(tx, zoneId);
    if (zone && !zone.deletedAt) ({ version } = await ensureManagedRecords(tx, deps, { zoneId, owner, ownerId, records: [] }));
  }
  return { version };
}

function canonical({ domain }: ZoneRow, { type, name: given, value: text, ttl }: ManagedRecord, i: number): WantedRecord {
  const name = canonicalRecordName(given, domain);
  if (name.fault !== undefined) throw invalid([{ path: `records.${i}.name`, message: name.fault }]);
  const [, preference = null, host = text] = type === 'MX' ? (/^(\d+) (\S+)$/.exec(text) ?? []) : [];
  const parsed = canonicalRecord({ type, name: name.value, value: host, priority: preference === null ? null : Number(preference), proxied: false }, domain);
  if (parsed.faults) throw invalid(parsed.faults.map(({ path, message }) => ({ path: `records.${i}.${path}`, message })));
  return { type, name: name.value, value: parsed.value, priority: parsed.priority, ttl };
}
