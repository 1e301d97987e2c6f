import type { ErrorCode } from '../../core/errors';
import { isAddress, isSamePool } from './plan-state';
import type { RecordIndex } from './record-index';
import { findLongChain } from './cname-chains';
import { encodeRdata, flatRdata } from './wire/rdata';
import { rrsetValue, type ZoneRecord } from './rrset';

export type Conflict = { code: ErrorCode; message: string; conflicts: string[] };

/** `mayBeOrigin`: whether the gateway may connect to this address (contract dns.md §4.4, rule 7). */
export type ConflictRules = { mayBeOrigin: (address: string) => boolean };

const recordsMax = 100;
const wireBytesMax = 16 * 1024;

/** Records in the way of a written one, itself perhaps among them; null when none is. Asked of each, of one of each set, or of one of each pool. */
type Check = (record: ZoneRecord, zone: RecordIndex, rules: ConflictRules) => readonly ZoneRecord[] | null;
type Rule = { code: ErrorCode; message: string; per: 'record' | 'set' | 'pool'; check: Check };

/** In the order they are told (contract dns.md §4.4). */
const checks: readonly Rule[] = [
  { code: 'duplicate_record', per: 'record', message: 'The zone has this record already.', check: duplicates },
  { code: 'cname_conflict', per: 'record', message: 'A CNAME stands alone at its name; at the apex it cannot stand beside A, AAAA or CNAME.', check: besideCname },
  { code: 'cname_loop', per: 'record', message: 'The CNAME records lead in a circle or over more than 8 steps.', check: (record, zone) => findLongChain(record, zone) },
  { code: 'delegation_conflict', per: 'record', message: 'A delegated name holds nothing but NS records and the unproxied addresses of its name servers.', check: acrossCut },
  { code: 'null_mx_conflict', per: 'set', message: 'The null MX "." stands alone.', check: besideNullMx },
  { code: 'mixed_proxy', per: 'pool', message: 'All A and AAAA records of a name share proxied and origin settings.', check: otherPool },
  { code: 'origin_not_allowed', per: 'record', message: 'The gateway does not connect to this address.', check: (record, _, rules) => (record.proxied && isAddress(record.type) && !rules.mayBeOrigin(record.value) ? [] : null) },
  { code: 'rrset_too_large', per: 'set', message: `Records of one name and type are at most ${recordsMax} and 16 KiB.`, check: oversized },
];

/**
 * The first rule on the zone's state that the written records break, told in the contract's order; null when none is.
 * `zone` is the state after the write, `written` are the records in it that were created, updated or restored: what stood
 * there before and was not touched is never an obstacle to another write.
 */
export function findConflict(zone: RecordIndex, written: readonly ZoneRecord[], rules: ConflictRules): Conflict | null {
  const firstOfSets = firsts(written, ({ type, name }) => `${type} ${name}`);
  const asked = { record: written, set: firstOfSets, pool: firsts(firstOfSets.filter(({ type }) => isAddress(type)), ({ name }) => name) };
  for (const { code, message, per, check } of checks) {
    for (const record of asked[per]) {
      const found = check(record, zone, rules);
      if (found) return { code, message, conflicts: found.map(({ id }) => id).filter((id) => id !== record.id) };
    }
  }
  return null;
}

function firsts(records: readonly ZoneRecord[], keyOf: (record: ZoneRecord) => string): ZoneRecord[] {
  return [...new Map(records.toReversed().map((record) => [keyOf(record), record])).values()].toReversed();
}

function duplicates(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  return some(zone.alike(record).filter((other) => other.id !== record.id));
}

/** RFC 1034 §3.6.2. At the apex a CNAME is flattened to addresses, so only those are in its way. */
function besideCname(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  const apex = record.name === '@';
  if (record.type !== 'CNAME') return apex && !isAddress(record.type) ? null : some([...zone.set(record.name, 'CNAME')]);
  return some(zone.at(record.name).filter(({ id, type }) => id !== record.id && (!apex || type === 'CNAME' || isAddress(type))));
}

/** The record against the delegations above it and, when it delegates, against what stands at and below it. Glue is answered as it is, never by the gateway. */
function acrossCut(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  const isAllowed = (other: ZoneRecord, cutName: string): boolean => (other.type === 'NS' && other.name === cutName) || (zone.isGlue(other) && !other.proxied);
  if (record.type === 'NS') {
    const inTheWay = zone.below(record.name).filter((other) => other.id !== record.id && !isAllowed(other, record.name));
    if (inTheWay.length > 0) return inTheWay;
  }
  const cut = zone.cutOf(record.name);
  return cut && !isAllowed(record, cut.name) ? [...cut.servers] : null;
}

function besideNullMx(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  if (record.type !== 'MX') return null;
  const others = zone.set(record.name, 'MX').filter((other) => record.value === '.' || other.value === '.');
  return some(others.filter(({ id }) => id !== record.id));
}

function otherPool(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  return some([...zone.set(record.name, 'A'), ...zone.set(record.name, 'AAAA')].filter((other) => !isSamePool(other, record)));
}

function oversized({ name, type }: ZoneRecord, zone: RecordIndex): readonly ZoneRecord[] | null {
  const set = zone.set(name, type);
  if (set.length > recordsMax) return set;
  const fixedPerRecord = 12; // a pointer to the owner, type, class, ttl, length
  const bytes = set.reduce((sum, other) => sum + fixedPerRecord + flatRdata(encodeRdata(type, rrsetValue(other))).length, 0);
  return bytes > wireBytesMax ? set : null;
}

function some(records: ZoneRecord[]): ZoneRecord[] | null {
  return records.length > 0 ? records : null;
}
