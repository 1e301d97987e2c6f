import { fqdnOf } from './names';
import { byText, grouped, rrsetValue, type RRset, type ZoneRecord } from './rrset';
import { ttlDefault } from './values';

/** What a zone's answers depend on besides its records (contract dns.md §6.2). */
export type ZoneFacts = {
  domain: string;
  mode: 'full_hosting' | 'external';
  /** The stored status; suspension and deletion are no matter of answers. */
  status: 'pending' | 'active' | 'degraded' | 'moved';
  serial: number;
  nameservers: readonly string[];
  soaRname: string;
  gatewayAddresses: { ipv4: readonly string[]; ipv6: readonly string[] };
  /** Addresses of the apex CNAME's target; null while none is known. */
  flattened: { ipv4: readonly string[]; ipv6: readonly string[]; ttl: number } | null;
};

/** What DNS needs of a record. */
export type ServedRecord = Pick<ZoneRecord, 'type' | 'name' | 'value' | 'ttl' | 'priority' | 'proxied'>;

export type Effective = { served: boolean; via: 'record' | 'gateway' | 'flattened' | 'none'; values: string[]; ttl: number };

const apexTtl = 3600;

/** Everything DNS answers for a zone: apex SOA and NS, and every record's RRsets. Sorted by name and type; none for an external zone. */
export function effectiveZone(zone: ZoneFacts, records: readonly ServedRecord[]): RRset[] {
  if (zone.mode === 'external') return [];
  const byName = grouped(records, ({ name }) => name);
  const sets = [...byName].flatMap(([name, there]) => effectiveName(zone, name, there));
  return [...apexSets(zone), ...sets].sort((a, b) => byText(a.name, b.name) || byText(a.type, b.type));
}

/**
 * RRsets of one name, of its active records. SOA and NS of the apex are apart (`apexSets`). An RRset that DNS does not
 * have is absent: a query for it is answered NODATA.
 */
export function effectiveName(zone: ZoneFacts, name: string, records: readonly ServedRecord[]): RRset[] {
  if (zone.mode === 'external') return [];
  const fqdn = fqdnOf(name, zone.domain);
  const viaGateway = records.some((record) => isViaGateway(zone, record));
  const flatten = !viaGateway && name === '@' ? records.find(({ type }) => type === 'CNAME') : undefined;
  const stored = grouped(records.filter((record) => record !== flatten && !isViaGateway(zone, record)), ({ type }) => type);
  const sets = [...stored].map(([type, set]): RRset => ({ name: fqdn, type, ttl: set[0]?.ttl ?? ttlDefault, values: set.map(rrsetValue).sort(byText) }));
  if (viaGateway) sets.push(...addressSets(fqdn, zone.gatewayAddresses, ttlDefault));
  if (flatten && zone.flattened) sets.push(...addressSets(fqdn, zone.flattened, Math.min(flatten.ttl, zone.flattened.ttl)));
  return sets;
}

/** SOA and NS of a zone's apex. */
export function apexSets(zone: Pick<ZoneFacts, 'domain' | 'serial' | 'nameservers' | 'soaRname'>): RRset[] {
  const [primary = '.'] = zone.nameservers;
  return [
    { name: zone.domain, type: 'NS', ttl: apexTtl, values: [...zone.nameservers].sort(byText) },
    { name: zone.domain, type: 'SOA', ttl: apexTtl, values: [`${primary} ${zone.soaRname} ${zone.serial} 7200 3600 1209600 300`] },
  ];
}

/** What DNS answers for one record: the field `effective`. `served`: whether this zone is answered by our servers at all. */
export function effectiveRecord(zone: ZoneFacts, record: ServedRecord, served: boolean): Effective {
  if (!served || zone.mode === 'external') return { served: false, via: 'none', values: [], ttl: record.ttl };
  if (isViaGateway(zone, record)) {
    const { ipv4, ipv6 } = zone.gatewayAddresses;
    return { served: true, via: 'gateway', values: record.type === 'CNAME' ? [...ipv4, ...ipv6] : [...(record.type === 'A' ? ipv4 : ipv6)], ttl: ttlDefault };
  }
  if (record.name !== '@' || record.type !== 'CNAME') return { served: true, via: 'record', values: [record.value], ttl: record.ttl };
  const { flattened } = zone;
  return flattened
    ? { served: true, via: 'flattened', values: [...flattened.ipv4, ...flattened.ipv6], ttl: Math.min(record.ttl, flattened.ttl) }
    : { served: true, via: 'none', values: [], ttl: record.ttl };
}

/** Never while pending: a change of name servers must not lead visitors to a gateway that refuses them. */
function isViaGateway(zone: ZoneFacts, record: ServedRecord): boolean {
  const { ipv4, ipv6 } = zone.gatewayAddresses;
  return record.proxied && zone.status !== 'pending' && ipv4.length + ipv6.length > 0;
}

function addressSets(name: string, addresses: { ipv4: readonly string[]; ipv6: readonly string[] }, ttl: number): RRset[] {
  const sets: RRset[] = [
    { name, type: 'A', ttl, values: [...addresses.ipv4].sort(byText) },
    { name, type: 'AAAA', ttl, values: [...addresses.ipv6].sort(byText) },
  ];
  return sets.filter(({ values }) => values.length > 0);
}
