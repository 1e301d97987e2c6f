import { connect, createServer, type Server } from 'node:net';
import { rrsetsOf, transferZone } from '../../src/adapters/dns-backend/axfr-client';
import { byText } from '../../src/dns/rules/rrset';
import { platformTransferKeys } from '../../src/dns/rules/transfer-key';
import { wireName } from '../../src/dns/rules/wire/name';
import type { DnsServer } from '../../src/edge/dns/server';
import { addressOf, startTestServer } from '../support/dns-client';
import { fullZone, HandFeed } from '../support/dns-feed';

const [key] = platformTransferKeys([Buffer.alloc(32, 7).toString('base64')]);
if (!key) throw new Error('a master key gives a key');
const many = Array.from({ length: 2500 }, (_, i) => `h${i} A 60 10.0.${i >> 8}.${i & 255}`);
const zone = fullZone('example.com', ['@ MX 300 10 mail.example.com', '@ TXT 300 "quoted" and ü', '@ CAA 300 0 issue "ca.example"', 'sub NS 300 ns1.other.test', 'www CNAME 60 example.com', '*.w AAAA 60 2001:db8::1', ...many]);
let server: DnsServer;
let at: { address: string; port: number };
beforeAll(async () => {
  server = await startTestServer(new HandFeed([zone]), { transfer: { keys: [key], allow: [] } });
  at = { address: addressOf(server).host, port: addressOf(server).port };
});
afterAll(() => server.close());

test('a zone comes over whole and in canonical form', async () => {
  const transfer = await transferZone({ server: at, domain: 'example.com', key });
  if (transfer.outcome !== 'zone') throw new Error(transfer.outcome);
  expect(transfer.serial).toBe(zone.serial);
  const expected = zone.replace.map((set) => ({ ...set, values: set.values.toSorted(byText) })).sort((a, b) => byText(a.name, b.name) || byText(a.type, b.type));
  expect(rrsetsOf(transfer.records)).toEqual(expected);
});

test('what is not a whole zone is told apart', async () => {
  expect(await transferZone({ server: at, domain: 'example.com' })).toEqual({ outcome: 'refused' });
  expect(await transferZone({ server: at, domain: 'example.com', key: { ...key, secret: Buffer.from('wrong') } })).toEqual({ outcome: 'refused' });
  expect(await transferZone({ server: at, domain: 'example.com', key: { name: wireName('nobody'), secret: key.secret } })).toEqual({ outcome: 'refused' });
  expect(await transferZone({ server: at, domain: 'other.com', key })).toEqual({ outcome: 'refused' });
  expect(await transferZone({ server: at, domain: 'example.com', key, bytesMax: 20_000 })).toEqual({ outcome: 'too_large' });
});

describe('a hostile server', () => {
  let hostile: Server;
  afterEach(() => new Promise((resolve) => hostile.close(resolve)));
  const answering = async (answer: (request: Buffer) => Buffer | null): Promise<{ address: string; port: number }> => {
    hostile = createServer((socket) => socket.on('error', () => undefined).once('data', (request: Buffer) => {
      const octets = answer(request);
      if (octets) socket.write(octets);
    }).setTimeout(2_000, () => socket.destroy()));
    return bound(hostile);
  };
  const bound = async (listener: Server): Promise<{ address: string; port: number }> => {
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const address = listener.address();
    return { address: '127.0.0.1', port: typeof address === 'object' && address ? address.port : 0 };
  };
  const echoed = (request: Buffer): Buffer => {
    const octets = Buffer.from(request);
    octets.writeUInt16BE(0x8400, 4);
    return octets;
  };

  test.each<[string, (request: Buffer) => Buffer | null, string]>([
    ['says nothing', () => null, 'timeout'],
    ['sends a message without records', echoed, 'malformed'],
    ['sends another id', (request) => Buffer.concat([request.subarray(0, 2), Buffer.from([request[2] ?? 0, (request[3] ?? 0) ^ 1]), echoed(request).subarray(4)]), 'malformed'],
    ['sends rubbish', () => Buffer.concat([Buffer.from([0, 40]), Buffer.alloc(40, 0xc0)]), 'malformed'],
  ])('that %s gets no further than an outcome', async (_, answer, outcome) => {
    const to = await answering(answer);
    expect(await transferZone({ server: to, domain: 'example.com', timeoutMs: 500 })).toEqual({ outcome });
  });

  test.each([40, 17_000])('that changes octet %i of a signed transfer is found out', async (changed) => {
    let passed = 0;
    hostile = createServer((client) => {
      const upstream = connect(at.port, at.address);
      for (const socket of [client, upstream]) socket.on('error', () => undefined).on('close', () => [client, upstream].forEach((one) => one.destroy()));
      client.pipe(upstream);
      upstream.on('data', (chunk: Buffer) => {
        const place = changed - passed;
        passed += chunk.length;
        if (place >= 0 && place < chunk.length) chunk[place] = (chunk[place] ?? 0) ^ 1;
        client.write(chunk);
      });
    });
    expect(await transferZone({ server: await bound(hostile), domain: 'example.com', key })).toEqual({ outcome: 'malformed' });
  });
});
