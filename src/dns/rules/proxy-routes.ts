import { isAtOrBelow } from './domains';
import { fqdnOf, namesAbove } from './names';
import { byText, grouped, type ZoneRecord } from './rrset';

export type ProxyOrigin = {
  recordId: string; kind: 'A' | 'AAAA' | 'CNAME'; value: string;
  protocol: 'http' | 'https'; port: number | null; path: string | null; hostHeader: string | null;
};

/**
 * A name whose visitors DNS leads to the gateway, with its origins: one pool. A wildcard (`hostname` `*.example.com`) covers
 * every name below but those in `hiddenBy` and what stands below them: names that exist, also as empty non-terminals.
 */
export type ProxyRoute = { hostname: string; wildcard: boolean; hiddenBy: string[]; origins: ProxyOrigin[] };

type RouteRecord = Pick<ZoneRecord, 'id' | 'type' | 'name' | 'value' | 'proxied' | 'originProtocol' | 'originPort' | 'originPath' | 'originHostHeader'>;

/** Routes of a zone's records, sorted by name. `heldBelow`: domains of zones below this one, which have names of their own. */
export function proxyRoutes(domain: string, records: readonly RouteRecord[], heldBelow: readonly string[]): ProxyRoute[] {
  const existing = new Set(records.flatMap(({ name }) => [name, ...namesAbove(name)]).map((name) => fqdnOf(name, domain)));
  const proxied = [...grouped(records.filter((record) => record.proxied), ({ name }) => fqdnOf(name, domain))];
  return proxied.filter(([hostname]) => !heldBelow.some((held) => isAtOrBelow(hostname, held))).map(([hostname, pool]) => {
    const wildcard = hostname.startsWith('*.');
    return { hostname, wildcard, hiddenBy: wildcard ? hiding(hostname.slice(2), existing, heldBelow) : [], origins: pool.flatMap(originOf) };
  }).sort((a, b) => byText(a.hostname, b.hostname));
}

/** RFC 4592 §2.2.1: a wildcard stands for a name only where nothing exists between. */
function hiding(encloser: string, existing: ReadonlySet<string>, heldBelow: readonly string[]): string[] {
  const children = [...existing, ...heldBelow].filter((name) => name.endsWith(`.${encloser}`)).map((name) => `${name.slice(0, -encloser.length - 1).split('.').at(-1) ?? ''}.${encloser}`);
  return [...new Set(children)].filter((name) => !name.startsWith('*.')).sort(byText);
}

function originOf({ id, type, value, originProtocol, originPort, originPath, originHostHeader }: RouteRecord): ProxyOrigin[] {
  if (type !== 'A' && type !== 'AAAA' && type !== 'CNAME') return [];
  return [{ recordId: id, kind: type, value, protocol: originProtocol ?? 'http', port: originPort, path: originPath, hostHeader: originHostHeader }];
}
