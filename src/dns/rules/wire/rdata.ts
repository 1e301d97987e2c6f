import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from '../addresses';
import type { RrType } from '../rrset';
import { caaText, readCaa } from '../caa';
import { MalformedDns, readName, textName, wireName, type WireName } from './name';
import { typeName } from './codes';

/** Rdata in pieces: octets as they are, names apart so that a writer may compress them. */
export type Rdata = readonly (Buffer | WireName)[];

/** Types whose names may be compressed (RFC 3597 §4). */
export const compressible: ReadonlySet<string> = new Set(['NS', 'CNAME', 'SOA', 'MX', 'PTR']);

/** Rdata of a canonical RRset value (`rrset.ts`). Errors: MalformedDns when the value is not canonical. */
export function encodeRdata(type: RrType, value: string): Rdata {
  switch (type) {
    case 'A': return [octets(parseIpv4(value))];
    case 'AAAA': return [octets(parseIpv6(value))];
    case 'NS':
    case 'CNAME': return [wireName(value)];
    case 'MX': return mx(value);
    case 'TXT': return [characterStrings(Buffer.from(value, 'utf8'))];
    case 'CAA': return [caa(value)];
    case 'SOA': return soa(value);
    case 'DS': return [ds(value)];
  }
}

/** Octets of the rdata without compression: canonical (RFC 4034 §6.2), fit for hashes, sizes and TSIG. */
export function flatRdata(rdata: Rdata): Buffer {
  return Buffer.concat(rdata.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)));
}

/**
 * The canonical value of rdata found in a message; a type without a form here in that of RFC 3597 §5 (`\# 4 0a000001`).
 * TXT that is not UTF-8 is read octet by octet as Latin-1. Errors: MalformedDns.
 */
export function decodeRdata(type: number, message: Buffer, start: number, length: number): string {
  const end = start + length;
  const rdata = message.subarray(start, end);
  const name = (at: number): string => {
    const read = readName(message.subarray(0, end), at);
    if (read.end > end) throw new MalformedDns('rdata is too short');
    return textName(read.name);
  };
  switch (typeName(type)) {
    case 'A': return sized(rdata, 4) && formatIpv4(rdata);
    case 'AAAA': return sized(rdata, 16) && formatIpv6(rdata);
    case 'NS':
    case 'CNAME':
    case 'PTR':
    case 'DNAME': return name(start);
    case 'MX': return `${atLeast(rdata, 3).readUInt16BE(0)} ${name(start + 2)}`;
    case 'SRV': return `${atLeast(rdata, 7).readUInt16BE(0)} ${rdata.readUInt16BE(2)} ${rdata.readUInt16BE(4)} ${name(start + 6)}`;
    case 'TXT': return joinedText(rdata);
    case 'CAA': return decodeCaa(rdata);
    case 'SOA': return decodeSoa(message.subarray(0, end), start);
    case 'DS': return `${atLeast(rdata, 5).readUInt16BE(0)} ${rdata[2]} ${rdata[3]} ${rdata.subarray(4).toString('hex')}`;
    case 'NSEC': return name(start);
    default: return `\\# ${length}${length === 0 ? '' : ` ${rdata.toString('hex')}`}`;
  }
}

function octets(bytes: Uint8Array | null): Buffer {
  if (!bytes) throw new MalformedDns('not an address');
  return Buffer.from(bytes);
}

function mx(value: string): Rdata {
  const [priority = '', host = ''] = value.split(' ');
  return [integer(priority, 2), wireName(host)];
}

/** RFC 1035 §3.3.14: strings of at most 255 octets; an empty text is one empty string. */
function characterStrings(text: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at === 0 || at < text.length; at += 255) {
    const piece = text.subarray(at, at + 255);
    pieces.push(Buffer.from([piece.length]), piece);
  }
  return Buffer.concat(pieces);
}

function joinedText(rdata: Buffer): string {
  const pieces: Buffer[] = [];
  for (let at = 0; at < rdata.length; at += 1 + (rdata[at] ?? 0)) {
    if (at + 1 + (rdata[at] ?? 0) > rdata.length) throw new MalformedDns('a string runs past the end');
    pieces.push(rdata.subarray(at + 1, at + 1 + (rdata[at] ?? 0)));
  }
  const text = Buffer.concat(pieces);
  const decoded = text.toString('utf8');
  return decoded.includes('\ufffd') ? text.toString('latin1') : decoded;
}

function caa(value: string): Buffer {
  const parts = readCaa(value);
  if (!parts) throw new MalformedDns('not a CAA value');
  return Buffer.concat([Buffer.from([parts.flags, parts.tag.length]), Buffer.from(parts.tag), Buffer.from(parts.value)]);
}

function decodeCaa(rdata: Buffer): string {
  const tagLength = atLeast(rdata, 2)[1] ?? 0;
  if (2 + tagLength > rdata.length) throw new MalformedDns('rdata is too short');
  return caaText({ flags: rdata[0] ?? 0, tag: rdata.toString('latin1', 2, 2 + tagLength).toLowerCase(), value: rdata.toString('utf8', 2 + tagLength) });
}

function soa(value: string): Rdata {
  const [mname = '', rname = '', ...numbers] = value.split(' ');
  if (numbers.length !== 5) throw new MalformedDns('not a SOA value');
  return [wireName(mname), wireName(rname), Buffer.concat(numbers.map((number) => integer(number, 4)))];
}

function decodeSoa(message: Buffer, start: number): string {
  const mname = readName(message, start);
  const rname = readName(message, mname.end);
  if (rname.end + 20 !== message.length) throw new MalformedDns('rdata has the wrong length');
  const numbers = [0, 4, 8, 12, 16].map((at) => message.readUInt32BE(rname.end + at));
  return [textName(mname.name), textName(rname.name), ...numbers].join(' ');
}

function ds(value: string): Buffer {
  const [keyTag = '', algorithm = '', digestType = '', digest = ''] = value.split(' ');
  if (!/^(?:[0-9a-f]{2})+$/i.test(digest)) throw new MalformedDns('not a DS value');
  return Buffer.concat([integer(keyTag, 2), integer(algorithm, 1), integer(digestType, 1), Buffer.from(digest, 'hex')]);
}

function integer(text: string, octetCount: 1 | 2 | 4): Buffer {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : -1;
  if (number < 0 || number >= 2 ** (8 * octetCount)) throw new MalformedDns('not a number');
  const buffer = Buffer.alloc(octetCount);
  buffer.writeUIntBE(number, 0, octetCount);
  return buffer;
}

function sized(rdata: Buffer, length: number): true {
  if (rdata.length !== length) throw new MalformedDns('rdata has the wrong length');
  return true;
}

function atLeast(rdata: Buffer, length: number): Buffer {
  if (rdata.length < length) throw new MalformedDns('rdata is too short');
  return rdata;
}
