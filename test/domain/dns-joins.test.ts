import fc from 'fast-check';
import { joinChanged, joinCreated, joinRestored } from '../../src/dns/rules/record-joins';
import { RecordIndex } from '../../src/dns/rules/record-index';
import type { ZoneRecord } from '../../src/dns/rules/rrset';

const record = (id: string, type: ZoneRecord['type'], more: Partial<ZoneRecord> = {}): ZoneRecord => ({
  id, type, name: 'www', value: `value of ${id}`, ttl: 300, priority: null, proxied: false, originProtocol: null, originPort: null, originPath: null, originHostHeader: null, ...more,
});
const own = (id: string, type: ZoneRecord['type'], name = 'www') => ({ id, type, name, value: `value of ${id}`, priority: null });
const zone = (...records: ZoneRecord[]): RecordIndex => new RecordIndex('example.com', records);
const proxied = { proxied: true, originProtocol: 'https', originPort: 8443 } as const;

test('a new record takes the ttl of its set and the settings of its pool, else 300 and none', () => {
  expect(joinCreated(zone(), own('n', 'A'), {}).record).toEqual(record('n', 'A'));
  const there = [record('a', 'A', { ttl: 600, ...proxied }), record('t', 'TXT', { ttl: 900 })];
  expect(joinCreated(zone(...there), own('n', 'A'), {})).toEqual({ record: record('n', 'A', { ttl: 600, ...proxied }), affected: [] });
  expect(joinCreated(zone(...there), own('n', 'AAAA'), {}).record).toMatchObject({ ttl: 300, ...proxied });
  expect(joinCreated(zone(...there), own('n', 'TXT'), {}).record).toMatchObject({ ttl: 900, proxied: false });
});

test('a ttl that is given becomes the set\'s', () => {
  const there = zone(record('a', 'A', { ttl: 600 }), record('b', 'A', { ttl: 600 }), record('c', 'AAAA', { ttl: 600 }));
  const { record: created, affected } = joinCreated(there, own('n', 'A'), { ttl: 120 });
  expect([created.ttl, affected.map(({ id, ttl }) => [id, ttl])]).toEqual([120, [['a', 120], ['b', 120]]]);
});

test('settings given to a new record that differ from its pool\'s stay as they are, and the pool as it is', () => {
  const { record: created, affected } = joinCreated(zone(record('a', 'A', proxied)), own('n', 'A'), { proxied: false });
  expect([created.proxied, created.originPort, affected]).toEqual([false, null, []]);
});

test('settings given to a changed record become its pool\'s; without proxy there is no origin', () => {
  const there = [record('b', 'AAAA', { ttl: 900, ...proxied }), record('t', 'TXT')];
  const before = record('a', 'A', proxied);
  const changed = joinChanged(zone(...there), before, own('a', 'A'), { originPort: null, originPath: '/x' });
  expect(changed.record).toMatchObject({ proxied: true, originProtocol: 'https', originPort: null, originPath: '/x' });
  expect(changed.affected).toEqual([record('b', 'AAAA', { ttl: 900, proxied: true, originProtocol: 'https', originPath: '/x' })]);
  expect(joinChanged(zone(...there), before, own('a', 'A'), { proxied: false })).toEqual({ record: record('a', 'A'), affected: [record('b', 'AAAA', { ttl: 900 })] });
});

test('null clears the ttl to 300, and what is not given stays', () => {
  expect(joinChanged(zone(), record('a', 'A', { ttl: 900, ...proxied }), own('a', 'A'), { ttl: null }).record).toEqual(record('a', 'A', proxied));
});

test('under another name a record joins what is there, or keeps its own', () => {
  const before = record('a', 'A', { ttl: 900, ...proxied });
  const moved = { ...own('a', 'A', 'other') };
  expect(joinChanged(zone(), before, moved, {}).record).toEqual({ ...before, name: 'other' });
  const there = record('o', 'A', { name: 'other', ttl: 120 });
  expect(joinChanged(zone(there), before, moved, {})).toEqual({ record: { ...before, name: 'other', ttl: 120, proxied: false, originProtocol: null, originPort: null }, affected: [] });
});

test('a restored record takes what its set and pool have now', () => {
  const deleted = record('a', 'A', { ttl: 900, ...proxied });
  expect(joinRestored(zone(), deleted)).toEqual(deleted);
  expect(joinRestored(zone(record('b', 'A', { ttl: 60 })), deleted)).toEqual(record('a', 'A', { ttl: 60 }));
  expect(joinRestored(zone(record('b', 'AAAA', { ttl: 60 })), deleted)).toEqual(record('a', 'A', { ttl: 900 }));
});

test('after any change every set has one ttl and every pool one setting', () => {
  const type = fc.constantFrom('A' as const, 'AAAA' as const, 'TXT' as const);
  const ttl = fc.option(fc.integer({ min: 60, max: 900 }));
  const given = fc.oneof(
    fc.record({ ttl, proxied: fc.boolean() }, { requiredKeys: [] }),
    fc.record({ ttl, proxied: fc.constant(true), originPort: fc.option(fc.constant(8080)) }, { requiredKeys: ['proxied'] }), // an origin without proxy is refused before
  );
  const change = fc.record({ kind: fc.constantFrom('create', 'change', 'move'), type, name: fc.constantFrom('www', 'b'), pick: fc.nat(20), given });
  fc.assert(fc.property(fc.array(change, { maxLength: 15 }), (changes) => {
    let state: ZoneRecord[] = [];
    changes.forEach(({ kind, type: of, name, pick, given: asked }, i) => {
      const before = state[pick % Math.max(1, state.length)];
      const target = kind === 'create' || !before ? null : before;
      const wanted = (target?.type ?? of) === 'TXT' ? { ttl: asked.ttl } : asked;
      const others = zone(...state.filter((other) => other !== target));
      const joined = target
        ? joinChanged(others, target, own(target.id, target.type, kind === 'move' ? name : target.name), wanted)
        : joinCreated(others, own(`r${i}`, of, name), { ttl: wanted.ttl });
      const after = new Map([...joined.affected, joined.record].map((one) => [one.id, one]));
      state = [...state.filter((other) => !after.has(other.id)), ...after.values()];
    });
    for (const a of state) {
      for (const b of state.filter(({ name }) => name === a.name)) {
        if (a.type === b.type) expect(a.ttl).toBe(b.ttl);
        if (a.type !== 'TXT' && b.type !== 'TXT') expect([a.proxied, a.originPort]).toEqual([b.proxied, b.originPort]);
      }
    }
  }), { numRuns: 500 });
});
