import { isIP } from 'node:net';
import type { RequestFacts } from '../../gateway/ports';
import type { Head } from './hygiene';

/** What ends at us (RFC 9110 §7.6.1) and what we say afresh. */
const dropped: ReadonlySet<string> = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'transfer-encoding', 'upgrade', 'http2-settings',
  'host', 'content-length', 'expect', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded', 'x-real-ip', 'x-request-id', 'via', 'cdn-loop',
]);
const droppedFromAnswers: ReadonlySet<string> = new Set([
  'connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'transfer-encoding', 'upgrade', 'x-request-id', 'via',
]);
/** What a trailer must not change (RFC 9110 §6.5.1). */
const notInTrailers: ReadonlySet<string> = new Set([
  ...dropped, 'trailer', 'content-encoding', 'content-type', 'content-range', 'authorization', 'cookie', 'set-cookie', 'cache-control', 'max-forwards', 'range', 'age', 'date', 'expires', 'location', 'retry-after', 'vary',
]);

export const pseudonym = 'holdfast';

export type Outgoing = {
  facts: RequestFacts; head: Head; rawHeaders: readonly string[]; loopToken: string; hostHeader: string;
  hasBody: boolean; upgrades: boolean; expects: boolean;
};

/** The header section for the origin as a flat list, in the order in which it came; ours follow (contract gateway.md §4.3, to the origin). */
export function originHeaders({ facts, head, rawHeaders, loopToken, hostHeader, hasBody, upgrades, expects }: Outgoing): string[] {
  const out = ['Host', hostHeader];
  let via = '';
  const isHttp2 = facts.httpVersion === '2';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [given = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    const name = given.toLowerCase();
    if (name === 'via') via = via === '' ? value : `${via}, ${value}`;
    else if (name === 'te' && /(?:^|[\s,])trailers(?:$|[\s,;])/i.test(value)) out.push('TE', 'trailers');
    else if (!name.startsWith(':') && !dropped.has(name) && !head.connectionNames.includes(name) && !(isHttp2 && name === 'cookie')) out.push(given, value);
  }
  if (isHttp2) for (const [name, value] of head.headers) if (name === 'cookie') out.push(name, value);
  if (upgrades) out.push('Connection', 'Upgrade', 'Upgrade', head.upgrade);
  if (expects) out.push('Expect', '100-continue');
  frame(out, head, hasBody);
  const { clientIp, scheme, requestId, httpVersion } = facts;
  const asked = head.hostHeader === '' ? facts.host : head.hostHeader;
  const node = clientIp.includes(':') ? `"[${clientIp}]"` : clientIp;
  out.push(
    'X-Forwarded-For', clientIp, 'X-Forwarded-Proto', scheme, 'X-Forwarded-Host', asked, 'X-Real-IP', clientIp, 'X-Request-Id', requestId,
    'Forwarded', `for=${node};host="${asked}";proto=${scheme}`, 'Via', `${via === '' ? '' : `${via}, `}${httpVersion} ${pseudonym}`,
    'CDN-Loop', head.cdnLoop === '' ? loopToken : `${head.cdnLoop}, ${loopToken}`,
  );
  return out;
}

/** A body is announced as it came: with its length, else in chunks. Without one, methods that usually have one say so. */
function frame(out: string[], head: Head, hasBody: boolean): void {
  if (head.contentLength !== null) out.push('Content-Length', String(head.contentLength));
  else if (hasBody) out.push('Transfer-Encoding', 'chunked');
  else if (head.method === 'POST' || head.method === 'PUT' || head.method === 'PATCH') out.push('Content-Length', '0');
}

/** Answer headers for the client as a flat list: unchanged but for what ends here, Via, X-Request-Id and HSTS. */
export function clientHeaders(raw: readonly string[], version: string, requestId: string, hsts: string | null): string[] {
  const out: string[] = [];
  let via = '';
  let named: string[] | null = null;
  for (let i = 0; i < raw.length; i += 2) {
    const given = raw[i] ?? '';
    const name = given.toLowerCase();
    if (name === 'connection') (named ??= []).push(...(raw[i + 1] ?? '').toLowerCase().split(',').map((part) => part.trim()));
    else if (name === 'via') via = `${raw[i + 1]}, `;
    else if (!droppedFromAnswers.has(name) && !(hsts !== null && name === 'strict-transport-security')) out.push(given, raw[i + 1] ?? '');
  }
  out.push('Via', `${via}${version} ${pseudonym}`, 'X-Request-Id', requestId);
  if (hsts !== null) out.push('Strict-Transport-Security', hsts);
  return named === null ? out : without(out, named);
}

/** Trailers that may be passed on, as pairs. */
export function passedTrailers(raw: readonly string[]): [string, string][] {
  const out: [string, string][] = [];
  for (let i = 0; i < raw.length; i += 2) if (!notInTrailers.has((raw[i] ?? '').toLowerCase())) out.push([raw[i] ?? '', raw[i + 1] ?? '']);
  return out;
}

/** Close and keep-alive name no headers; framing and Host are ours whatever Connection says. */
function without(flat: readonly string[], named: readonly string[]): string[] {
  const kept = ['content-length', 'content-type', 'via', 'x-request-id', 'date', 'strict-transport-security'];
  const gone = new Set(named.filter((name) => !kept.includes(name)));
  const out: string[] = [];
  for (let i = 0; i < flat.length; i += 2) if (!gone.has((flat[i] ?? '').toLowerCase())) out.push(flat[i] ?? '', flat[i + 1] ?? '');
  return out;
}

/** The name for the TLS handshake of a Host header; empty for an address. */
export function serverNameOf(hostHeader: string): string {
  const host = hostHeader.replace(/:\d*$/, '');
  return isIP(host.replace(/^\[|\]$/g, '')) > 0 ? '' : host;
}
