/** What the installation's configuration says about its own names and addresses. */
export type Platform = {
  nameserverSuffix: string;
  edgeSuffix: string;
  soaRname: string;
  /** One entry per name server: its addresses, and the port our own checks use. */
  servers: readonly { addresses: readonly string[]; port: number }[];
  gatewayAddresses: { ipv4: readonly string[]; ipv6: readonly string[] };
  allowTestTlds: boolean;
};

type Configured = {
  DNS_NAMESERVER_SUFFIX: string; DNS_EDGE_SUFFIX: string; DNS_SOA_RNAME: string; DNS_SERVERS: Platform['servers']; DNS_ALLOW_TEST_TLDS: boolean;
  GATEWAY_PUBLIC_ADDRESSES: readonly string[];
};

export function platformOf(config: Configured): Platform {
  const gateway = config.GATEWAY_PUBLIC_ADDRESSES;
  return {
    nameserverSuffix: config.DNS_NAMESERVER_SUFFIX, edgeSuffix: config.DNS_EDGE_SUFFIX, soaRname: config.DNS_SOA_RNAME, servers: config.DNS_SERVERS,
    gatewayAddresses: { ipv4: gateway.filter((address) => !address.includes(':')), ipv6: gateway.filter((address) => address.includes(':')) }, allowTestTlds: config.DNS_ALLOW_TEST_TLDS,
  };
}

/** `<token>-<i>.<suffix>`, one per server of ours (contract dns.md §4.2). */
export function tokenNames(platform: Pick<Platform, 'nameserverSuffix' | 'servers'>, token: string): string[] {
  return platform.servers.map((_, i) => `${token}-${i + 1}.${platform.nameserverSuffix}`);
}

/** The names to set at the registrar: the customer's own if given. */
export function nameserversOf(platform: Platform, zone: { token: string; customNameservers: readonly string[] }): string[] {
  return zone.customNameservers.length > 0 ? [...zone.customNameservers] : tokenNames(platform, zone.token);
}
