import { noOrigin, type Origin } from './origins';
import type { RecordIndex } from './record-index';
import type { ZoneRecord } from './rrset';
import { ttlDefault } from './values';

/** Fields a record shares with others: its ttl with its set, the rest with all A and AAAA of its name (contract dns.md §4.3). */
type Shared = Pick<ZoneRecord, 'ttl' | 'proxied'> & Origin;
type Own = Omit<ZoneRecord, keyof Shared>;

/** What a request gives of them: undefined is not given; null clears (ttl 300). */
export type GivenShared = { ttl?: number | null | undefined; proxied?: boolean | undefined } & { [K in keyof Origin]?: Origin[K] | undefined };

/** A record as written, and the others that follow it, as they are then. */
export type Joined = { record: ZoneRecord; affected: ZoneRecord[] };

/**
 * A new record: what it does not give it takes from its set and pool, and its ttl becomes its set's. Settings that differ from
 * the pool's stay, for the rule `mixed_proxy` to refuse. `others`: the zone's active records.
 */
export function joinCreated(others: RecordIndex, own: Own, given: GivenShared): Joined {
  const record = { ...own, ...shared(baseAt(others, own, unshared), given) };
  return { record, affected: followers(others, record, false) };
}

/**
 * A changed record: its ttl becomes its set's and its settings become its pool's. Under another name it takes what that name's
 * set and pool have, unless given. `others`: the zone's active records without it.
 */
export function joinChanged(others: RecordIndex, before: ZoneRecord, own: Own, given: GivenShared): Joined {
  const base = own.name === before.name ? before : baseAt(others, own, before);
  const record = { ...own, ...shared(base, given) };
  return { record, affected: followers(others, record, true) };
}

/** A record that comes back: its set and pool as they are now, its own values where there are none. */
export function joinRestored(others: RecordIndex, deleted: ZoneRecord): ZoneRecord {
  return { ...deleted, ...shared(baseAt(others, deleted, deleted), {}) };
}

const unshared: Shared = { ttl: ttlDefault, proxied: false, ...noOrigin };

function baseAt(others: RecordIndex, own: Own, alone: Shared): Shared {
  const there = others.at(own.name);
  const sibling = there.find(({ type }) => type === own.type);
  const mate = isAddress(own.type) ? there.find(({ type }) => isAddress(type)) : undefined;
  return { ...(mate ?? alone), ttl: sibling?.ttl ?? alone.ttl };
}

/** Origin settings live only while proxied; those given all the same stay, for their own fault. */
function shared(base: Shared, given: GivenShared): Shared {
  const proxied = given.proxied ?? base.proxied;
  const kept = proxied ? base : noOrigin;
  return {
    ttl: given.ttl === null ? ttlDefault : (given.ttl ?? base.ttl),
    proxied,
    originProtocol: given.originProtocol === undefined ? kept.originProtocol : given.originProtocol,
    originPort: given.originPort === undefined ? kept.originPort : given.originPort,
    originPath: given.originPath === undefined ? kept.originPath : given.originPath,
    originHostHeader: given.originHostHeader === undefined ? kept.originHostHeader : given.originHostHeader,
  };
}

function followers(others: RecordIndex, record: ZoneRecord, pool: boolean): ZoneRecord[] {
  return others.at(record.name).flatMap((other) => {
    const inPool = pool && isAddress(record.type) && isAddress(other.type);
    const after: ZoneRecord = {
      ...other, ...(inPool && shared(record, {})), ttl: other.type === record.type ? record.ttl : other.ttl,
    };
    return isSame(after, other) ? [] : [after];
  });
}

function isSame(a: ZoneRecord, b: ZoneRecord): boolean {
  return a.ttl === b.ttl && a.proxied === b.proxied && a.originProtocol === b.originProtocol && a.originPort === b.originPort
    && a.originPath === b.originPath && a.originHostHeader === b.originHostHeader;
}

function isAddress(type: ZoneRecord['type']): boolean {
  return type === 'A' || type === 'AAAA';
}
