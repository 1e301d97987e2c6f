import type { RequestFacts } from '../../gateway/ports';
import type { Policy } from '../../gateway/schemas';
import type { Head } from './hygiene';
import type { Page } from './judge';

/** Stage 4: a redirect to TLS, a refusal of too old a version of it, or null. */
export function transportAnswer({ httpsRedirect, minTlsVersion }: Policy['transport'], facts: RequestFacts, { method, hostHeader }: Head): Page | 'tls_version' | null {
  if (facts.tlsVersion === '1.2' && minTlsVersion === '1.3') return 'tls_version';
  if (!httpsRedirect || facts.scheme === 'https') return null;
  const host = hostHeader === '' ? facts.host : hostHeader.replace(/:\d*$/, '');
  const path = facts.rawPath === '*' ? '/' : facts.rawPath;
  const location = `https://${host}${path}${facts.rawQuery === '' ? '' : `?${facts.rawQuery}`}`;
  return { status: method === 'GET' || method === 'HEAD' ? 301 : 308, headers: [['Location', location]], body: '' };
}

/** The header of RFC 6797 §6.1 for answers over TLS; null while it is off. */
export function hstsOf({ hsts }: Policy['transport']): string | null {
  if (!hsts.enabled) return null;
  return `max-age=${hsts.maxAgeSeconds}${hsts.includeSubDomains ? '; includeSubDomains' : ''}${hsts.preload ? '; preload' : ''}`;
}
