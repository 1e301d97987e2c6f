/** Which certificates the served names of a zone need: the names of one order, the first of them its own. */
export type WantedCertificate = { primaryHostname: string; hostnames: string[] };

/**
 * Hosted zones prove names by DNS, so the apex and everything one label below share one certificate; deeper names have their
 * own. Names of external zones are proven by HTTP, one by one, and wildcards cannot be (contract gateway.md §5).
 */
export function wantedCertificates(zone: { domain: string; mode: 'full_hosting' | 'external' }, hostnames: readonly string[]): WantedCertificate[] {
  if (zone.mode === 'external') return hostnames.filter((name) => !name.startsWith('*.')).map(single);
  const shared = hostnames.some((name) => isShared(zone.domain, name));
  const deeper = hostnames.filter((name) => !isShared(zone.domain, name));
  return [...(shared ? [{ primaryHostname: zone.domain, hostnames: [zone.domain, `*.${zone.domain}`] }] : []), ...deeper.map(single)];
}

/** The certificate whose names cover a hostname (RFC 6125 §6.4.3: a wildcard stands for one label); an own one before a wildcard's. */
export function certificateFor<C extends { hostnames: readonly string[] }>(certificates: readonly C[], hostname: string): C | null {
  const above = `*.${hostname.slice(hostname.indexOf('.') + 1)}`;
  return certificates.find(({ hostnames }) => hostnames.includes(hostname)) ?? certificates.find(({ hostnames }) => hostnames.includes(above)) ?? null;
}

function single(name: string): WantedCertificate {
  return { primaryHostname: name, hostnames: [name] };
}

/** The apex, or one label below it, also `*`. */
function isShared(domain: string, name: string): boolean {
  return name === domain || (name.endsWith(`.${domain}`) && !name.slice(0, -domain.length - 1).includes('.'));
}
