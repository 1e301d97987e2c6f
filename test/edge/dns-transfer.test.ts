import { execFile, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { promisify } from 'node:util';
import type { ZoneChangeSet } from '../../src/dns/ports';
import { flags, opcodes, rcodes } from '../../src/dns/rules/wire/codes';
import { wireName } from '../../src/dns/rules/wire/name';
import { readMessage, recordText } from '../../src/dns/rules/wire/reader';
import { checkTsig, signMessage, type TsigKey } from '../../src/dns/rules/wire/tsig';
import { Responder } from '../../src/edge/dns/responder';
import type { DnsServer } from '../../src/edge/dns/server';
import { transferMessages } from '../../src/edge/dns/transfer';
import { ZoneStore } from '../../src/edge/dns/zone-store';
import { addressOf, exchangeTcp, exchangeUdp, queryFor, startTestServer, type At } from '../support/dns-client';
import { fullZone, HandFeed } from '../support/dns-feed';

const secret = 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0';
const key: TsigKey = { name: wireName('secondary'), secret: Buffer.from(secret, 'base64') };
const zoneLines = Array.from({ length: 3000 }, (_, i) => `h${i} A 60 10.0.${i >> 8}.${i & 255}`);
const rowCount = zoneLines.length + 3 + 1; // SOA, two NS, and the SOA again
const has = (tool: string): boolean => spawnSync('which', [tool]).status === 0;
const run = async (tool: string, ...args: string[]): Promise<string> => (await promisify(execFile)(tool, args, { timeout: 10_000 })).stdout;
const seconds = (): number => Math.floor(Date.now() / 1000);

let server: DnsServer;
let at: At;
beforeAll(async () => {
  server = await startTestServer(new HandFeed([fullZone('example.com', zoneLines)]), { transfer: { keys: [key], allow: ['127.0.0.3'] } });
  at = addressOf(server);
});
afterAll(() => server.close());

const signed = (octets: Buffer, nowSeconds = seconds()) => signMessage(octets, { key, mac: Buffer.alloc(0), nowSeconds }, undefined);

test('a signed request gets the whole zone, SOA first and last, every message small and signed over the one before', async () => {
  for (const type of ['AXFR', 'IXFR']) {
    const request = signed(queryFor('example.com', type));
    const messages = (await exchangeTcp(at, [request.octets], 5)).map(readMessage);
    const rows = messages.flatMap((message) => message.answer.map((record) => recordText(message, record)));
    expect(rows).toHaveLength(rowCount);
    expect([rows[0]?.type, rows.at(-1)?.type, new Set(rows.map(({ name }) => name)).size]).toEqual(['SOA', 'SOA', zoneLines.length + 1]);
    expect(messages.every(({ octets, tsig }) => octets.length < 17_000 && tsig !== null)).toBe(true);
    const [first] = messages;
    const check = first?.tsig && checkTsig(first, first.tsig, { keyOf: () => key, nowSeconds: seconds(), priorMac: request.mac });
    expect(check).toMatchObject({ ok: true });
  }
});

test('without a key, with a wrong one, or for a zone that is not here there is none', async () => {
  const rcodeOf = async (octets: Buffer): Promise<number | undefined> => (await exchangeTcp(at, [octets], 1)).map((answer) => answer.readUInt16BE(2) & 0xf)[0];
  const bad = signMessage(queryFor('example.com', 'AXFR'), { key: { ...key, secret: Buffer.from('wrong') }, mac: Buffer.alloc(0), nowSeconds: seconds() }, undefined).octets;
  expect(await rcodeOf(queryFor('example.com', 'AXFR'))).toBe(rcodes.REFUSED);
  expect(await rcodeOf(bad)).toBe(rcodes.NOTAUTH);
  expect(await rcodeOf(signed(queryFor('example.com', 'AXFR'), seconds() - 301).octets)).toBe(rcodes.NOTAUTH);
  expect(await rcodeOf(signed(queryFor('example.org', 'AXFR')).octets)).toBe(rcodes.REFUSED);
  expect(await rcodeOf(signed(queryFor('h1.example.com', 'AXFR')).octets)).toBe(rcodes.REFUSED);
});

test('a signed ordinary query gets a signed answer', async () => {
  const request = signed(queryFor('h1.example.com', 'A', { edns: 1232 }));
  const answer = readMessage(await exchangeUdp(at, request.octets));
  expect(answer.answer).toHaveLength(1);
  expect(answer.tsig && checkTsig(answer, answer.tsig, { keyOf: () => key, nowSeconds: seconds(), priorMac: request.mac })).toMatchObject({ ok: true });
});

test('a zone that changes during its transfer comes out as it was', () => {
  const store = new ZoneStore();
  store.apply(fullZone('example.com', zoneLines));
  const request = new Responder(store, { keyOf: () => undefined, nowSeconds: seconds, onFault: (error) => { throw error; } }).transferOf(queryFor('example.com', 'AXFR'));
  const messages = transferMessages(request ?? fail(), store.get('example.com') ?? fail());
  const received = [messages.next().value ?? fail()];
  store.apply({ ...fullZone('example.com', ['h2999 A 60 192.0.2.99'], { version: 2, fromVersion: 1 }), kind: 'diff', remove: [{ name: 'h2998.example.com', type: 'A' }] });
  received.push(...messages);
  const rows = received.map(readMessage).flatMap((message) => message.answer.map((record) => recordText(message, record)));
  expect(rows).toHaveLength(rowCount);
  expect(rows.find(({ name }) => name === 'h2999.example.com')?.value).toBe('10.0.11.183');
  expect(new Set(rows.filter(({ type }) => type === 'SOA').map(({ value }) => value)).size).toBe(1);
});

function fail(): never {
  throw new Error('there is none');
}

test('secondaries are told of each version until they answer, not of what was loaded at the start', async () => {
  const secondary = createSocket('udp4');
  await new Promise<void>((resolve) => secondary.bind(0, '127.0.0.1', resolve));
  const feed = new HandFeed([fullZone('example.com', [])]);
  const primary = await startTestServer(feed, { notify: [{ address: '127.0.0.1', port: secondary.address().port }] });
  try {
    const changes: ZoneChangeSet = fullZone('example.com', ['www A 60 192.0.2.1'], { version: 2 });
    const told = once(secondary, 'message') as Promise<[Buffer, { port: number; address: string }]>;
    feed.push(changes);
    const [first, from] = await told;
    const again = once(secondary, 'message') as Promise<[Buffer]>;
    expect(readMessage(first)).toMatchObject({ flags: (opcodes.notify << 11) | flags.aa, questions: [{ name: wireName('example.com'), type: 6 }] });
    const [second] = await again; // it was not answered
    expect(second).toEqual(first);
    const answer = Buffer.from(second);
    answer.writeUInt16BE(answer.readUInt16BE(2) | flags.qr, 2);
    secondary.send(answer, from.port, from.address);
    feed.push(fullZone('other.com', []));
    const [third] = (await once(secondary, 'message')) as [Buffer];
    expect(readMessage(third).questions).toMatchObject([{ name: wireName('other.com') }]);
  } finally {
    await primary.close();
    secondary.close();
  }
});

(has('kdig') ? test : test.skip)('kdig transfers and verifies (skipped without it)', async () => {
  const out = await run('kdig', `@${at.host}`, '-p', `${at.port}`, 'example.com', 'AXFR', '-y', `hmac-sha256:secondary:${secret}`);
  expect(out).toMatch(new RegExp(`Received \\d+ B \\(5 messages, ${rowCount} records\\)`));
});

(has('dig') ? test : test.skip)('dig verifies signatures, and its listed address needs none (skipped without it)', async () => {
  const dig = (...args: string[]): Promise<string> => run('dig', `@${at.host}`, '-p', `${at.port}`, '+time=2', '+tries=1', ...args);
  expect(await dig('example.com', 'AXFR', '-y', `hmac-sha256:secondary:${secret}`)).toMatch(`XFR size: ${rowCount} records`);
  expect(await dig('example.com', 'AXFR', '-b', '127.0.0.3')).toMatch(`XFR size: ${rowCount} records`);
  expect(await dig('example.com', 'SOA', '-y', `hmac-sha256:secondary:${secret}`)).toMatch(/status: NOERROR[^]*TSIG[^]*NOERROR/);
});
