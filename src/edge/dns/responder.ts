import { answerFlags, MessageTooLong, MessageWriter } from '../../dns/rules/wire/writer';
import { classIn, flags as bits, headerLength, opcodes, rcodes, typeNumbers } from '../../dns/rules/wire/codes';
import { MalformedDns, type WireName } from '../../dns/rules/wire/name';
import { readMessage, readOnlyQuestion, type WireMessage, type WireQuestion } from '../../dns/rules/wire/reader';
import { checkTsig, signMessage, tellTsigError, type TsigContext, type TsigKey } from '../../dns/rules/wire/tsig';
import { AnswerCache } from './answer-cache';
import { lookUp, type Answer, type AnswerRecord } from './lookup';
import { readQuickly, type QuickRequest } from './quick-request';
import type { ZoneStore } from './zone-store';

export type ResponderOptions = {
  keyOf: (name: WireName) => TsigKey | undefined;
  nowSeconds: () => number;
  /** Told of a mistake of ours that a request has hit; the client gets SERVFAIL. */
  onFault: (error: unknown) => void;
};

/** An answer ready to be sent, and what rate limiting counts it as. */
export type Response = { octets: Buffer; limitKey: string };

/** A request for a whole zone; who may have it is decided by who sends it. */
export type TransferRequest = { message: WireMessage; question: WireQuestion; signed: TsigContext | null };

const udpSizeMax = 1232;
const udpSizePlain = 512;
const tcpSizeMax = 65_535;
const dnssecOkBit = 0x8000;
/** RFC 8914 §4.21: not authoritative. */
const notAuthoritative = { code: 15, octets: Buffer.from([0, 20]) };

type Head = { id: number; flags: number; question: WireQuestion | null; source: Buffer; edns: QuickRequest['edns'] };

/** Turns requests into answers; holds the cache, no sockets. */
export class Responder {
  private readonly cache = new AnswerCache();

  constructor(private readonly store: ZoneStore, private readonly options: ResponderOptions) {}

  /** The answer to a request; null for what is dropped: too short, or an answer itself. Never throws: one request ends no server. */
  respond(octets: Buffer, transport: 'udp' | 'tcp'): Response | null {
    if (octets.length < headerLength || ((octets[2] ?? 0) & 0x80) !== 0) return null;
    try {
      return this.respondTo(octets, transport);
    } catch (error) {
      this.options.onFault(error);
      return fault({ id: octets.readUInt16BE(0), flags: octets.readUInt16BE(2), question: null, source: octets, edns: null }, rcodes.SERVFAIL);
    }
  }

  /** The request for a zone's transfer in these octets; null when they are anything else or their TSIG fails. */
  transferOf(octets: Buffer): TransferRequest | null {
    if (octets.length < headerLength || (octets.readUInt16BE(2) & (bits.qr | bits.opcode)) !== 0) return null;
    const message = parsed(octets);
    const question = message?.questions[0];
    if (!message || message.questions.length !== 1 || !question || question.class !== classIn || (message.edns?.version ?? 0) > 0) return null;
    if (question.type !== typeNumbers.AXFR && question.type !== typeNumbers.IXFR) return null;
    try {
      const check = this.checkSignature(message);
      return check === null ? { message, question, signed: null } : check.ok ? { message, question, signed: check.context } : null;
    } catch {
      return null;
    }
  }

  private respondTo(octets: Buffer, transport: 'udp' | 'tcp'): Response {
    const quick = readQuickly(octets);
    if (!quick) return this.respondSlowly(octets, transport);
    const room = transport === 'tcp' ? tcpSizeMax : udpRoom(quick.edns);
    const kind = quick.type * 4 + (quick.edns ? (quick.edns.dnssecOk ? 2 : 1) : 0);
    const cached = this.cache.get(kind, quick.name);
    if (cached && cached.octets.length <= room) {
      cached.zone.counter.queries++;
      return { octets: respell(cached.octets, octets, quick.questionEnd), limitKey: cached.limitKey };
    }
    const head: Head = { id: octets.readUInt16BE(0), flags: octets.readUInt16BE(2), question: readOnlyQuestion(octets), source: octets, edns: quick.edns };
    return this.answerQuestion(head, room, kind);
  }

  private respondSlowly(octets: Buffer, transport: 'udp' | 'tcp'): Response {
    const bare: Head = { id: octets.readUInt16BE(0), flags: octets.readUInt16BE(2), question: readOnlyQuestion(octets), source: octets, edns: null };
    const message = parsed(octets);
    if ((bare.flags & bits.opcode) >> 11 !== opcodes.query) return fault({ ...bare, edns: message?.edns ?? null }, rcodes.NOTIMP);
    if (!message || message.questions.length !== 1) return fault(bare, rcodes.FORMERR);
    const { edns } = message;
    const head = { ...bare, edns };
    const room = transport === 'tcp' ? tcpSizeMax : udpRoom(edns);
    try {
      if ((message.edns?.version ?? 0) > 0) return fault(head, rcodes.BADVERS);
      const check = this.checkSignature(message);
      if (check === null) return this.answerQuestion(head, room, null);
      if (check.ok) return signedAnswer(this.answerQuestion(head, room - signatureRoom(check.context.key), null), check.context);
      return tsigFault(head, check);
    } catch (error) {
      if (error instanceof MalformedDns) return fault(head, rcodes.FORMERR);
      throw error;
    }
  }

  private checkSignature(message: WireMessage): ReturnType<typeof checkTsig> | null {
    return message.tsig && checkTsig(message, message.tsig, { keyOf: this.options.keyOf, nowSeconds: this.options.nowSeconds() });
  }

  /** `kind`: where the answer may be cached; null for requests that are not of the quick shape. */
  private answerQuestion(head: Head, room: number, kind: number | null): Response {
    const { question } = head;
    if (!question) return fault(head, rcodes.FORMERR);
    if (question.class !== classIn || question.type === typeNumbers.AXFR || question.type === typeNumbers.IXFR) return fault(head, rcodes.REFUSED);
    const zone = this.store.find(question.name, question.type);
    if (!zone) return refused(head);
    zone.counter.queries++;
    const answer = lookUp(zone, question.name, question.type);
    const octets = encode(head, answer);
    if (octets && kind !== null && question.type !== typeNumbers.DS) {
      this.cache.put(kind, head.source.toString('latin1', question.at, question.end - 4).toLowerCase(), { octets, zone, epoch: zone.epoch, limitKey: answer.limitKey });
    }
    return { octets: octets && octets.length <= room ? octets : truncated(head, answer), limitKey: answer.limitKey };
  }
}

/** The answer without its records, TC set: what a client over UDP repeats over TCP (RFC 2181 §9). */
export function truncate(response: Buffer): Buffer {
  const question = readOnlyQuestion(response);
  const cut = Buffer.from(response.subarray(0, question?.end ?? headerLength));
  cut.writeUInt16BE((cut.readUInt16BE(2) | bits.tc) & ~bits.rcode, 2);
  cut.fill(0, 6, headerLength);
  if (!question) cut.writeUInt16BE(0, 4);
  return cut;
}

function parsed(octets: Buffer): WireMessage | null {
  try {
    return readMessage(octets);
  } catch (error) {
    if (error instanceof MalformedDns) return null;
    throw error;
  }
}

/** A cached answer under this request's id, RD and spelling. */
function respell(cached: Buffer, request: Buffer, questionEnd: number): Buffer {
  const octets = Buffer.allocUnsafe(cached.length);
  cached.copy(octets, questionEnd, questionEnd);
  request.copy(octets, 0, 0, questionEnd);
  octets[2] = ((cached[2] ?? 0) & 0xfe) | ((request[2] ?? 0) & 0x01);
  octets[3] = cached[3] ?? 0;
  cached.copy(octets, 4, 4, headerLength);
  return octets;
}

function udpRoom(edns: QuickRequest['edns']): number {
  return edns ? Math.max(udpSizePlain, Math.min(edns.udpSize, udpSizeMax)) : udpSizePlain;
}

function begin(head: Head, rcode: number, authoritative: boolean): MessageWriter {
  const writer = new MessageWriter(head.id, answerFlags(head.flags, rcode, authoritative));
  const { question } = head;
  if (question) writer.echoQuestion(head.source.subarray(question.at, question.end), question.name);
  return writer;
}

/** OPT of the answer; RFC 3225 §3: DO is copied. */
function end(writer: MessageWriter, head: Head, rcode: number, options: readonly { code: number; octets: Buffer }[] = []): Buffer {
  if (head.edns) writer.writeEdns({ udpSize: udpSizeMax, extendedRcode: rcode >> 4, flags: head.edns.dnssecOk ? dnssecOkBit : 0, options });
  return writer.finish();
}

/** Null when it does not fit in any message. */
function encode(head: Head, { rcode, authoritative, answer, authority, additional }: Answer): Buffer | null {
  try {
    const writer = begin(head, rcode, authoritative);
    writeAll(writer, 'answer', answer);
    writeAll(writer, 'authority', authority);
    writeAll(writer, 'additional', additional);
    return end(writer, head, rcode);
  } catch (error) {
    if (error instanceof MessageTooLong) return null;
    throw error;
  }
}

function writeAll(writer: MessageWriter, section: 'answer' | 'authority' | 'additional', records: readonly AnswerRecord[]): void {
  for (const { owner, set, ttl } of records) {
    for (const rdata of set.rdatas) writer.writeRecord(section, { owner, type: set.type, typeName: set.typeName, ttl, rdata });
  }
}

function truncated(head: Head, answer: Answer): Buffer {
  const octets = end(begin(head, rcodes.NOERROR, answer.authoritative), head, rcodes.NOERROR);
  octets.writeUInt16BE(octets.readUInt16BE(2) | bits.tc, 2);
  return octets;
}

function fault(head: Head, rcode: number): Response {
  return { octets: end(begin(head, rcode, false), head, rcode), limitKey: `//${rcode}` };
}

function refused(head: Head): Response {
  return { octets: end(begin(head, rcodes.REFUSED, false), head, rcodes.REFUSED, [notAuthoritative]), limitKey: '//refused' };
}

function signedAnswer(response: Response, context: TsigContext): Response {
  return { ...response, octets: signMessage(response.octets, context, context.mac).octets };
}

/** RFC 8945 §5.2: NOTAUTH, and in the TSIG why. */
function tsigFault(head: Head, check: Extract<ReturnType<typeof checkTsig>, { ok: false }>): Response {
  const { octets, limitKey } = fault(head, rcodes.NOTAUTH);
  const told = check.signed ? signMessage(octets, check.signed, check.signed.mac, { error: check.error }).octets : tellTsigError(octets, check);
  return { octets: told, limitKey };
}

function signatureRoom(key: TsigKey): number {
  return key.name.length + 128;
}
