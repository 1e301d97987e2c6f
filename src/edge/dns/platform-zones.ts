import type { Db } from '../../db/client';
import type { ApplyOutcome, ZoneChangeSet } from '../../dns/ports';
import { apexSets } from '../../dns/rules/effective';
import { tokenNames, type Platform } from '../../dns/rules/platform';
import { byText, type RRset } from '../../dns/rules/rrset';
import { listTokens } from '../../dns/store/feed';

const addressTtl = 3_600;
type Host = { name: string; addresses: readonly string[] };
type Zone = { domain: string; present: ReadonlyMap<string, Host> };

/**
 * The zones below DNS_NAMESERVER_SUFFIX and DNS_EDGE_SUFFIX: SOA, NS, `s<i>`, and one set of names per token of an
 * unpurged zone. Every other name is NXDOMAIN, so a delegation left behind leads nowhere (contract dns.md §4.2).
 */
export class PlatformZones {
  private zones: readonly Zone[] = [];
  private version = 0;

  constructor(private readonly platform: Platform) {}

  /** Brings both zones to what the database says; nothing is applied when that is what they have. */
  async refresh(db: Db, apply: (changes: ZoneChangeSet) => ApplyOutcome): Promise<void> {
    const found = await listTokens(db);
    const wanted: Zone[] = [
      { domain: this.platform.nameserverSuffix, present: byName([...this.servers(), ...found.flatMap(({ token }) => this.nameserversOf(token))]) },
      { domain: this.platform.edgeSuffix, present: byName(found.flatMap(({ cnameToken }) => (cnameToken === null ? [] : [this.edgeOf(cnameToken)]))) },
    ];
    const isNew = this.zones.length === 0;
    const steps = wanted.map((zone, i) => ({ ...zone, before: this.zones[i]?.present ?? new Map<string, Host>() }));
    const changed = isNew || steps.some(({ present, before }) => present.size !== before.size || [...present.keys()].some((name) => !before.has(name)));
    if (!changed) return;
    const fromVersion = this.version;
    // Seconds: higher after every restart too, so that secondaries follow.
    this.version = Math.max(this.version + 1, Math.floor(Date.now() / 1000));
    for (const step of steps) apply(this.stepOf(step, isNew ? null : fromVersion));
    this.zones = wanted;
  }

  /** They are there at this version already, from before the database could be read. */
  recall(version: number): void {
    this.version = Math.max(this.version, version);
  }

  private stepOf({ domain, present, before }: Zone & { before: Zone['present'] }, fromVersion: number | null): ZoneChangeSet {
    const { soaRname } = this.platform;
    const apex = apexSets({ domain, serial: this.version, nameservers: this.servers().map(({ name }) => name), soaRname });
    const added = [...present.values()].filter(({ name }) => !before.has(name));
    const gone = [...before.keys()].filter((name) => !present.has(name));
    return {
      zoneId: null, domain, version: this.version, fromVersion, serial: this.version, kind: fromVersion === null ? 'full' : 'diff',
      replace: [...apex, ...added.flatMap(addressSets)],
      remove: gone.flatMap((name) => [{ name, type: 'A' as const }, { name, type: 'AAAA' as const }]),
    };
  }

  private servers(): Host[] {
    return this.platform.servers.map(({ addresses }, i) => ({ name: `s${i + 1}.${this.platform.nameserverSuffix}`, addresses }));
  }

  private nameserversOf(token: string): Host[] {
    return tokenNames(this.platform, token).map((name, i) => ({ name, addresses: this.platform.servers[i]?.addresses ?? [] }));
  }

  private edgeOf(token: string): Host {
    const { edgeSuffix, gatewayAddresses } = this.platform;
    return { name: `${token}.${edgeSuffix}`, addresses: [...gatewayAddresses.ipv4, ...gatewayAddresses.ipv6] };
  }
}

function byName(hosts: readonly Host[]): Map<string, Host> {
  return new Map(hosts.map((host) => [host.name, host]));
}

function addressSets({ name, addresses }: Host): RRset[] {
  const sets: RRset[] = [
    { name, type: 'A', ttl: addressTtl, values: addresses.filter((address) => !address.includes(':')).sort(byText) },
    { name, type: 'AAAA', ttl: addressTtl, values: addresses.filter((address) => address.includes(':')).sort(byText) },
  ];
  return sets.filter(({ values }) => values.length > 0);
}
