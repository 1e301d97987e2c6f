import { isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { parseAddress } from '../../core/listen';
import { plainAddress } from './client-address';
import type { OriginHealth } from './origin-health';
import type { OriginNames } from './origin-names';

/** How origins are reached by everybody in this process. */
export type OriginAccess = {
  readonly names: OriginNames;
  readonly resting: RestingAddresses;
  readonly health: OriginHealth;
  /** Whether the gateway may connect there (contract gateway.md §4.3, origin). */
  mayDial(address: string, port: number): boolean;
};

/** Ports that speak something else than HTTP to whoever can be made to connect to them. */
const refusedPorts: ReadonlySet<number> = new Set([22, 25, 53, 465, 587]);

/**
 * Checks an address and port before it is dialled. `mayBeOrigin`: whether an address may be one at all (public and not ours, or
 * allowed). `listening`: host:port, or host:first-last, of all this installation listens on, refused even where its address is allowed.
 */
export function originCheck(mayBeOrigin: (address: string) => boolean, listening: readonly string[]): OriginAccess['mayDial'] {
  const own = listening.map(rangeOf);
  return (given, port) => {
    const address = canonical(given);
    if (address === null || refusedPorts.has(port) || !mayBeOrigin(address)) return false;
    return !own.some(({ host, first, last }) => port >= first && port <= last && reaches(address, host));
  };
}

function rangeOf(text: string): { host: string; first: number; last: number } {
  const [, start = text, last] = /^(.*:\d+)-(\d+)$/.exec(text) ?? [];
  const { host, port } = parseAddress(start);
  return { host, first: port, last: Number(last ?? port) };
}

/** Whether a connection to `address` ends at what listens on `host`. */
function reaches(address: string, host: string): boolean {
  if (host === 'localhost') return isLoopback(address);
  const bound = canonical(host);
  if (bound === null) return true; // a name: nobody knows which address it has
  if (bound === '0.0.0.0' || bound === '::') return isLoopback(address) || ownAddresses().has(address);
  return bound === address || (isNat64(address) && embedded(address) === bound);
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1' || address === '0.0.0.0' || address === '::';
}

function ownAddresses(): Set<string> {
  return new Set(Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => plainAddress(address))));
}

/** An IPv4 address in IPv6 clothes is the IPv4 address: the socket would connect there. Null: no address. */
function canonical(text: string): string | null {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes('%')) return null;
  const parsed = ipaddr.IPv6.parse(text);
  return parsed.isIPv4MappedAddress() ? parsed.toIPv4Address().toString() : parsed.toRFC5952String();
}

function isNat64(address: string): boolean {
  return isIPv6(address) && ipaddr.IPv6.parse(address).range() === 'rfc6052';
}

function embedded(address: string): string {
  return ipaddr.fromByteArray(ipaddr.IPv6.parse(address).toByteArray().slice(12)).toString();
}

const restMs = { first: 10_000, max: 60_000 };

const restsMax = 10_000;
/** By zone, record and address: what one zone finds of an address says nothing about another's. */
type Resting = { readonly poolKey: string };

/** Addresses that could not be connected to: tried again after 10 s, then 20, 40, 60. */
export class RestingAddresses {
  private readonly rests = new Map<string, { until: number; ms: number }>();

  constructor(private readonly nowMs: () => number) {}

  failed({ poolKey }: Resting): void {
    const before = this.rests.get(poolKey);
    const now = this.nowMs();
    if (before && before.until > now) return;
    const ms = before ? Math.min(before.ms * 2, restMs.max) : restMs.first;
    if (this.rests.size >= restsMax) this.rests.clear();
    this.rests.set(poolKey, { until: now + ms, ms });
  }

  reached({ poolKey }: Resting): void {
    if (this.rests.size > 0) this.rests.delete(poolKey);
  }

  /** When it may be tried again, in milliseconds of the clock; 0: now. */
  until({ poolKey }: Resting): number {
    if (this.rests.size === 0) return 0;
    const rest = this.rests.get(poolKey);
    return rest && rest.until > this.nowMs() ? rest.until : 0;
  }
}
