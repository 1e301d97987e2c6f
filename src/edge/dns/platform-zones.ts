import type { Db } from '../../db/client';
import type { ApplyOutcome, ZoneChangeSet } from '../../dns/ports';
import { tokenNames, type Platform } from '../../dns/rules/platform';
import { apexSets } from '../../dns/rules/effective';
import { byText, type RRset } from '../../dns/rules/rrset';
import { listTokens } from '../../dns/store/feed';

const addressTtl = 3_600;

/**
 * The zones below DNS_NAMESERVER_SUFFIX and DNS_EDGE_SUFFIX: SOA, NS, `s<i>`, and one set of names per token of an
 * unpurged zone. Every other name is NXDOMAIN, so a delegation left behind leads nowhere (contract dns.md §4.2).
 */
export class PlatformZones {
  private tokens = '';
  private version = 0;

  constructor(private readonly platform: Platform) {}

  async refresh(db: Db, apply: (changes: ZoneChangeSet) => ApplyOutcome): Promise<void> {
    const found = await listTokens(db);
    const tokens = found.map(({ token, cnameToken }) => `${token} ${cnameToken ?? ''}`).sort(byText).join('\n');
    if (this.version > 0 && tokens === this.tokens) return;
    this.tokens = tokens;
    this.version++;
    const { nameserverSuffix, edgeSuffix, gatewayAddresses } = this.platform;
    const servers = this.platform.servers.map(({ addresses }, i) => ({ name: `s${i + 1}.${nameserverSuffix}`, addresses }));
    const names = found.flatMap(({ token }) => tokenNames(this.platform, token).map((name, i) => ({ name, addresses: this.platform.servers[i]?.addresses ?? [] })));
    const edges = found.flatMap(({ cnameToken }) => (cnameToken === null ? [] : [{ name: `${cnameToken}.${edgeSuffix}`, addresses: [...gatewayAddresses.ipv4, ...gatewayAddresses.ipv6] }]));
    apply(this.zone(nameserverSuffix, servers.map(({ name }) => name), [...servers, ...names]));
    apply(this.zone(edgeSuffix, servers.map(({ name }) => name), edges));
  }

  private zone(domain: string, nameservers: readonly string[], hosts: readonly { name: string; addresses: readonly string[] }[]): ZoneChangeSet {
    const serial = this.version;
    return {
      zoneId: null, domain, version: this.version, fromVersion: null, serial, kind: 'full', remove: [],
      replace: [...apexSets({ domain, serial, nameservers, soaRname: this.platform.soaRname }), ...hosts.flatMap(({ name, addresses }) => addressSets(name, addresses))],
    };
  }
}

function addressSets(name: string, addresses: readonly string[]): RRset[] {
  const sets: RRset[] = [
    { name, type: 'A', ttl: addressTtl, values: addresses.filter((address) => !address.includes(':')).sort(byText) },
    { name, type: 'AAAA', ttl: addressTtl, values: addresses.filter((address) => address.includes(':')).sort(byText) },
  ];
  return sets.filter(({ values }) => values.length > 0);
}
