import { createHmac, timingSafeEqual } from 'node:crypto';
import { classAny, rcodes, typeNumbers } from './codes';
import { MalformedDns, readName, wireName, type WireName } from './name';
import type { WireMessage, WireRecord } from './reader';

/** RFC 8945 with hmac-sha256, the one algorithm spoken. */
export const algorithmName: WireName = wireName('hmac-sha256');
const fudgeSeconds = 300;
const macLength = 32;
const shortestMac = 16;

export type TsigKey = { name: WireName; secret: Buffer };

/** What a signed answer needs of the request it answers. */
export type TsigContext = { key: TsigKey; mac: Buffer; nowSeconds: number };

export type TsigCheck =
  | { ok: true; context: TsigContext }
  /** `signed`: the answer that tells the error is signed with it (BADTIME, RFC 8945 §5.2.3); else it is unsigned. */
  | { ok: false; error: number; keyName: WireName; algorithm: WireName; timeSigned: number; signed: TsigContext | null };

export type TsigSource = { keyOf: (name: WireName) => TsigKey | undefined; nowSeconds: number; priorMac?: Buffer; continues?: boolean };

type Fields = { algorithm: WireName; timeSigned: number; fudge: number; mac: Buffer; originalId: number; error: number; other: Buffer };

/**
 * Whether a message that carries a TSIG is signed by one of our keys, now. `priorMac`: that of the request this message
 * answers, or of the message before when this one `continues` a transfer (RFC 8945 §5.3.1). Errors: MalformedDns when the TSIG itself is broken.
 */
export function checkTsig(message: WireMessage, record: WireRecord, from: TsigSource): TsigCheck {
  const fields = readTsig(message.octets, record);
  const key = from.keyOf(record.name);
  const failed = (error: number, signed: TsigContext | null = null): TsigCheck => ({ ok: false, error, keyName: record.name, algorithm: fields.algorithm, timeSigned: fields.timeSigned, signed });
  if (!key || fields.algorithm !== algorithmName) return failed(rcodes.BADKEY);
  if (fields.mac.length > macLength) throw new MalformedDns('a MAC is too long');
  const bare = withoutTsig(message.octets, record, fields.originalId);
  const expected = macOf(key, [...prefixed(from.priorMac), bare, from.continues ? timers(fields) : variables(key.name, fields)]);
  if (!isSameMac(fields.mac, expected)) return failed(rcodes.BADSIG);
  const context = { key, mac: fields.mac, nowSeconds: from.nowSeconds };
  if (Math.abs(from.nowSeconds - fields.timeSigned) > Math.min(fields.fudge, fudgeSeconds)) return failed(rcodes.BADTIME, context);
  return fields.mac.length < shortestMac ? failed(rcodes.BADTRUNC) : { ok: true, context };
}

/**
 * The message with a TSIG at its end and the MAC for the next one. `prior`: MAC of the request, or of the message before
 * when this one continues a transfer (`continues`: timers only, RFC 8945 §5.3.1).
 */
export function signMessage(octets: Buffer, context: TsigContext, prior: Buffer | undefined, how: { continues?: boolean; error?: number } = {}): { octets: Buffer; mac: Buffer } {
  const other = how.error === rcodes.BADTIME ? uint48(context.nowSeconds) : Buffer.alloc(0);
  const fields = { algorithm: algorithmName, timeSigned: context.nowSeconds, fudge: fudgeSeconds, error: how.error ?? 0, other };
  const signed = how.continues ? timers(fields) : variables(context.key.name, fields);
  const mac = macOf(context.key, [...prefixed(prior), octets, signed]);
  return { octets: appendTsig(octets, context.key.name, { ...fields, mac, originalId: octets.readUInt16BE(0) }), mac };
}

/** The message with a TSIG that only tells an error: no MAC (BADKEY, BADSIG). */
export function tellTsigError(octets: Buffer, check: { keyName: WireName; algorithm: WireName; timeSigned: number; error: number }): Buffer {
  const { algorithm, timeSigned, error } = check;
  return appendTsig(octets, check.keyName, { algorithm, timeSigned, fudge: fudgeSeconds, mac: Buffer.alloc(0), originalId: octets.readUInt16BE(0), error, other: Buffer.alloc(0) });
}

function readTsig(octets: Buffer, record: WireRecord): Fields {
  const end = record.rdataAt + record.rdataLength;
  const { name: algorithm, end: at } = readName(octets.subarray(0, end), record.rdataAt);
  const need = (length: number): void => {
    if (length > end || record.class !== classAny) throw new MalformedDns('a TSIG has the wrong length or class');
  };
  need(at + 16);
  const macEnd = at + 10 + octets.readUInt16BE(at + 8);
  need(macEnd + 6);
  const otherLength = octets.readUInt16BE(macEnd + 4);
  if (macEnd + 6 + otherLength !== end) throw new MalformedDns('a TSIG has the wrong length');
  return {
    algorithm, timeSigned: octets.readUIntBE(at, 6), fudge: octets.readUInt16BE(at + 6), mac: octets.subarray(at + 10, macEnd),
    originalId: octets.readUInt16BE(macEnd), error: octets.readUInt16BE(macEnd + 2), other: octets.subarray(macEnd + 6, end),
  };
}

/** What was signed: the message as it was before its TSIG, under its first id. */
function withoutTsig(octets: Buffer, record: WireRecord, originalId: number): Buffer {
  const bare = Buffer.from(octets.subarray(0, record.at));
  bare.writeUInt16BE(originalId, 0);
  bare.writeUInt16BE(bare.readUInt16BE(10) - 1, 10);
  return bare;
}

function appendTsig(octets: Buffer, keyName: WireName, fields: Fields): Buffer {
  const { mac, other } = fields;
  const rdata = Buffer.concat([
    Buffer.from(fields.algorithm, 'latin1'), timers(fields), uint16(mac.length), mac, uint16(fields.originalId), uint16(fields.error), uint16(other.length), other,
  ]);
  const fixed = Buffer.concat([uint16(typeNumbers.TSIG), uint16(classAny), Buffer.alloc(4), uint16(rdata.length)]);
  const signed = Buffer.concat([octets, Buffer.from(keyName, 'latin1'), fixed, rdata]);
  signed.writeUInt16BE(signed.readUInt16BE(10) + 1, 10);
  return signed;
}

/** RFC 8945 §4.3.3. */
function variables(keyName: WireName, fields: Pick<Fields, 'algorithm' | 'timeSigned' | 'fudge' | 'error' | 'other'>): Buffer {
  return Buffer.concat([
    Buffer.from(keyName, 'latin1'), uint16(classAny), Buffer.alloc(4), Buffer.from(fields.algorithm, 'latin1'), timers(fields),
    uint16(fields.error), uint16(fields.other.length), fields.other,
  ]);
}

function timers(fields: Pick<Fields, 'timeSigned' | 'fudge'>): Buffer {
  return Buffer.concat([uint48(fields.timeSigned), uint16(fields.fudge)]);
}

function prefixed(mac: Buffer | undefined): Buffer[] {
  return mac ? [uint16(mac.length), mac] : [];
}

function macOf(key: TsigKey, pieces: readonly Buffer[]): Buffer {
  return createHmac('sha256', key.secret).update(Buffer.concat(pieces)).digest();
}

/** A shorter MAC is compared as far as it goes; whether it is long enough is asked afterwards (RFC 8945 §5.2.2.1). */
function isSameMac(given: Buffer, expected: Buffer): boolean {
  return given.length >= 10 && timingSafeEqual(given, expected.subarray(0, given.length));
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

function uint48(value: number): Buffer {
  const buffer = Buffer.alloc(6);
  buffer.writeUIntBE(value, 0, 6);
  return buffer;
}
