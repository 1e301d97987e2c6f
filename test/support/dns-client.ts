import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import * as dnsPacket from 'dns-packet';
import type { Log } from '../../src/core/log';
import { startDnsServer, type DnsServer, type DnsServerOptions } from '../../src/edge/dns/server';
import type { HandFeed } from './dns-feed';

export type At = { host: string; port: number };
export type Decoded = dnsPacket.DecodedPacket & { rcode: string };

/** A log that keeps nothing. */
export const silentLog: Log = { info: () => undefined, warn: () => undefined, error: () => undefined, debug: () => undefined, fatal: () => undefined, child: () => { throw new Error('not used'); } };

/** A server on a free loopback port with the given feed. */
export function startTestServer(feed: HandFeed, more: Partial<DnsServerOptions> = {}): Promise<DnsServer> {
  return startDnsServer({
    listen: [{ host: '127.0.0.1', port: 0 }], feed, rateLimit: { perSecond: 0, exempt: [] }, transfer: { keys: [], allow: [] }, notify: [], nowMs: Date.now, log: silentLog, ...more,
  });
}

/** Where the server listens first. */
export function addressOf(server: DnsServer): At {
  const [address] = server.addresses;
  if (!address) throw new Error('the server listens nowhere');
  return address;
}

/** A query as another implementation writes it. `edns`: the size offered; none by default. */
export function queryFor(name: string, type: string, { edns, id = 4711, rd = false, dnssecOk = false }: { edns?: number; id?: number; rd?: boolean; dnssecOk?: boolean } = {}): Buffer {
  const additionals = edns === undefined ? [] : [{ type: 'OPT' as const, name: '.' as const, udpPayloadSize: edns, extendedRcode: 0, ednsVersion: 0, flags: dnssecOk ? dnsPacket.DNSSEC_OK : 0, options: [] }];
  return dnsPacket.encode({ type: 'query', id, flags: rd ? dnsPacket.RECURSION_DESIRED : 0, questions: [{ name, type: type as 'A', class: 'IN' }], additionals: additionals as never });
}

/** Octets that come back over UDP. Errors: when nothing came in 3 s. */
export async function exchangeUdp(at: At, octets: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    socket.send(octets, at.port, at.host);
    const [answer] = (await once(socket, 'message', { signal: AbortSignal.timeout(3000) })) as [Buffer];
    return answer;
  } finally {
    socket.close();
  }
}

/** Messages that come back over one connection to these, `count` of them. */
export async function exchangeTcp(at: At, messages: readonly Buffer[], count = messages.length): Promise<Buffer[]> {
  const socket = connect(at.port, at.host);
  try {
    socket.write(Buffer.concat(messages.map(framed)));
    return await readFrames(socket, count);
  } finally {
    socket.destroy();
  }
}

/** The next `count` messages of a connection; fewer when it ends before. */
export async function readFrames(socket: Socket, count: number): Promise<Buffer[]> {
  const frames: Buffer[] = [];
  let waiting = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    waiting = Buffer.concat([waiting, chunk]);
    while (waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
      const end = 2 + waiting.readUInt16BE(0);
      frames.push(waiting.subarray(2, end));
      waiting = waiting.subarray(end);
    }
    if (frames.length >= count) break;
  }
  return frames;
}

export function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);
}

/** One question over UDP with EDNS, decoded by another implementation. */
export async function ask(at: At, name: string, type: string): Promise<Decoded> {
  return decode(await exchangeUdp(at, queryFor(name, type, { edns: 1232 })));
}

export function decode(octets: Buffer): Decoded {
  return dnsPacket.decode(octets) as Decoded;
}

/** Sections as lines `name type ttl value`, for comparing. */
export function lines(records: readonly dnsPacket.Answer[] | undefined): string[] {
  return (records ?? []).filter(({ type }) => type !== 'OPT').map((record) => {
    const { name, type, ttl, data } = record as { name: string; type: string; ttl: number; data: unknown };
    return `${name} ${type} ${ttl} ${text(type, data)}`;
  });
}

function text(type: string, data: unknown): string {
  if (typeof data === 'string') return data;
  if (type === 'MX') return `${(data as { preference: number }).preference} ${(data as { exchange: string }).exchange}`;
  if (type === 'TXT') return Buffer.concat(data as Buffer[]).toString();
  if (type === 'SOA') return `${(data as { mname: string }).mname} ${(data as { serial: number }).serial}`;
  return JSON.stringify(data);
}
