import type { DescribedRequest, RequestFacts } from '../../gateway/ports';
import { canonicalPath } from './canonical-path';

/** A request that was described and never sent, as the pipeline sees requests. `url` is absolute. */
export function factsOfDescribed(zoneId: string, { method, url, headers, body, ip, country, asn }: DescribedRequest, receivedAt: number): RequestFacts {
  const [, scheme = 'http', authority = '', path = '', query = ''] = /^(https?):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?/i.exec(url) ?? [];
  const rawPath = latin1(path === '' ? '/' : path);
  const bytes = body === null ? null : Buffer.from(body);
  const isTls = scheme.toLowerCase() === 'https';
  const given = headers.map(({ name, value }) => [name.toLowerCase(), latin1(value)] as const);
  const named = new Set(given.map(([name]) => name));
  return {
    zoneId, requestId: 'req_evaluation', receivedAt, clientIp: ip, country, asn, isVerifiedBot: false, method: method.toUpperCase(), scheme: isTls ? 'https' : 'http',
    host: authority.replace(/^.*@/, '').replace(/:\d+$/, '').toLowerCase(), rawPath, path: canonicalPath(rawPath), rawQuery: latin1(query), httpVersion: '1.1', tlsVersion: isTls ? '1.3' : null,
    headers: [
      ...(named.has('host') ? [] : [['host', authority] as const]), ...given,
      ...(bytes && !named.has('content-length') ? [['content-length', String(bytes.length)] as const] : []),
    ],
    contentLength: bytes?.length ?? null, body: bytes, bodyComplete: true,
  };
}

/** Bytes of its UTF-8, as they would have come over the wire. */
function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}
