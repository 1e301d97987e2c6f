import fc from 'fast-check';
import type { RRset } from '../../src/dns/rules/rrset';
import { readMessage, recordText } from '../../src/dns/rules/wire/reader';
import { Responder } from '../../src/edge/dns/responder';
import type { DnsServer } from '../../src/edge/dns/server';
import { ZoneStore } from '../../src/edge/dns/zone-store';
import { addressOf, ask, decode, exchangeTcp, exchangeUdp, lines, queryFor, startTestServer, type At, type Decoded } from '../support/dns-client';
import { fullZone, HandFeed, rrsets } from '../support/dns-feed';
import { naiveAnswer } from '../support/naive-dns';

const zoneLines = [
  '@ A 300 192.0.2.1', '@ MX 300 10 mail.example.com', '@ TXT 300 v=spf1 -all', 'www CNAME 300 example.com', 'a.b.c A 300 192.0.2.3', '*.wild TXT 300 hello', 'x.y.wild A 60 192.0.2.9', '*.alias CNAME 60 www.example.com',
  'sub NS 3600 ns1.sub.example.com', 'sub NS 3600 ns.other.net', 'ns1.sub A 3600 192.0.2.53', 'sub DS 3600 12345 13 2 00ff', 'c1 CNAME 60 c2.example.com', 'c2 CNAME 60 nothere.example.com', 'out CNAME 60 www.example.net',
  'indel CNAME 60 foo.sub.example.com', ...Array.from({ length: 60 }, (_, i) => `many A 60 192.0.2.${i}`), ...Array.from({ length: 100 }, (_, i) => `more A 60 192.0.2.${i}`), ...Array.from({ length: 9 }, (_, i) => `l${i} CNAME 60 l${i + 1}.example.com`), 'l9 A 60 192.0.2.1',
];
const soa = 'example.com SOA 300 ns1.platform.test 2026112101';
const cut = ['sub.example.com NS 3600 ns1.sub.example.com', 'sub.example.com NS 3600 ns.other.net', 'sub.example.com DS 3600 {"keyTag":12345,"algorithm":13,"digestType":2,"digest":{"type":"Buffer","data":[0,255]}}'];

let server: DnsServer;
let at: At;
beforeAll(async () => {
  server = await startTestServer(new HandFeed([fullZone('example.com', zoneLines), fullZone('child.example.com', ['@ A 300 192.0.2.77'])]));
  at = addressOf(server);
});
afterAll(() => server.close());

const rcodeOf = (octets: Buffer): number => octets.readUInt16BE(2) & 0xf;
const brief = (packet: Decoded): unknown => ({ rcode: packet.rcode, aa: packet.flag_aa, answer: lines(packet.answers), authority: lines(packet.authorities) });

test.each([
  ['a name that exists', 'example.com', 'A', { rcode: 'NOERROR', aa: true, answer: ['example.com A 300 192.0.2.1'], authority: [] }],
  ['a type it does not have', 'a.b.c.example.com', 'MX', { rcode: 'NOERROR', aa: true, answer: [], authority: [soa] }],
  ['an empty non-terminal', 'b.c.example.com', 'A', { rcode: 'NOERROR', aa: true, answer: [], authority: [soa] }],
  ['a name that does not exist', 'nope.example.com', 'A', { rcode: 'NXDOMAIN', aa: true, answer: [], authority: [soa] }],
  ['a wildcard', 'q.wild.example.com', 'TXT', { rcode: 'NOERROR', aa: true, answer: ['q.wild.example.com TXT 300 hello'], authority: [] }],
  ['a wildcard over several labels', 'p.q.wild.example.com', 'TXT', { rcode: 'NOERROR', aa: true, answer: ['p.q.wild.example.com TXT 300 hello'], authority: [] }],
  ['a wildcard without the type', 'q.wild.example.com', 'A', { rcode: 'NOERROR', aa: true, answer: [], authority: [soa] }],
  ['an existing name, even empty, hides the wildcard', 'y.wild.example.com', 'TXT', { rcode: 'NOERROR', aa: true, answer: [], authority: [soa] }],
  ['and so do names below it', 'z.y.wild.example.com', 'TXT', { rcode: 'NXDOMAIN', aa: true, answer: [], authority: [soa] }],
  ['the wildcard itself', '*.wild.example.com', 'TXT', { rcode: 'NOERROR', aa: true, answer: ['*.wild.example.com TXT 300 hello'], authority: [] }],
  ['a wildcard CNAME', 'k.alias.example.com', 'A', { rcode: 'NOERROR', aa: true, answer: ['k.alias.example.com CNAME 60 www.example.com', 'www.example.com CNAME 300 example.com', 'example.com A 300 192.0.2.1'], authority: [] }],
  ['a CNAME itself', 'www.example.com', 'CNAME', { rcode: 'NOERROR', aa: true, answer: ['www.example.com CNAME 300 example.com'], authority: [] }],
  ['a CNAME to a type that is absent', 'www.example.com', 'AAAA', { rcode: 'NOERROR', aa: true, answer: ['www.example.com CNAME 300 example.com'], authority: [soa] }],
  ['a chain to a name that does not exist', 'c1.example.com', 'A', { rcode: 'NXDOMAIN', aa: true, answer: ['c1.example.com CNAME 60 c2.example.com', 'c2.example.com CNAME 60 nothere.example.com'], authority: [soa] }],
  ['a CNAME out of the zone', 'out.example.com', 'A', { rcode: 'NOERROR', aa: true, answer: ['out.example.com CNAME 60 www.example.net'], authority: [] }],
  ['a CNAME into a delegation', 'indel.example.com', 'A', { rcode: 'NOERROR', aa: true, answer: ['indel.example.com CNAME 60 foo.sub.example.com'], authority: cut }],
  ['a name below a cut', 'foo.sub.example.com', 'A', { rcode: 'NOERROR', aa: false, answer: [], authority: cut }],
  ['the cut itself', 'sub.example.com', 'NS', { rcode: 'NOERROR', aa: false, answer: [], authority: cut }],
  ['glue is no answer', 'ns1.sub.example.com', 'A', { rcode: 'NOERROR', aa: false, answer: [], authority: cut }],
  ['DS of the cut', 'sub.example.com', 'DS', { rcode: 'NOERROR', aa: true, answer: [cut[2]], authority: [] }],
  ['DS of a child zone served here, from above', 'child.example.com', 'DS', { rcode: 'NXDOMAIN', aa: true, answer: [], authority: [soa] }],
  ['the most specific zone', 'child.example.com', 'A', { rcode: 'NOERROR', aa: true, answer: ['child.example.com A 300 192.0.2.77'], authority: [] }],
  ['a zone that is not ours', 'example.org', 'A', { rcode: 'REFUSED', aa: false, answer: [], authority: [] }],
] as const)('%s', async (_, name, type, expected) => {
  expect(brief(await ask(at, name, type))).toEqual(expected);
  expect(brief(await ask(at, name, type))).toEqual(expected); // from the cache
});

test('glue stands beside a referral', async () => {
  expect(lines((await ask(at, 'foo.sub.example.com', 'A')).additionals)).toEqual(['ns1.sub.example.com A 3600 192.0.2.53']);
});

test('at most 8 CNAMEs are followed', async () => {
  expect((await ask(at, 'l0.example.com', 'A')).answers).toHaveLength(8);
  expect(lines((await ask(at, 'l2.example.com', 'A')).answers).at(-1)).toBe('l9.example.com A 60 192.0.2.1');
});

test('ANY is answered with one HINFO', async () => {
  expect((await ask(at, 'example.com', 'ANY')).answers).toMatchObject([{ type: 'HINFO', data: { cpu: 'RFC8482', os: '' } }]);
  expect((await ask(at, 'c.example.com', 'ANY')).answers).toEqual([]);
});

test('the question comes back byte for byte, in any spelling, cached or not', async () => {
  for (const name of ['WwW.eXaMpLe.CoM', 'www.example.COM', 'WwW.eXaMpLe.CoM']) {
    const query = queryFor(name, 'CNAME', { edns: 1232, id: 99, rd: true });
    const answer = await exchangeUdp(at, query);
    const question = query.subarray(12, 12 + name.length + 6);
    expect(answer.subarray(12, 12 + question.length)).toEqual(question);
    expect(decode(answer)).toMatchObject({ id: 99, flag_rd: true, flag_ra: false, flag_qr: true });
    expect(lines(decode(answer).answers).map((text) => text.toLowerCase())).toEqual(['www.example.com cname 300 example.com']);
  }
});

test('an answer over UDP is at most 512 octets, with EDNS what the client takes and at most 1232, else cut to nothing', async () => {
  const cases = [[undefined, 'many', 512], [512, 'many', 512], [1232, 'many', 1232], [4096, 'more', 1232], [100, 'many', 512]] as const;
  for (const [edns, name, most] of cases) {
    const octets = await exchangeUdp(at, queryFor(`${name}.example.com`, 'A', edns === undefined ? {} : { edns }));
    expect(octets.length).toBeLessThanOrEqual(most);
    const { flag_tc: cutShort, answers } = decode(octets);
    expect([cutShort, answers?.length]).toEqual(most === 1232 && name === 'many' ? [false, 60] : [true, 0]);
  }
  const [whole] = await exchangeTcp(at, [queryFor('more.example.com', 'A')]);
  expect(whole && decode(whole).answers).toHaveLength(100);
});

test('EDNS is answered with EDNS only when asked with it; REFUSED says why; DO is copied', async () => {
  expect(decode(await exchangeUdp(at, queryFor('example.com', 'A'))).additionals).toEqual([]);
  expect((await ask(at, 'example.org', 'A')).additionals).toMatchObject([{ type: 'OPT', udpPayloadSize: 1232, options: [{ code: 15, data: Buffer.from([0, 20]) }] }]);
  expect(decode(await exchangeUdp(at, queryFor('example.com', 'A', { edns: 1232, dnssecOk: true }))).additionals).toMatchObject([{ flag_do: true }]);
  expect((await ask(at, 'example.com', 'A')).additionals).toMatchObject([{ flag_do: false }]);
});

describe('requests that are not plain queries', () => {
  const query = queryFor('example.com', 'A', { edns: 1232 });
  const changed = (at_: number, octets: readonly number[]): Buffer => {
    const copy = Buffer.from(query);
    octets.forEach((octet, i) => copy.writeUInt8(octet, at_ + i));
    return copy;
  };
  const opt = query.subarray(query.length - 11);
  test.each([
    ['another opcode', changed(2, [0x28]), 4], ['no question', changed(4, [0, 0]), 1], ['two questions', changed(4, [0, 2]), 1], ['a lying count', changed(10, [0, 9]), 1], ['two OPT', Buffer.concat([changed(10, [0, 2]), opt]), 1],
    ['octets left over', Buffer.concat([query, Buffer.from([0])]), 1], ['a name cut short', query.subarray(0, 20), 1], ['class CH', changed(12 + 13 + 2, [0, 3]), 5], ['class ANY', changed(12 + 13 + 2, [0, 255]), 5], ['AXFR over UDP', changed(12 + 13, [0, 252]), 5],
    ['a pointer as name', changed(12, [0xc0, 12]), 1], ['an OPT not at the root', Buffer.concat([changed(10, [0, 2]).subarray(0, query.length - 11), Buffer.from([1, 0x61]), opt]), 1],
  ])('%s', async (_, octets, rcode) => {
    const answer = await exchangeUdp(at, octets);
    expect([rcodeOf(answer), answer.readUInt16BE(0), (answer[2] ?? 0) >> 7]).toEqual([rcode, 4711, 1]);
  });

  test('another opcode with EDNS is refused with EDNS (RFC 6891 §6.1.1)', async () => {
    expect(decode(await exchangeUdp(at, changed(2, [0x20]))).additionals).toMatchObject([{ type: 'OPT' }]);
  });

  test('an EDNS version we do not speak', async () => {
    const answer = decode(await exchangeUdp(at, changed(query.length - 11 + 6, [1])));
    expect([answer.rcode, answer.additionals]).toMatchObject(['NOERROR', [{ type: 'OPT', extendedRcode: 1, ednsVersion: 0 }]]);
  });

  test('unknown EDNS options are ignored, broken ones are not', () => {
    const store = new ZoneStore();
    store.apply(fullZone('example.com', ['@ A 300 192.0.2.1']));
    const responder = new Responder(store, { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
    const withOptions = (options: readonly number[]): Buffer => Buffer.concat([query.subarray(0, query.length - 2), Buffer.from([0, options.length, ...options])]);
    expect(rcodeOf(responder.respond(withOptions([0xff, 0xfe, 0, 2, 1, 2]), 'udp')?.octets ?? Buffer.alloc(4))).toBe(0);
    expect(rcodeOf(responder.respond(withOptions([0xff, 0xfe, 0, 9, 1, 2]), 'udp')?.octets ?? Buffer.alloc(4))).toBe(1);
  });

  test('what is too short or an answer itself is not answered', () => {
    const responder = new Responder(new ZoneStore(), { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
    expect(responder.respond(Buffer.alloc(11), 'udp')).toBeNull();
    expect(responder.respond(changed(2, [0x80]), 'udp')).toBeNull();
  });
});

test('answers are those of a second, naive implementation, whatever the zone', () => {
  const label = fc.constantFrom('a', 'b', 'c', '*');
  const name = fc.array(label, { maxLength: 4 }).map((labels) => labels.map((one, i) => (one === '*' && i > 0 ? 'd' : one)).join('.') || '@');
  const target = name.map((relative) => (relative === '@' ? 'example.com' : `${relative}.example.com`).replace(/^\*\./, 'w.'));
  const line = fc.oneof(
    name.map((owner) => `${owner} A 300 192.0.2.1`), name.map((owner) => `${owner} TXT 300 x`), fc.tuple(name, target).map(([owner, host]) => `${owner} CNAME 300 ${host}`),
    fc.tuple(name.filter((owner) => owner !== '@' && !owner.startsWith('*')), target).map(([owner, host]) => `${owner} NS 300 ${host}`),
  );
  const questions = fc.array(fc.tuple(name, fc.constantFrom('A', 'TXT', 'CNAME', 'NS', 'DS')), { minLength: 1, maxLength: 10 });
  fc.assert(fc.property(fc.array(line, { maxLength: 10 }), questions, (written, asked) => {
    const zone = fullZone('example.com', withoutConflicts(written));
    const store = new ZoneStore();
    store.apply(zone);
    const responder = new Responder(store, { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
    for (const [relative, type] of [...asked, ...asked]) {
      const question = relative === '@' ? 'example.com' : `${relative}.example.com`;
      const response = responder.respond(queryFor(question, type), 'tcp');
      const message = readMessage(response?.octets ?? Buffer.alloc(0));
      const texts = (section: 'answer' | 'authority' | 'additional'): string[] => message[section].map((record) => recordText(message, record)).map(({ name: owner, type: of, value }) => `${owner} ${of} ${value}`).sort();
      expect({ rcode: message.rcode, aa: (message.flags & 0x400) !== 0, answer: texts('answer'), authority: texts('authority'), additional: texts('additional') }).toEqual(naiveAnswer(zone.replace, 'example.com', question, type));
    }
  }), { numRuns: 600 });
});

/** Lines the rules would let in together: a CNAME alone at its name, no second one. */
function withoutConflicts(written: readonly string[]): string[] {
  const kept = new Map<string, RRset[]>();
  const apexOnly = written.filter((text) => !text.startsWith('@ CNAME'));
  return [...new Set(apexOnly)].filter((text) => {
    const [set] = rrsets('example.com', [text]);
    if (!set) return false;
    const there = kept.get(set.name) ?? [];
    const clashes = set.type === 'CNAME' ? there.length > 0 : there.some(({ type }) => type === 'CNAME');
    if (!clashes) kept.set(set.name, [...there, set]);
    return !clashes;
  });
}
