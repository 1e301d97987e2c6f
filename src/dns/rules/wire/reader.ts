import { flags as bits, headerLength, typeName, typeNumbers } from './codes';
import { MalformedDns, readName, textName, type WireName } from './name';
import { decodeRdata } from './rdata';

/** A record as it stands in a message; its rdata is read only by who wants it. */
export type WireRecord = { name: WireName; type: number; class: number; ttl: number; rdataAt: number; rdataLength: number; at: number };
export type WireQuestion = { name: WireName; type: number; class: number; at: number; end: number };
export type WireEdns = { udpSize: number; extendedRcode: number; version: number; dnssecOk: boolean; options: { code: number; octets: Buffer }[] };

export type WireMessage = {
  octets: Buffer;
  id: number;
  flags: number;
  /** With the upper bits of EDNS. */
  rcode: number;
  questions: WireQuestion[];
  answer: WireRecord[];
  authority: WireRecord[];
  /** Without OPT and TSIG. */
  additional: WireRecord[];
  edns: WireEdns | null;
  /** The last record when it is a TSIG. */
  tsig: WireRecord | null;
};

/**
 * A whole message, every octet accounted for: no record cut short, at most one OPT and it at the root, a TSIG only last
 * (RFC 1035 §4, 6891 §6.1.1, 8945 §5.1). Errors: MalformedDns.
 */
export function readMessage(octets: Buffer): WireMessage {
  if (octets.length < headerLength) throw new MalformedDns('a message has a header of 12 octets');
  const flags = octets.readUInt16BE(2);
  let at = headerLength;
  const questions = readList(octets.readUInt16BE(4), () => {
    const question = readQuestion(octets, at);
    at = question.end;
    return question;
  });
  const next = (): WireRecord => {
    const record = readRecord(octets, at);
    at = record.rdataAt + record.rdataLength;
    return record;
  };
  const answer = readList(octets.readUInt16BE(6), next);
  const authority = readList(octets.readUInt16BE(8), next);
  const all = readList(octets.readUInt16BE(10), next);
  if (at !== octets.length) throw new MalformedDns('octets are left over');
  return { octets, id: octets.readUInt16BE(0), flags, questions, answer, authority, ...readPseudo(octets, flags, all) };
}

/** Octets of the question alone, for a request that breaks further on; null when there is none that reads. */
export function readOnlyQuestion(octets: Buffer): WireQuestion | null {
  try {
    return octets.readUInt16BE(4) === 1 ? readQuestion(octets, headerLength) : null;
  } catch {
    return null;
  }
}

/** The record in text. Errors: MalformedDns when its rdata is. */
export function recordText(message: WireMessage, record: WireRecord): { name: string; type: string; ttl: number; value: string } {
  const value = decodeRdata(record.type, message.octets, record.rdataAt, record.rdataLength);
  return { name: textName(record.name), type: typeName(record.type), ttl: Math.min(record.ttl, 0x7fffffff), value };
}

function readQuestion(octets: Buffer, at: number): WireQuestion {
  const { name, end } = readName(octets, at);
  if (end + 4 > octets.length) throw new MalformedDns('a question runs past the end');
  return { name, type: octets.readUInt16BE(end), class: octets.readUInt16BE(end + 2), at, end: end + 4 };
}

function readRecord(octets: Buffer, at: number): WireRecord {
  const { name, end } = readName(octets, at);
  if (end + 10 > octets.length) throw new MalformedDns('a record runs past the end');
  const rdataLength = octets.readUInt16BE(end + 8);
  if (end + 10 + rdataLength > octets.length) throw new MalformedDns('rdata runs past the end');
  return { name, type: octets.readUInt16BE(end), class: octets.readUInt16BE(end + 2), ttl: octets.readUInt32BE(end + 4), rdataAt: end + 10, rdataLength, at };
}

/** Counts are checked as records are read: a record has 11 octets at least, so a lying count ends soon. */
function readList<T>(count: number, next: () => T): T[] {
  const items: T[] = [];
  while (items.length < count) items.push(next());
  return items;
}

function readPseudo(octets: Buffer, flags: number, all: readonly WireRecord[]): Pick<WireMessage, 'additional' | 'edns' | 'tsig' | 'rcode'> {
  const opts = all.filter(({ type }) => type === typeNumbers.OPT);
  const tsigAt = all.findIndex(({ type }) => type === typeNumbers.TSIG);
  if (opts.length > 1 || opts.some(({ name }) => name !== '\0')) throw new MalformedDns('a message has at most one OPT, at the root');
  if (tsigAt >= 0 && tsigAt !== all.length - 1) throw new MalformedDns('a TSIG stands last');
  const edns = opts[0] ? readEdns(octets, opts[0]) : null;
  return {
    additional: all.filter(({ type }) => type !== typeNumbers.OPT && type !== typeNumbers.TSIG),
    edns,
    tsig: all[tsigAt] ?? null,
    rcode: ((edns?.extendedRcode ?? 0) << 4) | (flags & bits.rcode),
  };
}

function readEdns(octets: Buffer, opt: WireRecord): WireEdns {
  const options: WireEdns['options'] = [];
  const end = opt.rdataAt + opt.rdataLength;
  for (let at = opt.rdataAt; at < end; ) {
    const length = at + 4 <= end ? octets.readUInt16BE(at + 2) : end;
    if (at + 4 + length > end) throw new MalformedDns('an EDNS option runs past the end');
    options.push({ code: octets.readUInt16BE(at), octets: octets.subarray(at + 4, at + 4 + length) });
    at += 4 + length;
  }
  return { udpSize: opt.class, extendedRcode: opt.ttl >>> 24, version: (opt.ttl >>> 16) & 0xff, dnssecOk: (opt.ttl & 0x8000) !== 0, options };
}
