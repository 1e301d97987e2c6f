import { isIPv4, isIPv6 } from 'node:net';

/** Four octets of a dotted quad without leading zeros; null for anything else. */
export function parseIpv4(text: string): Uint8Array | null {
  return isIPv4(text) ? Uint8Array.from(text.split('.'), Number) : null;
}

export function formatIpv4(octets: Uint8Array): string {
  return octets.join('.');
}

/** Sixteen octets of an IPv6 address (RFC 4291 §2.2), without brackets or zone; null for anything else. */
export function parseIpv6(text: string): Uint8Array | null {
  if (!isIPv6(text) || text.includes('%')) return null;
  const [head = '', tail] = withoutDots(text).split('::');
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const words = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back];
  return Uint8Array.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}

/** RFC 5952 §4: lower case, no leading zeros, the first longest run of two or more zero groups as `::`; always in hex. */
export function formatIpv6(octets: Uint8Array): string {
  const words = Array.from({ length: 8 }, (_, i) => ((octets[2 * i] ?? 0) << 8) | (octets[2 * i + 1] ?? 0));
  let run = { start: -1, length: 1 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && words[start + length] === 0) length++;
    if (length > run.length) run = { start, length };
  }
  const hex = words.map((word) => word.toString(16));
  if (run.start < 0) return hex.join(':');
  return `${hex.slice(0, run.start).join(':')}::${hex.slice(run.start + run.length).join(':')}`;
}

/** Whether a canonical IPv6 address holds an IPv4 one (RFC 4291 §2.5.5.2). */
export function isIpv4Mapped(text: string): boolean {
  const octets = parseIpv6(text);
  return octets !== null && octets.subarray(0, 10).every((octet) => octet === 0) && octets[10] === 0xff && octets[11] === 0xff;
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => parseInt(group, 16));
}

/** The dotted form of the last 32 bits as two groups. */
function withoutDots(text: string): string {
  const match = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  if (!match) return text;
  const [, head = '', ...quad] = match;
  const [a = 0, b = 0, c = 0, d = 0] = quad.map(Number);
  return `${head}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}
