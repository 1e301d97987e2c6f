import ipaddr from 'ipaddr.js';

/** An address as a number of its family; IPv4 inside IPv6 counts as IPv4, zone ids are dropped. */
export type Address = { readonly v4: number } | { readonly v6: bigint };

/** Null for text that is no address. */
export function parseAddress(text: string): Address | null {
  const v4 = parseIpv4(text);
  if (v4 !== null) return { v4 };
  const bare = text.includes('%') ? text.slice(0, text.indexOf('%')) : text;
  if (!ipaddr.IPv6.isValid(bare)) return null;
  const address = ipaddr.IPv6.parse(bare);
  if (address.isIPv4MappedAddress()) return { v4: numberOf(address.toIPv4Address().toByteArray()) };
  return { v6: BigInt(`0x${Buffer.from(address.toByteArray()).toString('hex')}`) };
}

/** Four decimal parts, each 0 to 255; own code because every request asks. */
function parseIpv4(text: string): number | null {
  let [value, part, digits, parts] = [0, 0, 0, 1];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 46 && digits > 0 && parts < 4) {
      value = value * 256 + part;
      [part, digits, parts] = [0, 0, parts + 1];
    } else if (code >= 48 && code <= 57 && digits < 3) {
      part = part * 10 + code - 48;
      digits += 1;
      if (part > 255) return null;
    } else return null;
  }
  return parts === 4 && digits > 0 ? value * 256 + part : null;
}

function numberOf(bytes: readonly number[]): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0);
}

type Ranges<N> = { readonly starts: ArrayLike<N>; readonly ends: ArrayLike<N> };

/** Addresses and networks, asked in logarithmic time. Errors: TypeError naming an entry that is neither. */
export class AddressSet {
  private readonly v4: Ranges<number>;
  private readonly v6: Ranges<bigint>;
  readonly isEmpty: boolean;

  constructor(entries: readonly string[]) {
    const four: [number, number][] = [];
    const six: [bigint, bigint][] = [];
    for (const entry of entries) {
      const [text = '', bitsText] = entry.split('/');
      const address = parseAddress(text);
      if (!address || !(Number(bitsText ?? 0) <= ('v4' in address ? 32 : 128))) throw new TypeError(`${entry} is no address or network`);
      if ('v4' in address) {
        const size = 2 ** (32 - Number(bitsText ?? 32));
        const start = Math.floor(address.v4 / size) * size;
        four.push([start, start + size - 1]);
      } else {
        const size = 1n << BigInt(128 - Number(bitsText ?? 128));
        const start = (address.v6 / size) * size;
        six.push([start, start + size - 1n]);
      }
    }
    const [v4, v6] = [merged(four, (end) => end + 1), merged(six, (end) => end + 1n)];
    this.v4 = { starts: Float64Array.from(v4, ([start]) => start), ends: Float64Array.from(v4, ([, end]) => end) };
    this.v6 = { starts: v6.map(([start]) => start), ends: v6.map(([, end]) => end) };
    this.isEmpty = entries.length === 0;
  }

  has(address: Address | null): boolean {
    if (!address || this.isEmpty) return false;
    return 'v4' in address ? isWithin(this.v4, address.v4) : isWithin(this.v6, address.v6);
  }
}

/** Ranges in order, those that touch as one. */
function merged<N extends number | bigint>(ranges: [N, N][], next: (end: N) => N): [N, N][] {
  const result: [N, N][] = [];
  for (const [start, end] of ranges.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))) {
    const last = result.at(-1);
    if (!last || start > next(last[1])) result.push([start, end]);
    else if (end > last[1]) last[1] = end;
  }
  return result;
}

function isWithin<N extends number | bigint>({ starts, ends }: Ranges<N>, value: N): boolean {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle] ?? value) <= value) low = middle + 1;
    else high = middle;
  }
  const end = ends[low - 1];
  return end !== undefined && value <= end;
}

/** The network that limits and challenges see of a client: /24 of IPv4, /56 of IPv6. The text itself when it is no address. */
export function networkOf(ip: string): string {
  const address = parseAddress(ip);
  if (!address) return ip;
  return 'v4' in address ? `4:${Math.floor(address.v4 / 256).toString(36)}` : `6:${(address.v6 >> 72n).toString(36)}`;
}
