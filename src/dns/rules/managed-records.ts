import { findConflict } from './conflicts';
import { noOrigin } from './origins';
import { RecordIndex } from './record-index';
import { rrsetValue, type ZoneRecord } from './rrset';

/** A record a product wants in a zone, canonical. */
export type WantedRecord = Pick<ZoneRecord, 'type' | 'name' | 'value' | 'priority' | 'ttl'>;

/**
 * Which of the wanted records the zone has or can have beside those that stay: `added` are to be created, `placed` are the
 * keys of all that will stand there. What breaks a state rule (contract dns.md §4.4) is in neither.
 */
export function placeRecords(domain: string, staying: readonly ZoneRecord[], wanted: readonly WantedRecord[]): { placed: Set<string>; added: WantedRecord[] } {
  const placed = new Set<string>();
  const added: WantedRecord[] = [];
  const there = new Set(staying.map(recordKey));
  const state = [...staying];
  for (const record of wanted) {
    const key = recordKey(record);
    if (!there.has(key)) {
      const candidate: ZoneRecord = { ...record, ...noOrigin, id: key, proxied: false };
      const zone = new RecordIndex(domain, [...state, candidate]);
      if (hasOtherPolicy(zone, candidate) || findConflict(zone, [candidate], { mayBeOrigin: () => true })) continue;
      state.push(candidate);
      there.add(key);
      added.push(record);
    }
    placed.add(key);
  }
  return { placed, added };
}

/** What makes a record the same one: name, type and rdata. */
export function recordKey(record: Pick<ZoneRecord, 'type' | 'name' | 'value' | 'priority'>): string {
  return `${record.name} ${record.type} ${rrsetValue(record)}`;
}

/** Two policies at one name are none (RFC 7489 §6.6.3): whatever TXT stands at `_dmarc` stays the only one. */
function hasOtherPolicy(zone: RecordIndex, { id, type, name }: ZoneRecord): boolean {
  return type === 'TXT' && (name === '_dmarc' || name.startsWith('_dmarc.')) && zone.at(name).some((other) => other.type === 'TXT' && other.id !== id);
}
