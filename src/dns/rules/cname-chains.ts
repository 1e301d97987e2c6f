import { relativeName } from './names';
import type { RecordIndex } from './record-index';
import type { ZoneRecord } from './rrset';

/** CNAME records one answer follows (contract dns.md §4.4, §6.3). */
export const hopsMax = 8;

/**
 * The CNAME records of a chain inside the zone that the record belongs to and that is endless or longer than 8; null when
 * there is none. Wildcards count: what a target resolves to is what a server would follow. A record that is no CNAME
 * breaks nothing: it can only end chains.
 */
export function findLongChain(record: ZoneRecord, zone: RecordIndex): readonly ZoneRecord[] | null {
  if (record.type !== 'CNAME') return null;
  const after = follow(record, zone);
  if (after.endless) return after.chain;
  const before = longestBefore(record, zone);
  return before.length + after.chain.length > hopsMax ? [...before, ...after.chain] : null;
}

function follow(record: ZoneRecord, zone: RecordIndex): { chain: ZoneRecord[]; endless: boolean } {
  const chain = [record];
  for (let next = target(record, zone); next; next = target(next, zone)) {
    if (chain.includes(next)) return { chain, endless: true };
    chain.push(next);
    if (chain.length > hopsMax) break;
  }
  return { chain, endless: false };
}

function target(record: ZoneRecord, zone: RecordIndex): ZoneRecord | null {
  const name = relativeName(record.value, zone.domain);
  return name === null ? null : (zone.answering(name).find((other) => other.type === 'CNAME') ?? null);
}

/** The longest chain of other CNAMEs that ends in the record, cut where it is long enough to be refused. */
function longestBefore(record: ZoneRecord, zone: RecordIndex): readonly ZoneRecord[] {
  const sources = sourcesIn(zone);
  let chains: ReadonlyMap<ZoneRecord, readonly ZoneRecord[]> = new Map([[record, [record]]]); // by first record: one chain of each length is enough
  for (let hops = 0; hops < hopsMax; hops++) {
    const longer = new Map([...chains].flatMap(([first, chain]) => (sources.get(first) ?? []).map((source) => [source, [source, ...chain]] as const)));
    if (longer.size === 0) break;
    chains = longer;
  }
  const [longest = [record]] = chains.values();
  return longest.slice(0, -1);
}

type Sources = ReadonlyMap<ZoneRecord, readonly ZoneRecord[]>;
/** Made once per state of a zone: a batch asks for each of its CNAMEs. */
const known = new WeakMap<RecordIndex, Sources>();

/** The CNAMEs that lead to each CNAME. */
function sourcesIn(zone: RecordIndex): Sources {
  const made = known.get(zone);
  if (made) return made;
  const sources = new Map<ZoneRecord, ZoneRecord[]>();
  for (const other of zone.records) {
    const next = other.type === 'CNAME' ? target(other, zone) : null;
    const there = next && sources.get(next);
    if (there) there.push(other);
    else if (next) sources.set(next, [other]);
  }
  known.set(zone, sources);
  return sources;
}
