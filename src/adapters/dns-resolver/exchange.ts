import { randomBytes, randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { flags as bits, headerLength, rcodes } from '../../dns/rules/wire/codes';
import { MalformedDns, type WireName } from '../../dns/rules/wire/name';
import { readMessage, type WireMessage } from '../../dns/rules/wire/reader';
import { MessageWriter } from '../../dns/rules/wire/writer';
import type { Destination } from './routes';

export type Question = { name: WireName; type: number };
/** `spend`: asked before each packet; false stops. */
export type ExchangeLimits = { timeoutMs: number; tries: number; tcp: boolean; spend: () => boolean };

type Heard = WireMessage | 'lost' | 'respelled' | 'malformed';
const udpSize = 1232;

/**
 * One question to one server: over UDP from a port and with an id and a spelling (0x20) nobody can guess, again over TCP
 * when the answer is cut or spelled otherwise, without EDNS when the server does not know it. Null when nothing valid
 * came within `timeoutMs` per try. Never throws.
 */
export async function exchange(to: Destination, question: Question, how: ExchangeLimits): Promise<WireMessage | null> {
  let edns = true;
  const ask = async (tcp: boolean): Promise<Heard> => {
    if (!how.spend()) return 'lost';
    const query = writeQuery(question, edns);
    return tcp ? askTcp(to, query, how.timeoutMs) : askUdp(to, query, how.timeoutMs);
  };
  for (let attempt = 0; attempt < how.tries; attempt++) {
    let heard = await ask(how.tcp);
    if (edns && isEdnsUnknown(heard)) {
      edns = false;
      heard = await ask(how.tcp);
    }
    if (!how.tcp && (heard === 'respelled' || (typeof heard === 'object' && (heard.flags & bits.tc) !== 0))) heard = await ask(true);
    if (typeof heard === 'object') return heard;
    if (heard === 'malformed') break;
  }
  return null;
}

type Query = { octets: Buffer; end: number };

function writeQuery({ name, type }: Question, edns: boolean): Query {
  const writer = new MessageWriter(randomInt(0x10000), 0);
  writer.writeQuestion(name, type, randomlySpelled(name));
  const end = writer.length;
  if (edns) writer.writeEdns({ udpSize, extendedRcode: 0, flags: 0, options: [] });
  return { octets: writer.finish(), end };
}

/** Upper case for a random half of the letters. Length octets are below 64 and letters above, so only letters change. */
function randomlySpelled(name: WireName): WireName {
  const coins = randomBytes(name.length);
  return [...name].map((char, i) => (((coins[i] ?? 0) & 1) === 1 ? char.replace(/[a-z]/, (letter) => letter.toUpperCase()) : char)).join('');
}

function askUdp(to: Destination, query: Query, timeoutMs: number): Promise<Heard> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(to.address) ? 'udp6' : 'udp4');
    let respelled = false;
    const finish = (heard: Heard): void => {
      clearTimeout(timer);
      socket.removeAllListeners().on('error', () => undefined).close();
      resolve(heard);
    };
    const timer = setTimeout(() => finish(respelled ? 'respelled' : 'lost'), timeoutMs);
    socket.on('error', () => finish('lost'));
    socket.on('message', (octets) => {
      const heard = judge(octets, query);
      if (heard === 'respelled') respelled = true;
      else if (heard) finish(heard);
    });
    // Connected: the kernel drops what comes from anywhere else.
    socket.connect(to.port, to.address, () => socket.send(query.octets, (error) => error && finish('lost')));
  });
}

function askTcp(to: Destination, query: Query, timeoutMs: number): Promise<Heard> {
  return new Promise((resolve) => {
    const socket = connect({ host: to.address, port: to.port });
    let received = Buffer.alloc(0);
    const finish = (heard: Heard): void => {
      clearTimeout(timer);
      socket.removeAllListeners().on('error', () => undefined).destroy();
      resolve(heard);
    };
    const timer = setTimeout(() => finish('lost'), timeoutMs);
    socket.on('error', () => finish('lost')).on('close', () => finish('lost'));
    socket.on('connect', () => {
      const framed = Buffer.concat([Buffer.from([query.octets.length >> 8, query.octets.length & 0xff]), query.octets]);
      socket.write(framed);
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const length = received.length >= 2 ? received.readUInt16BE(0) : Infinity;
      if (received.length >= 2 + length) finish(judge(received.subarray(2, 2 + length), query) ?? 'malformed');
    });
  });
}

/** What arrived: an answer to this query, one that only spells its name otherwise, a broken one; null for anything else. */
function judge(octets: Buffer, query: Query): Heard | null {
  if (octets.length < headerLength || octets.readUInt16BE(0) !== query.octets.readUInt16BE(0)) return null;
  if ((octets.readUInt16BE(2) & (bits.qr | bits.opcode)) !== bits.qr) return null;
  try {
    const message = readMessage(octets);
    if (message.questions.length === 0 && message.rcode === rcodes.FORMERR) return message;
    const asked = query.octets.subarray(headerLength, query.end);
    const [echoed] = message.questions;
    if (message.questions.length !== 1 || !echoed) return null;
    if (octets.subarray(echoed.at, echoed.end).equals(asked)) return message;
    return octets.toString('latin1', echoed.at, echoed.end).toLowerCase() === asked.toString('latin1').toLowerCase() ? 'respelled' : null;
  } catch (error) {
    if (error instanceof MalformedDns) return 'malformed';
    throw error;
  }
}

/** RFC 6891 §7: a server that does not know OPT says FORMERR or NOTIMP and sends none. */
function isEdnsUnknown(heard: Heard): boolean {
  return typeof heard === 'object' && heard.edns === null && (heard.rcode === rcodes.FORMERR || heard.rcode === rcodes.NOTIMP);
}
