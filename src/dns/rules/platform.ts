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
};

/** The gateway comes with its own product: until then it has no address, and nothing is answered with one. */
export function platformOf(config: Configured): Platform {
  return {
    nameserverSuffix: config.DNS_NAMESERVER_SUFFIX, edgeSuffix: config.DNS_EDGE_SUFFIX, soaRname: config.DNS_SOA_RNAME, servers: config.DNS_SERVERS,
    gatewayAddresses: { ipv4: [], ipv6: [] }, allowTestTlds: config.DNS_ALLOW_TEST_TLDS,
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
