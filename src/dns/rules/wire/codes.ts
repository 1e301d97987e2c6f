/** Numbers of RFC 1035, 6891, 8945 and the IANA registry that we speak. */
export const typeNumbers = {
  A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, HINFO: 13, MX: 15, TXT: 16, AAAA: 28, SRV: 33, NAPTR: 35, DNAME: 39, OPT: 41, DS: 43, RRSIG: 46, NSEC: 47,
  DNSKEY: 48, TLSA: 52, SVCB: 64, HTTPS: 65, TSIG: 250, IXFR: 251, AXFR: 252, ANY: 255, CAA: 257,
} as const;
export type TypeName = keyof typeof typeNumbers;

export const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, NOTAUTH: 9, BADVERS: 16, BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const;
export const classIn = 1;
export const classAny = 255;
export const opcodes = { query: 0, notify: 4 } as const;

/** Bits of the header's second word (RFC 1035 §4.1.1). */
export const flags = { qr: 0x8000, opcode: 0x7800, aa: 0x0400, tc: 0x0200, rd: 0x0100, ra: 0x0080, rcode: 0x000f } as const;
export const headerLength = 12;

const names = new Map<number, string>(Object.entries(typeNumbers).map(([name, number]) => [number, name]));

/** `A`, `MX`; `TYPE731` for a number without a name here (RFC 3597 §5). */
export function typeName(number: number): string {
  return names.get(number) ?? `TYPE${number}`;
}
