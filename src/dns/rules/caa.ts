import type { Parsed } from './rrset';

/** RFC 8659 §4.1. */
export type Caa = { flags: number; tag: string; value: string };

const shape = /^(\d{1,3})[ \t]+([a-zA-Z0-9]{1,255})[ \t]+(?:"((?:[^"\\]|\\[^])*)"|([^\s"]+|[^\s"][^"]*[^\s"]))$/s;
const issuing: ReadonlySet<string> = new Set(['issue', 'issuewild', 'issuemail']);
const issuer = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;
const parameter = /^([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)[ \t]*=[ \t]*([!-:<-~]*)$/i;

/** The stored form `0 issue "ca.example"`, of text with or without quotes around the value (contract dns.md §4.3). */
export function canonicalCaa(text: string): Parsed<string> {
  const parts = readCaa(text.trim());
  if (!parts) return { fault: 'must be flags (0 to 255), a tag and a value, like: 0 issue "ca.example"' };
  if (Buffer.byteLength(parts.value) > 255) return { fault: 'the value must be at most 255 bytes' };
  if (/[\p{Cc}]/u.test(parts.value)) return { fault: 'the value must not hold control characters' };
  if (issuing.has(parts.tag)) {
    const value = canonicalIssuer(parts.value);
    return value === null ? { fault: `the value of ${parts.tag} must be a domain or ";", with parameters like: ca.example; account=1` } : { value: caaText({ ...parts, value }) };
  }
  if (parts.tag === 'iodef' && !isReportUrl(parts.value)) return { fault: 'the value of iodef must be a mailto:, http: or https: URL' };
  return { value: caaText(parts) };
}

/** Parts of a CAA text; null when it has another shape. The tag comes out in lower case. */
export function readCaa(text: string): Caa | null {
  const match = shape.exec(text);
  if (!match || Number(match[1]) > 255) return null;
  const value = match[3] === undefined ? (match[4] ?? '') : match[3].replace(/\\([^])/g, '$1');
  return { flags: Number(match[1]), tag: (match[2] ?? '').toLowerCase(), value };
}

/** Text form of CAA parts. */
export function caaText({ flags, tag, value }: Caa): string {
  return `${flags} ${tag} "${value.replace(/["\\]/g, '\\$&')}"`;
}

/** RFC 8659 §4.2: one spelling for values that mean the same. */
function canonicalIssuer(value: string): string | null {
  const [domain = '', ...rest] = value.split(';').map((piece) => piece.trim());
  if (domain !== '' && (!issuer.test(domain) || domain.length > 253)) return null;
  const parameters = rest.length === 1 && rest[0] === '' ? [] : rest;
  const written = parameters.map((text) => parameter.exec(text)).map((match) => (match ? `${match[1]}=${match[2]}` : null));
  if (written.includes(null) || (domain === '' && rest.length === 0)) return null;
  return written.length === 0 ? (domain.toLowerCase() || ';') : `${domain.toLowerCase()}; ${written.join('; ')}`;
}

function isReportUrl(value: string): boolean {
  return /^(?:mailto:[^\s@]+@[^\s@]+|https?:\/\/[^\s/]+.*)$/i.test(value) && URL.canParse(value);
}
