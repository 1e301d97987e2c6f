import { BlockList, isIP } from 'node:net';

/** Whether an address lies in one of some networks. */
export type NetworkCheck = (address: string) => boolean;

/** `networks`: addresses and CIDRs, as the configuration has checked them. */
export function inNetworks(networks: readonly string[]): NetworkCheck {
  if (networks.length === 0) return () => false;
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => isIP(address) > 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** IPv4 clients of an IPv6 socket look like ::ffff:192.0.2.1; a zone id says nothing about who it is. */
export function plainAddress(address: string): string {
  if (!address.includes(':')) return address;
  return address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
}

/** The right-most address of X-Forwarded-For that is not a trusted proxy's, when the connection comes from one; else the connection's. */
export function clientAddress(peer: string, forwardedFor: string, isTrusted: NetworkCheck): string {
  if (forwardedFor === '' || !isTrusted(peer)) return peer;
  const hops = forwardedFor.split(',');
  let address = peer;
  while (isTrusted(address)) {
    const previous = plainAddress((hops.pop() ?? '').trim().replace(/^\[(.*)\](?::\d+)?$/, '$1'));
    if (isIP(previous) === 0) break;
    address = previous;
  }
  return address;
}
