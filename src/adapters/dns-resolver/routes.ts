import { isGlobalUnicast } from '../../dns/rules/global-addresses';
import { isAtOrBelow } from '../../dns/rules/domains';

/** Servers of a name: host and one of its addresses. */
export type NameServer = { name: string; address: string };
export type Destination = { address: string; port: number };

/** A part of the name space that has servers of its own: the development registry's `test`. */
export type Stub = { suffix: string; servers: readonly NameServer[]; port: number; /** Its addresses, whatever their range. */ addresses: readonly string[] };

export type RouteRules = {
  /** Of every query sent (DNS_RESOLVER_PORT). */
  port: number;
  /** DNS_ALLOW_NON_GLOBAL. */
  allowNonGlobal: boolean;
  /** Addresses of ours that are never asked. */
  own: readonly string[];
  /** Our DNS servers: asked at their own port, whatever their range. */
  ownServers: readonly Destination[];
  stubs: readonly Stub[];
};

/** Where a query about `name` to this address goes; null when nothing may be sent there (contract dns.md §6.1). */
export function routeTo(address: string, name: string, rules: RouteRules): Destination | null {
  const ours = rules.ownServers.find((server) => server.address === address);
  if (ours) return ours;
  const stub = stubOf(name, rules.stubs);
  if (stub?.addresses.includes(address)) return { address, port: stub.port };
  if (rules.own.includes(address)) return null;
  return rules.allowNonGlobal || isGlobalUnicast(address) ? { address, port: rules.port } : null;
}

/** The stub that a name belongs to. */
export function stubOf(name: string, stubs: readonly Stub[]): Stub | undefined {
  return stubs.find(({ suffix }) => isAtOrBelow(name, suffix));
}
