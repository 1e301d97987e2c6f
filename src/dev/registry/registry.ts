import type { Log } from '../../core/log';
import type { Platform } from '../../dns/rules/platform';
import { isAtOrBelow } from '../../dns/rules/domains';
import { byText, grouped, type RRset, type RrType } from '../../dns/rules/rrset';
import { startAuthority, type Authority, type ServedZone } from './authority';
import type { Delegated } from './delegations';

export type RegistryOptions = {
  /** First three octets of the loopback addresses used, one per server: `127.0.53`. */
  network: string;
  /** One port for all of them; 0: any. */
  port: number;
  log: Log;
};

/** The top-level domain of the registry; everything else is the real root's. */
export const registryTld = 'test';
/** Where `npm start` runs it. */
export const registryNetwork = '127.0.53';
const ttl = 3_600;
const [rootHost, ...tldHosts] = ['a.root.test', 'a.nic.test', 'b.nic.test'] as const;

/** A root and the two servers of a registry for `test`, each a real authoritative server on a loopback address of its own. */
export class Registry {
  private constructor(private readonly root: Authority, private readonly tld: readonly [Authority, Authority]) {}

  /** The registry answers; nothing is delegated yet. Errors: an address is taken. */
  static async start({ network, port, log }: RegistryOptions): Promise<Registry> {
    const address = (host: number): string => `${network}.${host}`;
    const root = await startAuthority({ host: address(1), port }, [rootZone([address(1), address(2), address(3)])], log);
    const first = await startAuthority({ host: address(2), port: root.port }, [], log);
    const second = await startAuthority({ host: address(3), port: root.port }, [], log);
    const registry = new Registry(root, [first, second]);
    registry.publish(1, []);
    return registry;
  }

  get port(): number {
    return this.root.port;
  }

  /** Where a resolver begins to see this name space, and this one only. */
  get rootHints(): { name: string; address: string }[] {
    return [{ name: rootHost, address: this.root.address }];
  }

  /** Where a resolver that sees the real root begins with `test`. */
  get tldServers(): { name: string; address: string }[] {
    return this.tld.map(({ address }, i) => ({ name: tldHosts[i] ?? '', address }));
  }

  /** Both servers answer with these delegations; `second`: what the second one says instead, a registry that disagrees with itself. */
  publish(version: number, delegations: readonly Delegated[], second: readonly Delegated[] = delegations): void {
    this.tld[0].put(this.zone(version, delegations));
    this.tld[1].put(this.zone(version, second));
  }

  async close(): Promise<void> {
    await Promise.all([this.root, ...this.tld].map((server) => server.close()));
  }

  private zone(version: number, delegations: readonly Delegated[]): ServedZone {
    const own = tldHosts.flatMap((host, i) => [rrset(registryTld, 'NS', host), rrset(host, 'A', this.tld[i]?.address ?? '')]);
    const given = delegations.flatMap(({ domain, names, glue, ds }) => [
      ...names.map((name) => rrset(domain, 'NS', name)), ...ds.map((value) => rrset(domain, 'DS', value)),
      ...Object.entries(glue).flatMap(([host, addresses]) => addresses.map((address) => rrset(host, address.includes(':') ? 'AAAA' : 'A', address))),
    ]);
    return { domain: registryTld, version, rrsets: merged([soa(registryTld, version), ...own, ...given]) };
  }
}

/** The platform's own suffixes below `test`, delegated to its servers: names of name servers and of edges lead there. */
export function platformDelegations({ nameserverSuffix, edgeSuffix, servers }: Pick<Platform, 'nameserverSuffix' | 'edgeSuffix' | 'servers'>): Delegated[] {
  const glue = Object.fromEntries(servers.map(({ addresses }, i) => [`s${i + 1}.${nameserverSuffix}`, [...addresses]]));
  const suffixes = [...new Set([nameserverSuffix, edgeSuffix])].filter((suffix) => isAtOrBelow(suffix, registryTld));
  return suffixes.map((domain) => ({ domain, names: Object.keys(glue), glue: isAtOrBelow(nameserverSuffix, registryTld) ? glue : {}, ds: [] }));
}

function rootZone([root = '', ...tld]: readonly string[]): ServedZone {
  const hosts = tldHosts.flatMap((host, i) => [rrset(registryTld, 'NS', host), rrset(host, 'A', tld[i] ?? '')]);
  return { domain: '.', version: 1, rrsets: merged([soa('.', 1), rrset('.', 'NS', rootHost), rrset(rootHost, 'A', root), ...hosts]) };
}

function soa(domain: string, serial: number): RRset {
  return rrset(domain, 'SOA', `${domain === '.' ? rootHost : tldHosts[0]} hostmaster.nic.test ${serial} 7200 3600 1209600 300`);
}

function rrset(name: string, type: RrType, value: string): RRset {
  return { name, type, ttl, values: [value] };
}

/** One RRset per name and type. */
function merged(sets: readonly RRset[]): RRset[] {
  return [...grouped(sets, ({ name, type }) => `${name} ${type}`).values()].flatMap((same) => {
    const [first] = same;
    return first ? [{ ...first, values: [...new Set(same.flatMap(({ values }) => values))].sort(byText) }] : [];
  });
}
