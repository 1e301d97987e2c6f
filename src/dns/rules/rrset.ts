/** Types a customer writes (contract dns.md §4.3). */
export const recordTypes = ['A', 'AAAA', 'CNAME', 'MX', 'TXT', 'NS', 'CAA'] as const;
export type RecordType = (typeof recordTypes)[number];

/** Types our servers hold: SOA is made from the zone, DS stands at the cuts of a registry. */
export type RrType = RecordType | 'SOA' | 'DS';

/**
 * All records of a name and type. Names are absolute, lower case, without final dot; values canonical and sorted:
 * MX `10 mail.example.com`, TXT the joined text, CAA `0 issue "ca.example"`, SOA and DS as in a zone file.
 */
export type RRset = { name: string; type: RrType; ttl: number; values: string[] };

/** A record as stored: name relative to the zone, `@` for its apex; priority null unless MX. */
export type ZoneRecord = {
  id: string;
  type: RecordType;
  name: string;
  value: string;
  ttl: number;
  priority: number | null;
  proxied: boolean;
  originProtocol: 'http' | 'https' | null;
  originPort: number | null;
  originPath: string | null;
  originHostHeader: string | null;
};

/** What a reading of customer's text gives: the canonical value or one sentence on what is wrong with it. */
export type Parsed<T> = { readonly value: T; readonly fault?: never } | { readonly fault: string; readonly value?: never };

/** The value of a record as one element of an RRset. */
export function rrsetValue(record: Pick<ZoneRecord, 'type' | 'value' | 'priority'>): string {
  return record.type === 'MX' ? `${record.priority ?? 10} ${record.value}` : record.value;
}

/** Order of RRsets and of the values in one: by code unit, so that every server and export agrees. */
export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Items by a key, in their order. */
export function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}
