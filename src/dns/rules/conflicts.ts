import type { ErrorCode } from '../../core/errors';
import { isWithinName } from './names';
import type { RecordIndex } from './record-index';
import { findLongChain } from './cname-chains';
import { encodeRdata, flatRdata } from './wire/rdata';
import { rrsetValue, type ZoneRecord } from './rrset';

export type Conflict = { code: ErrorCode; message: string; conflicts: string[] };

/** `mayBeOrigin`: whether the gateway may connect to this address (contract dns.md §4.4, rule 7). */
export type ConflictRules = { mayBeOrigin: (address: string) => boolean };

const recordsMax = 100;
const wireBytesMax = 16 * 1024;

type Check = (record: ZoneRecord, zone: RecordIndex, rules: ConflictRules) => readonly ZoneRecord[] | null;

/** In the order they are told (contract dns.md §4.4). */
const checks: readonly { code: ErrorCode; message: string; check: Check }[] = [
  { code: 'duplicate_record', message: 'The zone has this record already.', check: duplicates },
  { code: 'cname_conflict', message: 'A CNAME stands alone at its name; at the apex it cannot stand beside A, AAAA or CNAME.', check: besideCname },
  { code: 'cname_loop', message: 'The CNAME records lead in a circle or over more than 8 steps.', check: (record, zone) => findLongChain(record, zone) },
  { code: 'delegation_conflict', message: 'A delegated name holds nothing but NS records and the addresses of its name servers.', check: acrossCut },
  { code: 'null_mx_conflict', message: 'The null MX "." stands alone.', check: besideNullMx },
  { code: 'mixed_proxy', message: 'All A and AAAA records of a name share proxied and origin settings.', check: otherPool },
  { code: 'origin_not_allowed', message: 'The gateway does not connect to this address.', check: (record, _, rules) => (record.proxied && record.type !== 'CNAME' && !rules.mayBeOrigin(record.value) ? [] : null) },
  { code: 'rrset_too_large', message: `Records of one name and type are at most ${recordsMax} and 16 KiB.`, check: oversized },
];

/**
 * The first rule on the zone's state that the written records break, told in the contract's order; null when none is.
 * `zone` is the state after the write, `written` are the records in it that were created, updated or restored: what stood
 * there before and was not touched is never an obstacle to another write.
 */
export function findConflict(zone: RecordIndex, written: readonly ZoneRecord[], rules: ConflictRules): Conflict | null {
  for (const { code, message, check } of checks) {
    for (const record of written) {
      const found = check(record, zone, rules);
      if (found) return { code, message, conflicts: found.map(({ id }) => id).filter((id) => id !== record.id) };
    }
  }
  return null;
}

function duplicates(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  return some(zone.at(record.name).filter((other) => other.id !== record.id && other.type === record.type && rrsetValue(other) === rrsetValue(record)));
}

/** RFC 1034 §3.6.2. At the apex a CNAME is flattened to addresses, so only those are in its way. */
function besideCname(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  const apex = record.name === '@';
  const excluded = (other: ZoneRecord): boolean => !apex || other.type === 'A' || other.type === 'AAAA' || other.type === 'CNAME';
  const others = zone.at(record.name).filter((other) => other.id !== record.id);
  if (record.type === 'CNAME') return some(others.filter(excluded));
  return excluded(record) ? some(others.filter((other) => other.type === 'CNAME')) : null;
}

/** The record against the delegations above it and, when it delegates, against what stands at and below it. */
function acrossCut(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  const isAllowed = (other: ZoneRecord, cutName: string): boolean => (other.type === 'NS' && other.name === cutName) || zone.isGlue(other);
  if (record.type === 'NS') {
    const others = [...zone.names()].filter((name) => isWithinName(name, record.name)).flatMap((name) => zone.at(name));
    const inTheWay = others.filter((other) => other.id !== record.id && !isAllowed(other, record.name));
    if (inTheWay.length > 0) return inTheWay;
  }
  const cut = zone.cutOf(record.name);
  return cut && !isAllowed(record, cut.name) ? [...cut.servers] : null;
}

function besideNullMx(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  if (record.type !== 'MX') return null;
  const others = zone.at(record.name).filter((other) => other.type === 'MX' && other.id !== record.id);
  return some(record.value === '.' ? others : others.filter((other) => other.value === '.'));
}

function otherPool(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  if (record.type !== 'A' && record.type !== 'AAAA') return null;
  return some(zone.at(record.name).filter((other) => (other.type === 'A' || other.type === 'AAAA') && !isSamePool(other, record)));
}

function isSamePool(a: ZoneRecord, b: ZoneRecord): boolean {
  return a.proxied === b.proxied && a.originProtocol === b.originProtocol && a.originPort === b.originPort
    && a.originPath === b.originPath && a.originHostHeader === b.originHostHeader;
}

function oversized(record: ZoneRecord, zone: RecordIndex): ZoneRecord[] | null {
  const set = zone.at(record.name).filter((other) => other.type === record.type);
  if (set.length > recordsMax) return set;
  const fixedPerRecord = 12; // a pointer to the owner, type, class, ttl, length
  const bytes = set.reduce((sum, other) => sum + fixedPerRecord + flatRdata(encodeRdata(other.type, rrsetValue(other))).length, 0);
  return bytes > wireBytesMax ? set : null;
}

function some(records: ZoneRecord[]): ZoneRecord[] | null {
  return records.length > 0 ? records : null;
}
