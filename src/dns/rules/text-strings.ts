import type { Parsed } from './rrset';

const bytesMax = 4000;
const quoted = /^[ \t]*(?:"(?:[^"\\\n]|\\\d{3}|\\\D)*"[ \t]*)+$/;
const piece = /"((?:[^"\\\n]|\\\d{3}|\\\D)*)"/g;

/**
 * The joined text of a TXT value: text that is wholly quoted strings of a zone file (RFC 1035 §5.1) is unquoted, any other
 * is taken as it stands. At most 4,000 bytes of UTF-8; it is cut at 255 on the wire only (contract dns.md §4.3).
 */
export function canonicalText(text: string): Parsed<string> {
  const value = quoted.test(text) ? unquoteStrings(text) : text;
  if (value === null || value.includes('\0') || !value.isWellFormed()) return { fault: 'must be well-formed Unicode without U+0000, also in escapes' };
  return Buffer.byteLength(value) > bytesMax ? { fault: `must be at most ${bytesMax} bytes` } : { value };
}

/** Text of quoted strings with their escapes resolved, joined; null when its octets are not UTF-8. */
export function unquoteStrings(text: string): string | null {
  const bytes = [...text.matchAll(piece)].flatMap((match) => [...unescapeText(match[1] ?? '')]);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** Octets of zone-file text: `\DDD` is an octet, `\x` the character itself, all else its UTF-8. */
export function unescapeText(text: string): Buffer {
  const pieces = [...text.matchAll(/\\(\d{3})|\\([^])|([^\\]+)/g)].map(([, octet, char, plain]) =>
    octet === undefined ? Buffer.from(char ?? plain ?? '', 'utf8') : Buffer.from([Number(octet) & 0xff]));
  return Buffer.concat(pieces);
}

/** What `canonicalText` reads as this stored text again, whatever it looks like: zone-file form. Quoted strings of at most 255 octets, everything outside printable ASCII as `\DDD`. */
export function quoteStrings(text: string): string {
  const bytes = Buffer.from(text, 'utf8');
  const strings: string[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += 255) {
    strings.push(`"${[...bytes.subarray(at, at + 255)].map(writeOctet).join('')}"`);
  }
  return strings.join(' ');
}

function writeOctet(octet: number): string {
  if (octet === 0x22 || octet === 0x5c) return `\\${String.fromCharCode(octet)}`;
  return octet >= 0x20 && octet < 0x7f ? String.fromCharCode(octet) : `\\${String(octet).padStart(3, '0')}`;
}
