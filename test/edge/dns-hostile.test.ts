import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { createSocket } from 'node:dgram';
import { Responder } from '../../src/edge/dns/responder';
import { ConnectionCount } from '../../src/edge/dns/tcp-listener';
import type { DnsServer } from '../../src/edge/dns/server';
import { ZoneStore } from '../../src/edge/dns/zone-store';
import { addressOf, ask, exchangeTcp, framed, lines, queryFor, readFrames, startTestServer, type At } from '../support/dns-client';
import { fullZone, HandFeed } from '../support/dns-feed';
import { rounds } from '../support/rounds';

const zone = fullZone('example.com', ['www A 300 192.0.2.1', '*.w TXT 300 hello', 'sub NS 300 ns.sub.example.com', 'ns.sub A 300 192.0.2.2', ...Array.from({ length: 100 }, (_, i) => `many A 60 192.0.2.${i}`)]);

let server: DnsServer;
let at: At;
beforeAll(async () => {
  server = await startTestServer(new HandFeed([zone]));
  at = addressOf(server);
});
afterAll(() => server.close());

/** Numbers that are the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Random octets, and good queries with some octets changed, cut off, repeated or with pointers in them. */
function* hostilePackets(count: number, seed: number): Generator<Buffer> {
  const next = numbers(seed);
  const good = [queryFor('www.example.com', 'A', { edns: 1232 }), queryFor('a.b.w.example.com', 'TXT'), queryFor('x.sub.example.com', 'ANY', { edns: 512, dnssecOk: true }), queryFor('example.com', 'AXFR')];
  for (let i = 0; i < count; i++) {
    const base = next(4) === 0 ? Buffer.from(Array.from({ length: next(300) }, () => next(256))) : Buffer.from(good[next(good.length)] ?? '');
    for (let changes = next(6); changes > 0 && base.length > 0; changes--) base[next(base.length)] = next(256);
    if (next(5) === 0 && base.length > 14) base.writeUInt16BE(0xc000 | next(base.length), 12 + next(base.length - 13));
    yield next(6) === 0 ? base.subarray(0, next(base.length + 1)) : next(8) === 0 ? Buffer.concat([base, base]) : base;
  }
}

test('no packet makes the responder throw, answer too long, or answer an answer', () => {
  const store = new ZoneStore();
  store.apply(zone);
  const responder = new Responder(store, { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
  for (const packet of hostilePackets(rounds(30_000, 3_000_000), 1)) {
    const response = responder.respond(packet, 'udp');
    responder.transferOf(packet);
    const isAnswer = packet.length < 12 || ((packet[2] ?? 0) & 0x80) !== 0;
    if (isAnswer !== (response === null) || (response && (response.octets.length > 1232 || response.octets.readUInt16BE(0) !== packet.readUInt16BE(0)))) {
      throw new Error(`packet ${packet.toString('hex')} was answered ${response?.octets.toString('hex') ?? 'by nothing'}`);
    }
  }
}, rounds(30_000, 600_000));

test('memory stays flat under names that do not exist and packets that do not read', () => {
  const store = new ZoneStore();
  store.apply(zone);
  const responder = new Responder(store, { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
  const query = queryFor('000000.example.com', 'A', { edns: 1232 });
  const flood = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      query.write(String(i).padStart(6, '0'), 13);
      responder.respond(query, 'udp');
    }
    for (const packet of hostilePackets(5000, from + 1)) responder.respond(packet, 'udp');
  };
  flood(0, 110_000); // both generations of the cache are full now
  const before = process.memoryUsage();
  flood(110_000, 220_000);
  const after = process.memoryUsage();
  const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  expect(grown).toBeLessThan(64 * 1024 * 1024); // unbounded it would be 110,000 answers with their names more
});

test('thousands of broken packets over UDP, and the next question is answered', async () => {
  const socket = createSocket('udp4');
  for (const packet of hostilePackets(rounds(5_000, 200_000), 7)) await new Promise<void>((resolve) => socket.send(packet, at.port, at.host, () => resolve()));
  socket.close();
  expect(lines((await ask(at, 'www.example.com', 'A')).answers)).toEqual(['www.example.com A 300 192.0.2.1']);
}, rounds(30_000, 300_000));

test('broken messages over TCP leave the connection answering', async () => {
  const packets = [...hostilePackets(300, 9)].filter((packet) => packet.length < 12 || (packet.readUInt16BE(2) & 0x8000) === 0);
  const last = queryFor('www.example.com', 'A', { id: 31_337 });
  const answers = await exchangeTcp(at, [...packets, last], packets.filter((packet) => packet.length >= 12).length + 1);
  expect(answers.at(-1)?.readUInt16BE(0)).toBe(31_337);
});

describe('TCP', () => {
  const connected = async (localAddress?: string): Promise<Socket> => {
    const socket = connect({ port: at.port, host: at.host, ...(localAddress ? { localAddress } : {}) });
    await once(socket, 'connect');
    return socket;
  };

  test('questions sent ahead are answered in their order, also octet by octet', async () => {
    const queries = Array.from({ length: 200 }, (_, i) => queryFor(i % 2 ? 'www.example.com' : 'many.example.com', 'A', { id: i }));
    expect((await exchangeTcp(at, queries)).map((answer) => answer.readUInt16BE(0))).toEqual(queries.map((_, i) => i));
    const socket = await connected();
    const receiving = readFrames(socket, 2);
    for (const octet of framed(queryFor('www.example.com', 'A', { id: 1 }))) socket.write(Buffer.from([octet]));
    socket.write(framed(queryFor('www.example.com', 'A', { id: 2 })));
    expect((await receiving).map((answer) => answer.readUInt16BE(0))).toEqual([1, 2]);
    socket.destroy();
  });

  test('a message longer than any request ends the connection', async () => {
    const socket = await connected();
    socket.write(Buffer.from([0xff, 0xff, 1, 2, 3]));
    await once(socket, 'close');
    expect(socket.destroyed).toBe(true);
  });

  test('an address has at most 100 connections; another one still gets in', async () => {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => connected('127.0.0.7')));
    const refused = await connected('127.0.0.7');
    await once(refused.resume(), 'close');
    const other = await connected('127.0.0.8');
    other.write(framed(queryFor('www.example.com', 'A', { id: 5 })));
    expect((await readFrames(other, 1)).map((answer) => answer.readUInt16BE(0))).toEqual([5]);
    for (const socket of [...sockets, other]) socket.destroy();
  });

  test('all addresses together have at most 1,000; who leaves makes room', () => {
    const count = new ConnectionCount();
    const addresses = Array.from({ length: 1_000 }, (_, i) => `192.0.2.${i % 11}`);
    expect(addresses.every((address) => count.enter(address))).toBe(true);
    expect(count.enter('198.51.100.1')).toBe(false);
    count.leave('192.0.2.0');
    expect([count.enter('198.51.100.1'), count.enter('198.51.100.2')]).toEqual([true, false]);
  });

  test('who completes no request for ten seconds is cut off; each complete one begins them anew', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'] });
    try {
      const socket = await connected('127.0.0.10');
      const ended = new Promise<string>((done) => socket.on('error', () => undefined).once('close', () => done('cut off')));
      const answered = async (): Promise<string> => {
        const frames = readFrames(socket, 1);
        socket.write(framed(queryFor('www.example.com', 'A', { id: 7 })));
        return (await frames).length === 1 ? 'answered' : 'silent';
      };
      expect(await answered()).toBe('answered');
      jest.advanceTimersByTime(9_000);
      expect(await Promise.race([answered(), ended])).toBe('answered');
      jest.advanceTimersByTime(9_000);
      socket.write(Buffer.from([0, 40, 1]));
      jest.advanceTimersByTime(1_000);
      expect(await ended).toBe('cut off');
    } finally {
      jest.useRealTimers();
    }
  });

  test('who does not read is not read from, and holds up nobody', async () => {
    const greedy = await connected('127.0.0.9');
    greedy.pause();
    const question = framed(queryFor('many.example.com', 'A'));
    let taken = true;
    for (let i = 0; i < 200_000 && taken; i++) taken = greedy.write(question) || greedy.writableLength < 1024 * 1024;
    expect(taken).toBe(false);
    expect(lines((await ask(at, 'www.example.com', 'A')).answers)).toHaveLength(1);
    greedy.destroy();
  });
});
