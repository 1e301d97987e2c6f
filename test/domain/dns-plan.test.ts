import fc from 'fast-check';
import { planWrites, type Plan, type PlannedRecord, type RecordFields } from '../../src/dns/rules/plan';
import type { ZoneRecord } from '../../src/dns/rules/rrset';

const rules = { domain: 'example.com', platformPorts: new Set([3000]) };
const contents = { A: '8.8.8.8', AAAA: '2606:4700::1', TXT: 'text', CNAME: 'a.example.net', MX: 'mail.example.net', NS: 'ns.example.net', CAA: '0 issue "ca.example"' } as const;
const record = (id: string, type: ZoneRecord['type'], more: Partial<PlannedRecord> = {}): PlannedRecord => ({
  id, type, name: 'www', value: contents[type], ttl: 300, priority: null, proxied: false, originProtocol: null, originPort: null, originPath: null, originHostHeader: null, comment: null, ...more,
});
const creation = (id: string, type: ZoneRecord['type'], fields: RecordFields = {}) =>
  ({ type, fields: { name: 'www', value: contents[type], ...fields }, make: (blank: Omit<PlannedRecord, 'id'>) => ({ ...blank, id }) });
const none = { deletes: [], updates: [], creates: [] };
const create = (before: PlannedRecord[], type: ZoneRecord['type'], fields: RecordFields = {}): Plan<PlannedRecord> => planWrites(rules, before, { ...none, creates: [creation('n', type, fields)] });
const update = (before: PlannedRecord[], target: PlannedRecord, fields: RecordFields): Plan<PlannedRecord> => planWrites(rules, before, { ...none, updates: [{ record: target, fields }] });
const proxied = { proxied: true, originProtocol: 'https', originPort: 8443 } as const;

test('a new record takes the ttl of its set and the settings of its pool, else 300 and none', () => {
  expect(create([], 'A').created).toEqual([record('n', 'A')]);
  const there = [record('a', 'A', { ttl: 600, ...proxied }), record('t', 'TXT', { ttl: 900 })];
  expect(create(there, 'A')).toMatchObject({ created: [record('n', 'A', { ttl: 600, ...proxied })], affected: [], issues: [] });
  expect(create(there, 'AAAA').created).toMatchObject([{ ttl: 300, ...proxied }]);
  expect(create(there, 'TXT').created).toMatchObject([{ ttl: 900, proxied: false }]);
  expect(create(there, 'A', { ttl: null, originPort: null }).created).toMatchObject([{ ttl: 600, originPort: 8443 }]);
});

test('a ttl that is given becomes the set\'s', () => {
  const there = [record('a', 'A', { ttl: 600 }), record('b', 'A', { ttl: 600 }), record('c', 'AAAA', { ttl: 600 })];
  const { created, affected } = create(there, 'A', { ttl: 120 });
  expect([created[0]?.ttl, affected.map(({ id, ttl }) => [id, ttl])]).toEqual([120, [['a', 120], ['b', 120]]]);
});

test('settings given to a new record that differ from its pool\'s stay as they are, and the pool as it is', () => {
  expect(create([record('a', 'A', proxied)], 'A', { proxied: false })).toMatchObject({ created: [{ proxied: false, originPort: null }], affected: [], issues: [] });
});

test('settings given to a changed record become its pool\'s; without proxy there is no origin', () => {
  const before = record('a', 'A', proxied);
  const there = [before, record('b', 'AAAA', { ttl: 900, ...proxied }), record('t', 'TXT')];
  const changed = update(there, before, { originPort: null, originPath: '/x' });
  expect(changed.named).toMatchObject([{ proxied: true, originProtocol: 'https', originPort: null, originPath: '/x' }]);
  expect(changed.affected).toEqual([record('b', 'AAAA', { ttl: 900, proxied: true, originProtocol: 'https', originPath: '/x' })]);
  expect(update(there, before, { proxied: false })).toMatchObject({ updated: [record('a', 'A')], affected: [record('b', 'AAAA', { ttl: 900 })] });
  expect(update([record('a', 'A')], record('a', 'A'), { proxied: true }).updated).toMatchObject([{ proxied: true, originProtocol: 'http', originPort: null }]);
});

test('null clears the ttl to 300 and the priority to 10, and what is not given stays', () => {
  const before = record('a', 'A', { ttl: 900, ...proxied });
  expect(update([before], before, { ttl: null }).updated).toEqual([record('a', 'A', proxied)]);
  const mx = record('m', 'MX', { priority: 5, comment: 'x' });
  expect(update([mx], mx, { priority: null, comment: null }).updated).toEqual([record('m', 'MX', { priority: 10 })]);
  expect(update([mx], mx, { value: 'MAIL.example.net.', priority: 5 })).toMatchObject({ updated: [], affected: [], named: [mx] });
});

test('under another name a record joins what is there, or keeps its own', () => {
  const before = record('a', 'A', { ttl: 900, ...proxied });
  expect(update([before], before, { name: 'other' }).updated).toEqual([{ ...before, name: 'other' }]);
  const there = record('o', 'A', { name: 'other', ttl: 120 });
  expect(update([before, there], before, { name: 'other' })).toMatchObject({ updated: [record('a', 'A', { name: 'other', ttl: 120 })], affected: [] });
  expect(update([before, there], before, { name: 'other', proxied: true, originProtocol: 'https' }).affected).toMatchObject([{ id: 'o', proxied: true, originProtocol: 'https' }]);
});

test('a restored record takes what its set and pool have now', () => {
  const deleted = record('a', 'A', { ttl: 900, ...proxied });
  expect(update([], deleted, {}).updated).toEqual([deleted]);
  expect(update([record('b', 'A', { ttl: 60 })], deleted, {}).updated).toEqual([record('a', 'A', { ttl: 60 })]);
  expect(update([record('b', 'AAAA', { ttl: 60 })], deleted, {}).updated).toEqual([record('a', 'A', { ttl: 900 })]);
});

test('every fault of every write is told, with its place', () => {
  const { issues } = planWrites(rules, [record('a', 'A')], {
    deletes: [], updates: [{ record: record('a', 'A'), fields: { ttl: 59, originPort: 80 } }],
    creates: [creation('n', 'A', { name: 'bad name', value: '1.2.3', ttl: 86_401, proxied: true, originPort: 25, originPath: 'x', originHostHeader: 'a b' }), creation('m', 'A', { proxied: true, originPort: 3000 })],
  });
  expect(issues.map(({ path }) => path)).toEqual([
    'updates.0.ttl', 'updates.0.originPort', 'creates.0.name', 'creates.0.ttl', 'creates.0.value', 'creates.0.originPort', 'creates.0.originPath', 'creates.0.originHostHeader', 'creates.1.originPort',
  ]);
});

test('after any writes every set has one ttl and every pool one setting, and what differs is told', () => {
  const type = fc.constantFrom('A' as const, 'AAAA' as const, 'TXT' as const);
  const ttl = fc.option(fc.integer({ min: 60, max: 900 }), { nil: undefined });
  const given = fc.oneof(
    fc.record({ ttl, proxied: fc.boolean() }, { requiredKeys: [] }),
    fc.record({ ttl, proxied: fc.constant(true), originPort: fc.option(fc.constant(8080)) }, { requiredKeys: ['proxied'] }), // an origin without proxy is refused before
  );
  const write = fc.record({ kind: fc.constantFrom('create', 'change', 'move', 'delete', 'restore'), type, name: fc.constantFrom('www', 'b'), pick: fc.nat(20), given });
  fc.assert(fc.property(fc.array(fc.array(write, { minLength: 1, maxLength: 3 }), { maxLength: 10 }), (transactions) => {
    let state: PlannedRecord[] = [];
    let deleted: PlannedRecord[] = [];
    let count = 0;
    for (const writes of transactions) {
      const target = (pick: number) => state[pick % Math.max(1, state.length)];
      const deletes = writes.flatMap(({ kind, pick }) => (kind === 'delete' ? target(pick) ?? [] : []));
      const live = (one: PlannedRecord | undefined): one is PlannedRecord => one !== undefined && !deletes.includes(one);
      const updates = writes.flatMap(({ kind, pick, name, given: asked }) => {
        const one = kind === 'restore' ? deleted[pick % Math.max(1, deleted.length)] : target(pick);
        if (kind === 'create' || kind === 'delete' || !live(one)) return [];
        const fields = one.type === 'TXT' ? { ttl: asked.ttl } : asked;
        return [{ record: one, fields: kind === 'restore' ? {} : kind === 'move' ? { ...fields, name } : fields }];
      });
      const creates = writes.flatMap(({ kind, type: of, name, given: asked }) => (kind === 'create' ? [creation(`r${count++}`, of, { name, ttl: asked.ttl })] : []));
      const plan = planWrites(rules, state, { deletes, updates, creates });
      expect(plan.issues).toEqual([]);
      const before = new Map(state.map((one) => [one.id, one]));
      const told = new Set([...plan.created, ...plan.updated, ...plan.affected].map(({ id }) => id));
      for (const one of plan.after) expect([one.id, told.has(one.id)]).toEqual([one.id, JSON.stringify(before.get(one.id)) !== JSON.stringify(one)]);
      expect(new Set(plan.after.map(({ id }) => id))).toEqual(new Set([...state.filter((one) => !deletes.includes(one)), ...updates.map(({ record: one }) => one)].map(({ id }) => id).concat(plan.created.map(({ id }) => id))));
      deleted = [...deleted, ...deletes].filter(({ id }) => !plan.after.some((one) => one.id === id));
      state = plan.after;
    }
    for (const a of state) {
      for (const b of state.filter(({ name }) => name === a.name)) {
        if (a.type === b.type) expect(a.ttl).toBe(b.ttl);
        if (a.type !== 'TXT' && b.type !== 'TXT') expect([a.proxied, a.originPort]).toEqual([b.proxied, b.originPort]);
      }
    }
  }), { numRuns: 300 });
});
