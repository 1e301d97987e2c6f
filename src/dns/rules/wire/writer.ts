import { classIn, flags as bits, headerLength, typeNumbers } from './codes';
import { parentOf, root, type WireName } from './name';
import { compressible, type Rdata } from './rdata';

/** Sections of records, in the order of the message. */
export type Section = 'answer' | 'authority' | 'additional';
const countOffset = { answer: 6, authority: 8, additional: 10 } as const;

/** EDNS as we send it (RFC 6891): our size, the upper bits of the rcode, its flags, options as (code, octets). */
export type Edns = { udpSize: number; extendedRcode: number; flags: number; options: readonly { code: number; octets: Buffer }[] };

const longest = 65_535;
const pointable = 0x4000;
const scratch = Buffer.allocUnsafe(longest + 1024);

/** Thrown when a message would pass 64 KiB. */
export class MessageTooLong extends Error {
  override readonly name = 'MessageTooLong';
}

/**
 * Writes one message with compressed names into a buffer all writers share: write it in one go, then `finish`. Names are
 * written as they stand in the question where they repeat it, so a client finds its own spelling again.
 */
export class MessageWriter {
  private at = headerLength;
  private readonly offsets = new Map<WireName, number>();

  constructor(id: number, flags: number) {
    scratch.fill(0, 0, headerLength);
    scratch.writeUInt16BE(id, 0);
    scratch.writeUInt16BE(flags, 2);
  }

  get length(): number {
    return this.at;
  }

  /** The question as the client spelled it: the octets from its name to its class. */
  echoQuestion(octets: Buffer, name: WireName): void {
    this.noteName(name);
    this.at += octets.copy(scratch, this.at);
    scratch.writeUInt16BE(1, 4);
  }

  writeQuestion(name: WireName, type: number, spelled: WireName = name): void {
    this.echoQuestion(Buffer.concat([Buffer.from(spelled, 'latin1'), Buffer.from([type >> 8, type & 0xff, 0, classIn])]), name);
  }

  /** One record of class IN. Errors: MessageTooLong; what was written before it stands. */
  writeRecord(section: Section, record: { owner: WireName; type: number; typeName: string; ttl: number; rdata: Rdata }): void {
    const start = this.at;
    this.writeName(record.owner, true);
    this.at = scratch.writeUInt16BE(record.type, this.at);
    this.at = scratch.writeUInt16BE(classIn, this.at);
    this.at = scratch.writeUInt32BE(record.ttl, this.at);
    const lengthAt = this.at;
    this.at += 2;
    for (const piece of record.rdata) {
      if (this.at + piece.length > longest) this.giveUp(start);
      if (typeof piece === 'string') this.writeName(piece, compressible.has(record.typeName));
      else this.at += piece.copy(scratch, this.at);
    }
    if (this.at > longest) this.giveUp(start);
    scratch.writeUInt16BE(this.at - lengthAt - 2, lengthAt);
    this.count(section);
  }

  writeEdns({ udpSize, extendedRcode, flags, options }: Edns): void {
    this.at = scratch.writeUInt8(0, this.at);
    this.at = scratch.writeUInt16BE(typeNumbers.OPT, this.at);
    this.at = scratch.writeUInt16BE(udpSize, this.at);
    this.at = scratch.writeUInt32BE(((extendedRcode << 24) | flags) >>> 0, this.at);
    this.at = scratch.writeUInt16BE(options.reduce((sum, { octets }) => sum + 4 + octets.length, 0), this.at);
    for (const { code, octets } of options) {
      this.at = scratch.writeUInt16BE(code, this.at);
      this.at = scratch.writeUInt16BE(octets.length, this.at);
      this.at += octets.copy(scratch, this.at);
    }
    this.count('additional');
  }

  /** The message, in memory of its own. */
  finish(): Buffer {
    return Buffer.from(scratch.subarray(0, this.at));
  }

  private writeName(name: WireName, compress: boolean): void {
    let rest = name;
    for (; rest !== root; rest = parentOf(rest)) {
      const known = compress ? this.offsets.get(rest) : undefined;
      if (known !== undefined) {
        this.at = scratch.writeUInt16BE(0xc000 | known, this.at);
        return;
      }
      if (this.at < pointable && !this.offsets.has(rest)) this.offsets.set(rest, this.at);
      this.at += scratch.write(rest.slice(0, 1 + rest.charCodeAt(0)), this.at, 'latin1');
    }
    scratch[this.at++] = 0;
  }

  private noteName(name: WireName): void {
    let at = this.at;
    for (let rest = name; rest !== root; rest = parentOf(rest)) {
      this.offsets.set(rest, at);
      at += 1 + rest.charCodeAt(0);
    }
  }

  private count(section: Section): void {
    const at = countOffset[section];
    scratch.writeUInt16BE(scratch.readUInt16BE(at) + 1, at);
  }

  private giveUp(start: number): never {
    this.at = start;
    for (const [name, offset] of this.offsets) if (offset >= start) this.offsets.delete(name);
    throw new MessageTooLong('a message has at most 65535 octets');
  }
}

/** The header's flags of an answer to a request with these flags. */
export function answerFlags(requestFlags: number, rcode: number, authoritative: boolean): number {
  return bits.qr | (requestFlags & (bits.opcode | bits.rd)) | (authoritative ? bits.aa : 0) | (rcode & bits.rcode);
}
