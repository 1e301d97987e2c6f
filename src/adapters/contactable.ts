import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Whether the text is an address, or the name, of this machine itself. */
export function isLoopbackAddress(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && ipaddr.process(host).range() === 'loopback');
}

/** Addresses of this machine and of private networks (RFC 1918, RFC 4193), what development may contact beside the internet. */
export function isPrivateAddress(address: string): boolean {
  return isIP(address) !== 0 && ['loopback', 'private', 'uniqueLocal'].includes(ipaddr.process(address).range());
}
