import ipaddr from 'ipaddr.js';
import { formatIpv4, parseIpv4, parseIpv6 } from './addresses';

/**
 * Whether an address belongs to a host on the public internet (contract dns.md §6.1): what the resolver may ask, the gateway
 * may connect to and mail may be sent to, when no exception is configured. Translated addresses (NAT64, 6to4) are as
 * public as the IPv4 address in them. False for text that is no address.
 */
export function isGlobalUnicast(text: string): boolean {
  const octets = parseIpv6(text);
  if (!octets) return parseIpv4(text) !== null && ipaddr.parse(text).range() === 'unicast';
  const range = ipaddr.parse(text).range();
  if (range === 'rfc6052') return octets[5] === 0 && isGlobalUnicast(formatIpv4(octets.subarray(12)));
  if (range === '6to4') return isGlobalUnicast(formatIpv4(octets.subarray(2, 6)));
  return range === 'unicast' && ((octets[0] ?? 0) & 0xe0) === 0x20;
}

/** Whether an address lies in one of the networks, written as addresses or in CIDR form. */
export function isInNetworks(text: string, networks: readonly string[]): boolean {
  const address = ipaddr.parse(text);
  return networks.some((network) => {
    const [base, length] = ipaddr.parseCIDR(network.includes('/') ? network : `${network}/${network.includes(':') ? 128 : 32}`);
    return address.kind() === base.kind() && address.match(base, length);
  });
}
