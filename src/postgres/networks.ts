import { isIP } from 'node:net';
import { IPv4, IPv6 } from 'ipaddr.js';

export const allowedCidrsMax = 20;

/**
 * The network in its one written form (`10.0.0.0/8`, `2001:db8::/32`), or what is wrong with it. Host bits must be zero:
 * `10.0.0.1/8` may have been meant as one address or as a network, so it is refused.
 */
export function readCidr(text: string): { cidr: string } | { fault: string } {
  const [address = '', prefix = '', ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || address.includes('%')) return { fault: 'must be a network such as 192.0.2.0/24 or 2001:db8::/32' };
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > (family === 4 ? 32 : 128)) return { fault: 'must end in a prefix length, such as /24' };
  const written = `${address}/${Number(prefix)}`;
  const network = family === 4 ? IPv4.networkAddressFromCIDR(written).toString() : IPv6.networkAddressFromCIDR(written).toString();
  const given = family === 4 ? IPv4.parse(address).toString() : IPv6.parse(address).toString();
  return network === given ? { cidr: `${network}/${Number(prefix)}` } : { fault: `must have no host bits set; did you mean ${network}/${Number(prefix)}?` };
}
