import { isAtOrBelow } from './domains';
import { isGlobalUnicast, isInNetworks } from './global-addresses';

/** What the installation's configuration says about its own names and addresses. */
export type Platform = {
  nameserverSuffix: string;
  edgeSuffix: string;
  soaRname: string;
  /** One entry per name server: its addresses, and the port our own checks use. */
  servers: readonly { addresses: readonly string[]; port: number }[];
  gatewayAddresses: { ipv4: readonly string[]; ipv6: readonly string[] };
  allowTestTlds: boolean;
  /** Ports this installation listens on: no origin is there. */
  ports: ReadonlySet<number>;
  /** Networks the gateway connects to although they are not public. */
  privateOrigins: readonly string[];
};

type Configured = {
  DNS_NAMESERVER_SUFFIX: string; DNS_EDGE_SUFFIX: string; DNS_SOA_RNAME: string; DNS_SERVERS: Platform['servers']; DNS_ALLOW_TEST_TLDS: boolean;
  GATEWAY_PUBLIC_ADDRESSES: readonly string[]; GATEWAY_ALLOW_PRIVATE_ORIGINS: readonly string[];
  GATEWAY_HTTP_ADDR: string; GATEWAY_HTTPS_ADDR: string; GATEWAY_ADMIN_ADDR: string; API_ADDR: string; METRICS_ADDR: string; DNS_LISTEN: readonly string[]; PG_GATEWAY_ADDR: readonly string[]; DATABASE_PORT: number; TEMPORAL_PORT: number; TEMPORAL_UI_PORT: number;
};

export function platformOf(config: Configured): Platform {
  const gateway = config.GATEWAY_PUBLIC_ADDRESSES;
  return {
    nameserverSuffix: config.DNS_NAMESERVER_SUFFIX, edgeSuffix: config.DNS_EDGE_SUFFIX, soaRname: config.DNS_SOA_RNAME, servers: config.DNS_SERVERS,
    gatewayAddresses: { ipv4: gateway.filter((address) => !address.includes(':')), ipv6: gateway.filter((address) => address.includes(':')) }, allowTestTlds: config.DNS_ALLOW_TEST_TLDS,
    ports: portsOf(config), privateOrigins: config.GATEWAY_ALLOW_PRIVATE_ORIGINS,
  };
}

function portsOf(config: Configured): ReadonlySet<number> {
  const listening = [config.API_ADDR, config.METRICS_ADDR, config.GATEWAY_HTTP_ADDR, config.GATEWAY_HTTPS_ADDR, config.GATEWAY_ADMIN_ADDR, ...config.DNS_LISTEN, ...config.PG_GATEWAY_ADDR].map((address) => Number(address.slice(address.lastIndexOf(':') + 1)));
  return new Set([...listening, config.DATABASE_PORT, config.TEMPORAL_PORT, config.TEMPORAL_UI_PORT]);
}

/** Whether the gateway may connect to an address: a public one that is not ours, or one that is allowed by configuration. */
export function mayBeOrigin(platform: Pick<Platform, 'servers' | 'gatewayAddresses' | 'privateOrigins'>, address: string): boolean {
  const own = [...platform.servers.flatMap(({ addresses }) => addresses), ...platform.gatewayAddresses.ipv4, ...platform.gatewayAddresses.ipv6];
  return isInNetworks(address, platform.privateOrigins) || (isGlobalUnicast(address) && !own.includes(address));
}

/** `<token>-<i>.<suffix>`, one per server of ours (contract dns.md §4.2). */
export function tokenNames(platform: Pick<Platform, 'nameserverSuffix' | 'servers'>, token: string): string[] {
  return platform.servers.map((_, i) => `${token}-${i + 1}.${platform.nameserverSuffix}`);
}

/** The names to set at the registrar: the customer's own if given. */
export function nameserversOf(platform: Platform, zone: { token: string; customNameservers: readonly string[] }): string[] {
  return zone.customNameservers.length > 0 ? [...zone.customNameservers] : tokenNames(platform, zone.token);
}

/**
 * Custom name servers inside their own zone, each with the addresses of one of our servers: what the zone answers for them,
 * and what is to be registered as glue. None for an external zone: its servers are elsewhere.
 */
export function ownNameservers(platform: Pick<Platform, 'servers'>, zone: { domain: string; mode: 'full_hosting' | 'external'; customNameservers: readonly string[] }): { name: string; addresses: readonly string[] }[] {
  const inside = zone.mode === 'external' ? [] : zone.customNameservers.filter((name) => isAtOrBelow(name, zone.domain));
  return inside.map((name, i) => ({ name, addresses: platform.servers[i % platform.servers.length]?.addresses ?? [] }));
}

/** Every address of our name servers. */
export function ourAddresses(platform: Pick<Platform, 'servers'>): Set<string> {
  return new Set(platform.servers.flatMap(({ addresses }) => addresses));
}
