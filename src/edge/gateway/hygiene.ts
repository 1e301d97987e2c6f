import { parseAuthority, type Authority } from './authority';

/** What is wrong with a request, as events name it: `protocol.<fault>`. */
export type ProtocolFault = 'version' | 'method' | 'target' | 'host' | 'transfer_encoding' | 'content_length' | 'header_name' | 'header_count' | 'url_length' | 'upgrade_body';

export type RawRequest = { readonly method: string; readonly url: string; readonly version: string; readonly rawHeaders: readonly string[] };

/** The head of a request that has been looked at once; what only some requests have is empty or null. */
export type Head = {
  readonly method: string;
  readonly authority: Authority | null;
  /** Host header or `:authority` as it came. */
  readonly hostHeader: string;
  /** Without query; `*` for OPTIONS. */
  readonly rawPath: string;
  readonly rawQuery: string;
  /** In order, names in lower case; cookie crumbs of HTTP/2 joined (RFC 9113 §8.2.3). */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly contentLength: number | null;
  readonly isChunked: boolean;
  /** Header names that Connection names: they end here (RFC 9110 §7.6.1). */
  readonly connectionNames: readonly string[];
  readonly upgrade: string;
  readonly forwardedFor: string;
  readonly forwardedProto: string;
  readonly cdnLoop: string;
  readonly accept: string;
};

const headersMax = 100;
const urlMax = 8_192;
/** Written with `_` they reach applications as the same variable (CGI): HTTP_X_FORWARDED_FOR, CONTENT_LENGTH. */
const twins: ReadonlySet<string> = new Set([
  'content-length', 'transfer-encoding', 'x-real-ip', 'x-request-id', 'cdn-loop', 'keep-alive', 'proxy-connection',
]);

type Seen = { hosts: string[]; encodings: string[]; lengths: string[]; connection: string; cookies: string[]; fault: ProtocolFault | null } & Record<'upgrade' | 'forwardedFor' | 'forwardedProto' | 'cdnLoop' | 'accept', string>;

/**
 * Reads a head and names what Node's strict parser lets pass although two programs may understand it differently (contract
 * gateway.md §4.3, stage 1). With a fault the rest is as far as it could be read.
 */
export function readHead(raw: RawRequest): { head: Head; fault: ProtocolFault | null } {
  const seen: Seen = { hosts: [], encodings: [], lengths: [], connection: '', cookies: [], fault: null, upgrade: '', forwardedFor: '', forwardedProto: '', cdnLoop: '', accept: '' };
  const headers = readHeaders(raw.rawHeaders, seen, raw.version === '2');
  const target = readTarget(raw);
  const [hostHeader = ''] = seen.hosts;
  const authority = hostHeader === '' ? null : parseAuthority(hostHeader);
  const fault = versionFault(raw) ?? countFault(raw, headers.length) ?? hostFault(seen, authority, target, raw.version) ?? targetFault(raw, target) ?? framingFault(seen, raw.version) ?? seen.fault;
  const { lengths: [length], encodings, connection, upgrade, forwardedFor, forwardedProto, cdnLoop, accept } = seen;
  return {
    fault,
    head: {
      method: raw.method, authority: authority ?? (target.authority === null ? null : parseAuthority(target.authority)), hostHeader, rawPath: target.path, rawQuery: target.query, headers,
      contentLength: length === undefined ? null : Number(length), isChunked: encodings.length > 0,
      connectionNames: connection === '' ? [] : connection.toLowerCase().split(',').map((name) => name.trim()).filter(Boolean),
      upgrade, forwardedFor, forwardedProto, cdnLoop, accept,
    },
  };
}

function readHeaders(raw: readonly string[], seen: Seen, isHttp2: boolean): [string, string][] {
  const headers: [string, string][] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] ?? '').toLowerCase();
    const value = raw[i + 1] ?? '';
    if (name.startsWith(':')) {
      if (name === ':authority') seen.hosts.unshift(value);
      if (name === ':scheme' && value !== 'https' && value !== 'http') seen.fault = 'target';
      continue;
    }
    note(seen, name, value);
    if (isHttp2 && name === 'cookie') seen.cookies.push(value);
    else headers.push([name, value]);
  }
  if (seen.cookies.length > 0) headers.push(['cookie', seen.cookies.join('; ')]);
  return headers;
}

function note(seen: Seen, name: string, value: string): void {
  switch (name) {
    case 'host': seen.hosts.push(value); return;
    case 'transfer-encoding': seen.encodings.push(value); return;
    case 'content-length': seen.lengths.push(value); return;
    case 'connection': seen.connection = joined(seen.connection, value); return;
    case 'x-forwarded-for': seen.forwardedFor = joined(seen.forwardedFor, value); return;
    case 'x-forwarded-proto': seen.forwardedProto = value; return;
    case 'cdn-loop': seen.cdnLoop = joined(seen.cdnLoop, value); return;
    case 'accept': seen.accept = joined(seen.accept, value); return;
    case 'upgrade': seen.upgrade = value; return;
    default: if (name.includes('_') && isTwin(name.replaceAll('_', '-'))) seen.fault = 'header_name';
  }
}

function isTwin(name: string): boolean {
  return twins.has(name) || name.startsWith('x-forwarded-');
}

function joined(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`;
}

type Target = { path: string; query: string; authority: string | null };

/** Origin form, absolute form or `*` (RFC 9112 §3.2). */
function readTarget({ url }: RawRequest): Target {
  const absolute = url.startsWith('/') ? null : /^https?:\/\/([^/?#]*)(.*)$/is.exec(url);
  const rest = absolute ? absolute[2] ?? '' : url;
  const at = rest.indexOf('?');
  const path = at < 0 ? rest : rest.slice(0, at);
  return { path: path === '' ? '/' : path, query: at < 0 ? '' : rest.slice(at + 1), authority: absolute ? absolute[1] ?? '' : null };
}

function versionFault({ version, method }: RawRequest): ProtocolFault | null {
  if (version !== '1.1' && version !== '2' && version !== '1.0') return 'version';
  return method === 'CONNECT' || !/^[A-Z][A-Z0-9_-]*$/.test(method) ? 'method' : null;
}

function countFault({ url }: RawRequest, count: number): ProtocolFault | null {
  if (url.length > urlMax) return 'url_length';
  return count > headersMax ? 'header_count' : null;
}

/** HTTP/2 may carry both `:authority` and `host`: then they are equal (RFC 9113 §8.3.1). HTTP/1.0 may have no Host. */
function hostFault({ hosts }: Seen, authority: Authority | null, target: Target, version: string): ProtocolFault | null {
  const [first, second] = hosts;
  if (first === undefined) return version === '1.0' ? null : 'host';
  if (!authority || hosts.length > 2 || (second !== undefined && (version !== '2' || second !== first))) return 'host';
  if (target.authority === null) return null;
  const named = parseAuthority(target.authority);
  return named?.host === authority.host && named.port === authority.port ? null : 'host';
}

function targetFault({ url, method }: RawRequest, { path }: Target): ProtocolFault | null {
  if (/[#\u0000-\u0020\u007f]/.test(url)) return 'target';
  if (path === '*') return method === 'OPTIONS' ? null : 'target';
  return path.startsWith('/') ? null : 'target';
}

function framingFault({ encodings, lengths }: Seen, version: string): ProtocolFault | null {
  if (encodings.length > 0 && (version !== '1.1' || encodings.length > 1 || encodings[0] !== 'chunked')) return 'transfer_encoding';
  if (lengths.length > 1 || (lengths.length > 0 && encodings.length > 0) || (lengths[0] !== undefined && !/^\d{1,15}$/.test(lengths[0]))) return 'content_length';
  return null;
}
