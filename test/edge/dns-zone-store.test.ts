import fc from 'fast-check';
import type { ZoneChangeSet } from '../../src/dns/ports';
import { MalformedDns } from '../../src/dns/rules/wire/name';
import { RateLimiter } from '../../src/edge/dns/rate-limit';
import { Responder } from '../../src/edge/dns/responder';
import { snapshot, ZoneStore } from '../../src/edge/dns/zone-store';
import { newId } from '../../src/core/ids';
import { textName } from '../../src/dns/rules/wire/name';
import { decode, lines, queryFor } from '../support/dns-client';
import { fullZone, rrsets } from '../support/dns-feed';

const zoneId = newId('zone');
const diff = (fromVersion: number, replace: readonly string[], remove: ZoneChangeSet['remove'] = []): ZoneChangeSet => ({
  zoneId, domain: 'example.com', version: fromVersion + 1, fromVersion, serial: fromVersion + 1, kind: 'diff', replace: rrsets('example.com', replace), remove,
});
const asker = (store: ZoneStore) => {
  const responder = new Responder(store, { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
  return (name: string, type = 'A'): string => {
    const response = responder.respond(queryFor(name, type, { edns: 1232 }), 'udp');
    const packet = decode(response?.octets ?? Buffer.alloc(0));
    return [packet.rcode, ...lines(packet.answers)].join(' ');
  };
};

test('a step is taken only from the version it starts at, once, and shows at once in answers that were cached', () => {
  const store = new ZoneStore();
  const ask = asker(store);
  expect(store.apply(diff(1, ['www A 300 192.0.2.2']))).toBe('gap');
  expect(store.apply(fullZone('example.com', ['www A 300 192.0.2.1', 'old TXT 300 x'], { zoneId }))).toBe('applied');
  expect(ask('www.example.com')).toBe('NOERROR www.example.com A 300 192.0.2.1');
  expect(ask('old.example.com', 'TXT')).toMatch(/^NOERROR old/);
  expect(store.apply(diff(1, ['www A 300 192.0.2.2'], [{ name: 'old.example.com', type: 'TXT' }]))).toBe('applied');
  expect(ask('www.example.com')).toBe('NOERROR www.example.com A 300 192.0.2.2');
  expect(ask('old.example.com', 'TXT')).toBe('NXDOMAIN');
  expect(store.apply(diff(1, ['www A 300 192.0.2.3']))).toBe('stale');
  expect(store.apply(diff(3, ['www A 300 192.0.2.3']))).toBe('gap');
  expect(store.apply(fullZone('example.com', [], { zoneId, version: 1 }))).toBe('stale');
  expect(ask('www.example.com')).toBe('NOERROR www.example.com A 300 192.0.2.2');
});

test('a change that cannot be encoded changes nothing', () => {
  const store = new ZoneStore();
  const ask = asker(store);
  store.apply(fullZone('example.com', ['www A 300 192.0.2.1'], { zoneId }));
  for (const bad of [['www A 300 192.0.2.9', 'x A 300 not-an-address'], ['www A 300 192.0.2.9', 'x CAA 300 nonsense']]) expect(() => store.apply(diff(1, bad))).toThrow(MalformedDns);
  expect(() => store.apply({ ...diff(1, []), replace: [{ name: 'example.org', type: 'A', ttl: 60, values: ['192.0.2.9'] }] })).toThrow(MalformedDns);
  expect(() => store.apply(diff(1, ['www A 300 192.0.2.9'], [{ name: 'example.com', type: 'SOA' }]))).toThrow(MalformedDns);
  expect(() => store.apply({ ...fullZone('example.com', ['www A 300 192.0.2.9'], { zoneId, version: 2 }), replace: [] })).toThrow(MalformedDns);
  expect(ask('www.example.com')).toBe('NOERROR www.example.com A 300 192.0.2.1');
  expect(store.get('example.com')?.version).toBe(1);
});

test('zones added and removed change who answers, also what was cached', () => {
  const store = new ZoneStore();
  const ask = asker(store);
  store.apply(fullZone('example.com', ['*.sub A 300 192.0.2.1'], { zoneId }));
  expect(ask('www.sub.example.com')).toBe('NOERROR www.sub.example.com A 300 192.0.2.1');
  store.apply(fullZone('sub.example.com', ['www A 300 192.0.2.2']));
  expect(ask('www.sub.example.com')).toBe('NOERROR www.sub.example.com A 300 192.0.2.2');
  store.apply({ ...fullZone('sub.example.com', []), kind: 'remove' });
  expect(ask('www.sub.example.com')).toBe('NOERROR www.sub.example.com A 300 192.0.2.1');
  store.apply({ ...fullZone('example.com', [], { zoneId }), kind: 'remove' });
  expect(ask('www.sub.example.com')).toBe('REFUSED');
});

test('the end of one claim does not end another on the same name', () => {
  const store = new ZoneStore();
  store.apply(fullZone('example.com', ['@ A 300 192.0.2.1'], { zoneId, version: 9 }));
  store.apply(fullZone('example.com', ['@ A 300 192.0.2.2'], { zoneId: newId('zone'), version: 1 }));
  expect(store.apply({ ...fullZone('example.com', [], { zoneId, version: 10 }), kind: 'remove' })).toBe('stale');
  expect(asker(store)('example.com')).toBe('NOERROR example.com A 300 192.0.2.2');
});

test('any sequence of steps ends in the same zone as loading its end', () => {
  const owner = fc.constantFrom('a', 'b.a', 'c.b.a', '*.a', 'x.y.z');
  const change = fc.record({ put: fc.array(fc.tuple(owner, fc.nat(250)), { maxLength: 4 }), drop: fc.array(owner, { maxLength: 3 }) });
  fc.assert(fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
    const stepped = new ZoneStore();
    stepped.apply(fullZone('example.com', [], { zoneId }));
    const state = new Map<string, number>();
    changes.forEach(({ put, drop }, i) => {
      const last = new Map(put);
      const dropped = drop.filter((name) => !last.has(name));
      for (const name of dropped) state.delete(name);
      for (const [name, octet] of last) state.set(name, octet);
      stepped.apply(diff(i + 1, [...last].map(([name, octet]) => `${name} A 300 192.0.2.${octet}`), dropped.map((name) => ({ name: `${name}.example.com`, type: 'A' }))));
    });
    const loaded = new ZoneStore();
    loaded.apply(fullZone('example.com', [...state].map(([name, octet]) => `${name} A 300 192.0.2.${octet}`), { zoneId }));
    const rows = (store: ZoneStore): string[] => snapshot(store.get('example.com') ?? fail()).filter(({ set }) => set.typeName !== 'SOA').map(({ owner: name, set }) => `${textName(name)} ${set.typeName} ${JSON.stringify(set.rdatas)}`).sort();
    expect(rows(stepped)).toEqual(rows(loaded));
    expect([...(stepped.get('example.com')?.nodes.keys() ?? [])].sort()).toEqual([...(loaded.get('example.com')?.nodes.keys() ?? [])].sort());
  }), { numRuns: 300 });
});

function fail(): never {
  throw new Error('the zone is not there');
}

test('queries are counted per zone, cached ones too, over versions and once after its end', () => {
  const store = new ZoneStore();
  const ask = asker(store);
  store.apply(fullZone('example.com', ['www A 300 192.0.2.1'], { zoneId }));
  store.apply(fullZone('platform.test', ['www A 300 192.0.2.1']));
  for (let i = 0; i < 3; i++) ask('www.example.com');
  ask('www.platform.test');
  store.apply(diff(1, ['www A 300 192.0.2.2']));
  ask('nope.example.com');
  expect(store.counts.take()).toEqual([{ zoneId, queries: 4 }]);
  expect(store.counts.take()).toEqual([]);
  ask('www.example.com');
  store.apply({ ...fullZone('example.com', [], { zoneId, version: 3 }), kind: 'remove' });
  expect(store.counts.take()).toEqual([{ zoneId, queries: 1 }]);
  expect(store.counts.take()).toEqual([]);
});

describe('rate limit', () => {
  let nowMs = 0;
  const limiter = (exempt: readonly string[] = []): RateLimiter => new RateLimiter({ perSecond: 5, exempt }, () => nowMs);
  const judge = (of: RateLimiter, address: string, key = 'a', times = 9): string => Array.from({ length: times }, () => of.judge(address, key).charAt(0)).join('');
  beforeEach(() => (nowMs = 1000));

  test('beyond the rate every second answer is cut, the others are not sent', () => expect(judge(limiter(), '192.0.2.1')).toBe('sssssdtdt'));

  test('a network shares its budget per equal answer', () => {
    const shared = limiter();
    expect([judge(shared, '192.0.2.1', 'a', 5), judge(shared, '192.0.2.200', 'a', 1), judge(shared, '192.0.3.1', 'a', 1), judge(shared, '192.0.2.1', 'b', 1)]).toEqual(['sssss', 'd', 's', 's']);
    expect([judge(shared, '2001:db8:1:100::1', 'a', 5), judge(shared, '2001:db8:1:1ff::9', 'a', 1), judge(shared, '2001:db8:1:200::1', 'a', 1)]).toEqual(['sssss', 'd', 's']);
  });

  test('it comes back with time, and exempt networks have none', () => {
    const one = limiter(['127.0.0.0/8', '2001:db8::/32']);
    expect(judge(one, '192.0.2.1', 'a', 6)).toBe('sssssd');
    nowMs += 400;
    expect(judge(one, '192.0.2.1', 'a', 3)).toBe('sst');
    expect(judge(one, '127.0.0.9', 'a', 20)).toBe('s'.repeat(20));
    expect(judge(one, '2001:db8::9', 'a', 20)).toBe('s'.repeat(20));
  });

  test('negative answers of a zone count together, answers of a wildcard as well', () => {
    const store = new ZoneStore();
    store.apply(fullZone('example.com', ['*.w A 300 192.0.2.1', 'a A 300 192.0.2.1', 'b A 300 192.0.2.1']));
    const responder = new Responder(store, { keyOf: () => undefined, nowSeconds: () => 0, onFault: (error) => { throw error; } });
    const keys = (...names: string[]): number => new Set(names.map((name) => responder.respond(queryFor(`${name}.example.com`, 'A'), 'udp')?.limitKey)).size;
    expect([keys('x', 'y', 'z.z'), keys('1.w', '2.w', '3.4.w'), keys('a', 'b')]).toEqual([1, 1, 2]);
  });
});
