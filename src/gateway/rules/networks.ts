import ipaddr from 'ipaddr.js';

/** An address or network as it is kept: IPv6 as RFC 5952 writes it, IPv4 inside IPv6 as IPv4, host bits cut off. */
export type CanonicalNetwork = {
  readonly address: string;
  readonly bits: number;
  /** Whether the text named a network and not one address. */
  readonly isNetwork: boolean;
  /** Whether bits beyond the prefix were set. */
  readonly masked: boolean;
};

/** Null for text that is neither an address nor a CIDR network. Leading zeros and zone ids are refused. */
export function parseNetwork(text: string): CanonicalNetwork | null {
  const [addressText = '', bitsText, ...rest] = text.split('/');
  if (rest.length > 0 || addressText.includes('%') || (bitsText !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(bitsText))) return null;
  if (!ipaddr.IPv4.isValidFourPartDecimal(addressText) && !ipaddr.IPv6.isValid(addressText)) return null;
  const given = ipaddr.parse(addressText);
  const mapped = given instanceof ipaddr.IPv6 && given.isIPv4MappedAddress();
  const address = mapped ? given.toIPv4Address() : given;
  const width = address.kind() === 'ipv4' ? 32 : 128;
  const bits = bitsText === undefined ? width : Number(bitsText) - (mapped ? 96 : 0);
  if (bits < 0 || bits > width) return null;
  const bytes = address.toByteArray();
  const cut = bytes.map((byte, index) => byte & maskOf(bits - 8 * index));
  return { address: format(cut), bits, isNetwork: bitsText !== undefined, masked: cut.some((byte, index) => byte !== bytes[index]) };
}

/** Always with its prefix: how entries of IP lists are kept. */
export function withPrefix({ address, bits }: CanonicalNetwork): string {
  return `${address}/${bits}`;
}

/** As it was meant: one address stays an address. How values of rules are kept. */
export function asGiven(network: CanonicalNetwork): string {
  return network.isNetwork ? withPrefix(network) : network.address;
}

/** Whether a network holds the whole of another. Texts that are no network hold nothing. */
export function containsNetwork(outer: string, inner: string): boolean {
  const [a, b] = [parseNetwork(outer), parseNetwork(inner)];
  if (!a || !b || a.bits > b.bits) return false;
  const [base, address] = [ipaddr.parse(a.address), ipaddr.parse(b.address)];
  return base.kind() === address.kind() && address.match(base, a.bits);
}

function maskOf(bitsLeft: number): number {
  return bitsLeft >= 8 ? 0xff : bitsLeft <= 0 ? 0 : (0xff << (8 - bitsLeft)) & 0xff;
}

function format(bytes: number[]): string {
  const address = ipaddr.fromByteArray(bytes);
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}
