import { classIn, flags as bits, headerLength, typeNumbers } from '../../dns/rules/wire/codes';

/**
 * The one shape nearly all requests have: a plain query of class IN with one question, and at most an OPT of version 0
 * after it. Null for every other: those take the long way, which also finds what is wrong with them.
 */
export type QuickRequest = {
  /** Octets of the name as they stand, one character each, ASCII lower case. */
  name: string;
  type: number;
  questionEnd: number;
  edns: { udpSize: number; dnssecOk: boolean } | null;
};

const queryOnly = bits.qr | bits.opcode | bits.tc;

export function readQuickly(octets: Buffer): QuickRequest | null {
  if (octets.length < headerLength + 5) return null;
  const counts = octets.readUInt32BE(4);
  const extra = octets.readUInt32BE(8);
  if ((octets.readUInt16BE(2) & queryOnly) !== 0 || counts !== 0x00010000 || extra > 1) return null;
  const nameEnd = plainNameEnd(octets);
  if (nameEnd < 0 || nameEnd + 4 > octets.length || octets.readUInt16BE(nameEnd + 2) !== classIn) return null;
  const questionEnd = nameEnd + 4;
  const edns = extra === 1 ? plainOpt(octets, questionEnd) : null;
  if (extra === 1 ? edns === null : octets.length !== questionEnd) return null;
  return { name: octets.toString('latin1', headerLength, nameEnd).toLowerCase(), type: octets.readUInt16BE(nameEnd), questionEnd, edns };
}

/** End of an uncompressed ASCII name of legal length; -1 for any other. */
function plainNameEnd(octets: Buffer): number {
  let at = headerLength;
  let seen = 0;
  for (;;) {
    const length = octets[at];
    if (length === undefined || length > 63 || at - headerLength > 254) return -1;
    if (length === 0) return (seen & 0x80) === 0 ? at + 1 : -1;
    const end = at + 1 + length;
    if (end >= octets.length) return -1;
    for (let i = at + 1; i < end; i++) seen |= octets[i] ?? 0;
    at = end;
  }
}

/** An OPT of version 0 that ends the message. */
function plainOpt(octets: Buffer, at: number): QuickRequest['edns'] {
  if (at + 11 > octets.length || octets[at] !== 0 || octets.readUInt16BE(at + 1) !== typeNumbers.OPT || octets[at + 6] !== 0) return null;
  const end = at + 11 + octets.readUInt16BE(at + 9);
  if (end !== octets.length) return null;
  let option = at + 11;
  while (option + 4 <= end) option += 4 + octets.readUInt16BE(option + 2);
  return option === end ? { udpSize: octets.readUInt16BE(at + 3), dnssecOk: ((octets[at + 7] ?? 0) & 0x80) !== 0 } : null;
}
