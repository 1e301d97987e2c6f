import { isIPv6 } from 'node:net';

const regName = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*\.?$/;
const form = /^(\[[0-9a-f:.]{2,45}\]|[^[\]:@/?#\s]*)(?::(\d{0,5}))?$/;

export type Authority = { /** Lower case, without port and final dot. */ host: string; /** As given; empty for the scheme's. */ port: string };

/** Host and port of a Host header, an `:authority` or an absolute target (RFC 9110 §7.2, RFC 3986 §3.2); null when it is none. */
export function parseAuthority(text: string): Authority | null {
  const [, name, port = ''] = form.exec(text.toLowerCase()) ?? [];
  if (name === undefined || Number(port) > 65_535) return null;
  if (name.startsWith('[')) return isIPv6(name.slice(1, -1)) ? { host: name, port } : null;
  if (!regName.test(name)) return null;
  return { host: name.endsWith('.') ? name.slice(0, -1) : name, port };
}
