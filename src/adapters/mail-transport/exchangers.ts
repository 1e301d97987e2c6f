import type { DnsResolver, Resolution } from '../../dns/ports';
import { isGlobalUnicast } from '../../dns/rules/global-addresses';
import type { TransportResult } from '../../mail/ports';
import { isPrivateAddress } from '../contactable';

export type Exchanger = { readonly host: string; readonly addresses: readonly string[] };
/** Where mail for a domain goes, best first; or what its DNS says of the mail already. */
export type Exchangers = { readonly hosts: readonly Exchanger[] } | { readonly result: TransportResult };

export interface ExchangerOptions {
  readonly resolver: DnsResolver;
  /** Development: exchangers at private and loopback addresses are contacted too. */
  readonly allowPrivate: boolean;
}

const budgetMs = 10_000;
const hostsMax = 5;
const addressesMax = 2;

const noSuchDomain: TransportResult = { outcome: 'refused', enhancedCode: '5.1.2', text: 'The domain does not exist or takes no mail.' };
const nullMx: TransportResult = { outcome: 'refused', enhancedCode: '5.1.10', text: 'The domain takes no mail (null MX).' };
const unknown: TransportResult = { outcome: 'deferred', enhancedCode: '4.4.3', text: 'DNS gives no sure answer about the domain.' };
const unreachable: TransportResult = { outcome: 'deferred', enhancedCode: '4.4.4', text: 'No mail exchanger of the domain has an address that may be contacted.' };

/**
 * The exchangers of a domain by preference, at most five with two addresses each; equal ones in random order (RFC 5321
 * §5.1). Without MX the domain itself is one; null MX refuses (RFC 7505). Nothing is decided on a doubtful answer.
 */
export async function findExchangers(domain: string, options: ExchangerOptions): Promise<Exchangers> {
  const found = await options.resolver.resolve(domain, 'MX', { budgetMs });
  if (!found.conclusive) return { result: unknown };
  if (found.outcome === 'nxdomain') return { result: noSuchDomain };
  const listed = preferred(found);
  const hosts = listed.filter((host) => host !== '');
  if (listed.length > 0 && hosts.length === 0) return { result: nullMx };
  return reachable(listed.length > 0 ? hosts : [domain], options);
}

/** Names of MX records, the lowest preference first; '' is the null MX. */
function preferred({ records }: Resolution): string[] {
  const targets = records.filter(({ type }) => type === 'MX').map(({ value }) => {
    const [, preference = '0', host = ''] = /^(\d+) ?(.*)$/.exec(value) ?? [];
    return { preference: Number(preference), host: host.replace(/\.$/, ''), random: Math.random() };
  });
  return targets.toSorted((a, b) => a.preference - b.preference || a.random - b.random).map(({ host }) => host);
}

async function reachable(names: readonly string[], options: ExchangerOptions): Promise<Exchangers> {
  const looked = await Promise.all(names.slice(0, hostsMax).map(async (host) => ({ host, found: await addressesOf(host, options.resolver) })));
  const hosts = looked.map(({ host, found }) => ({ host, addresses: found.addresses.filter((address) => mayContact(address, options)).slice(0, addressesMax) }))
    .filter(({ addresses }) => addresses.length > 0);
  if (hosts.length > 0) return { hosts };
  if (looked.some(({ found }) => found.addresses.length > 0)) return { result: unreachable };
  return { result: looked.every(({ found }) => found.conclusive) ? noSuchDomain : unknown };
}

/** One of each family first, so that a host without one of them is reached by the other. */
async function addressesOf(host: string, resolver: DnsResolver): Promise<{ addresses: string[]; conclusive: boolean }> {
  const [v4, v6] = await Promise.all([resolver.resolve(host, 'A', { budgetMs }), resolver.resolve(host, 'AAAA', { budgetMs })]);
  const [a, aaaa] = [valuesOf(v4, 'A'), valuesOf(v6, 'AAAA')];
  return { addresses: [...a.slice(0, 1), ...aaaa.slice(0, 1), ...a.slice(1), ...aaaa.slice(1)], conclusive: v4.conclusive && v6.conclusive };
}

function valuesOf({ records }: Resolution, type: string): string[] {
  return records.filter((record) => record.type === type).map(({ value }) => value);
}

function mayContact(address: string, { allowPrivate }: ExchangerOptions): boolean {
  return isGlobalUnicast(address) || (allowPrivate && isPrivateAddress(address));
}
