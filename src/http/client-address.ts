import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** Whether an address is one of our own proxies, whose X-Forwarded-For is believed. */
export type TrustedProxies = (address: string) => boolean;

/** `networks`: addresses or CIDRs. Errors: one that is neither. */
export function trustedProxies(networks: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (isIP(address) === 0) throw new Error(`TRUSTED_PROXIES: ${network} is no address and no network.`);
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => isIP(address) > 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * The client's address: the connection's, or the right-most address of X-Forwarded-For that is not ours when the
 * connection is ours. IPv4-mapped IPv6 becomes IPv4.
 */
export function clientAddress(request: IncomingMessage, trusted: TrustedProxies): string {
  const header = request.headers['x-forwarded-for'];
  const forwarded = (Array.isArray(header) ? header.join(',') : header ?? '').split(',').map((part) => part.trim()).filter(Boolean);
  let address = plain(request.socket.remoteAddress ?? '');
  while (trusted(address)) {
    const previous = plain(forwarded.pop() ?? '');
    if (isIP(previous) === 0) break;
    address = previous;
  }
  return address;
}

/** What counts as one client in limits: an IPv4 address, an IPv6 /64. */
export function clientNetwork(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':').filter(Boolean);
  const rest = tail === undefined ? [] : tail.split(':').filter(Boolean);
  const all = tail === undefined ? groups : [...groups, ...Array.from({ length: 8 - groups.length - rest.length }, () => '0'), ...rest];
  return `${all.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}

function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
}
