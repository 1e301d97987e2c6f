import fc from 'fast-check';
import { rrsetsOf, transferZone } from '../../src/adapters/dns-backend/axfr-client';
import { changeSetOf } from '../../src/dns/rules/change-set';
import { findConflict } from '../../src/dns/rules/conflicts';
import { recordKey } from '../../src/dns/rules/managed-records';
import { mayBeOrigin } from '../../src/dns/rules/platform';
import { planWrites, type Creation, type PlannedRecord, type RecordFields, type Writes } from '../../src/dns/rules/plan';
import { RecordIndex } from '../../src/dns/rules/record-index';
import { canonicalRecord } from '../../src/dns/rules/values';
import { loadZone } from '../../src/dns/store/zones';
import { platformTransferKeys } from '../../src/dns/rules/transfer-key';
import { withDnsWorld } from '../support/dns-world';
import { naiveAnswer } from '../support/naive-dns';
import { rounds } from '../support/rounds';
import type { Tenant } from '../support/tenant';
import { until } from '../support/until';

/**
 * Contract dns.md §10: the API, every server's answers and a zone transfer say the same as a model that holds the zone in
 * memory and knows it whole, after random writes of all kinds. The product reads only the rows a write needs.
 */
const world = withDnsWorld(50);
const domain = 'model.test';
const names = ['www', 'a', 'b.a', '*', '*.a', '@', '_s.t', 'sub', 'ns1.sub', 'x.sub', 'c1', 'c2', 'c3'] as const;
const hosts = ['www', 'a', 'b.a', 'x.y', 'c1', 'c2', 'c3', 'sub', 'q.sub'].map((name) => `${name}.${domain}`);

type Spec = { type: PlannedRecord['type']; name: string; value: string; ttl?: number; priority?: number; proxied?: boolean; originPort?: number };
const name = fc.constantFrom(...names);
const ttl = fc.option(fc.constantFrom(60, 300, 900), { nil: undefined });
const pool = fc.constantFrom({}, {}, {}, {}, { proxied: false }, { proxied: true }, { proxied: true, originPort: 8443 });
const content = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant('A' as const), value: fc.constantFrom('8.8.8.8', '8.8.4.4', '10.0.0.1') }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('AAAA' as const), value: fc.constantFrom('2606:4700::1', '2606:4700::2', '::ffff:808:808') }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('CNAME' as const), value: fc.constantFrom(...hosts, 'x.example.net') }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('MX' as const), value: fc.constantFrom('mail.example.net', `www.${domain}`), priority: fc.constantFrom(0, 10) }) },
  { weight: 1, arbitrary: fc.constant({ type: 'MX' as const, value: '.', priority: 0 }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('TXT' as const), value: fc.constantFrom('x', 'y z') }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('NS' as const), value: fc.constantFrom(`ns1.sub.${domain}`, 'ns.example.net') }) },
  { weight: 1, arbitrary: fc.constant({ type: 'CAA' as const, value: '0 issue "ca.example"' }) },
);
const spec: fc.Arbitrary<Spec> = fc.tuple(content, name, ttl, pool).map(([what, at, seconds, settings]) => JSON.parse(JSON.stringify(
  { ...what, name: at, ttl: seconds, ...(what.type === 'A' || what.type === 'AAAA' || what.type === 'CNAME' ? settings : {}) })));
const fields: fc.Arbitrary<RecordFields> = fc.record({
  name: fc.option(name, { nil: undefined, freq: 3 }), ttl: fc.option(fc.constantFrom(60, 900, null), { nil: undefined }), proxied: fc.constantFrom(undefined, undefined, undefined, undefined, true, false),
  comment: fc.option(fc.constantFrom('c', null), { nil: undefined }),
}).map((given) => JSON.parse(JSON.stringify(Object.values(given).every((one) => one === undefined) ? { comment: 'given' } : given)));
const pick = fc.nat(30);
const write = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('create' as const), spec }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('patch' as const), pick, fields }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('bulk' as const), picks: fc.array(pick, { minLength: 1, maxLength: 4 }) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('batch' as const), deletes: fc.array(pick, { maxLength: 2 }), updates: fc.array(fc.record({ pick, fields }), { maxLength: 3 }), creates: fc.array(spec, { minLength: 1, maxLength: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('import' as const), strategy: fc.constantFrom('merge' as const, 'replace' as const), lines: fc.array(spec, { minLength: 1, maxLength: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('version' as const), pick }) },
);
type Write = typeof write extends fc.Arbitrary<infer W> ? W : never;

/** What the model says a write leads to. */
type Expected = { code: string } | { after: PlannedRecord[]; created: PlannedRecord[]; changed: boolean };

class Model {
  active: PlannedRecord[] = [];
  deleted: PlannedRecord[] = [];
  readonly versions: { version: number; active: PlannedRecord[] }[] = [];
  constructor(readonly rules: { domain: string; platformPorts: ReadonlySet<number> }) {}

  at(picked: number): PlannedRecord | undefined {
    return this.active[picked % Math.max(1, this.active.length)];
  }

  writes(given: Partial<Writes<PlannedRecord>>): Expected {
    const plan = planWrites(this.rules, this.active, { deletes: [], updates: [], creates: [], ...given });
    if (plan.issues.length > 0) return { code: 'validation_error' };
    return this.judge(plan.after, [...plan.created, ...plan.updated, ...plan.affected], plan.created, plan.deleted.length > 0);
  }

  judge(after: PlannedRecord[], written: PlannedRecord[], created: PlannedRecord[], deletes: boolean): Expected {
    const conflict = findConflict(new RecordIndex(domain, after), written, { mayBeOrigin: (address) => mayBeOrigin(world.api.deps.dnsPlatform, address) });
    if (conflict) return { code: conflict.code };
    const proxied = proxiedNames(after);
    if (proxied > proxiedNames(this.active) && proxied > 5) return { code: 'quota_exceeded' };
    return { after, created, changed: deletes || written.length > 0 };
  }

  took(after: PlannedRecord[], version: number): void {
    const staying = new Set(after.map(({ id }) => id));
    this.deleted = [...this.deleted, ...this.active].filter(({ id }) => !staying.has(id));
    this.active = after;
    this.versions.push({ version, active: after });
  }
}

const proxiedNames = (records: readonly PlannedRecord[]): number => new Set(records.filter(({ proxied }) => proxied).map((record) => record.name)).size;
let made = 0;
const creation = ({ type, ...rest }: Spec): Creation<PlannedRecord> => ({ type, fields: rest, make: (blank) => ({ ...blank, id: `new_${made++}` }) });
const shown = ({ id, type, name: at, value, ttl: seconds, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment }: PlannedRecord) =>
  ({ id, type, name: at, value, ttl: seconds, priority, proxied, originProtocol, originPort, originPath, originHostHeader, comment });
const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);

type Request = { method: string; path: string; json?: object; expected: Expected };

/** The request for a write, and what the model expects of it; null when there is nothing to write to. */
function requestOf(model: Model, wish: Write): Request | null {
  switch (wish.kind) {
    case 'create': return { method: 'POST', path: '/records', json: wish.spec, expected: model.writes({ creates: [creation(wish.spec)] }) };
    case 'patch': {
      const record = model.at(wish.pick);
      return record ? { method: 'PATCH', path: `/records/${record.id}`, json: wish.fields, expected: model.writes({ updates: [{ record, fields: wish.fields }] }) } : null;
    }
    case 'delete': {
      const record = model.at(wish.pick);
      return record ? { method: 'DELETE', path: `/records/${record.id}`, expected: model.writes({ deletes: [record] }) } : null;
    }
    case 'restore': {
      const record = model.deleted[wish.pick % Math.max(1, model.deleted.length)];
      return record ? { method: 'POST', path: `/records/${record.id}/restore`, expected: model.writes({ updates: [{ record, fields: {} }] }) } : null;
    }
    case 'bulk': {
      const deletes = [...new Set(wish.picks.flatMap((picked) => model.at(picked) ?? []))];
      return deletes.length > 0 ? { method: 'POST', path: '/records/bulk-delete', json: { recordIds: deletes.map(({ id }) => id) }, expected: model.writes({ deletes }) } : null;
    }
    case 'batch': return batchOf(model, wish);
    case 'import': return importOf(model, wish);
    case 'version': return versionOf(model, wish.pick);
  }
}

function batchOf(model: Model, wish: Extract<Write, { kind: 'batch' }>): Request {
  const deletes = [...new Set(wish.deletes.flatMap((picked) => model.at(picked) ?? []))];
  const updates = wish.updates.flatMap(({ pick: picked, fields: given }) => {
    const record = model.at(picked);
    return record && !deletes.includes(record) ? [{ record, fields: given }] : [];
  }).filter(({ record }, i, all) => all.findIndex((other) => other.record === record) === i);
  return {
    method: 'POST', path: '/records/batch', expected: model.writes({ deletes, updates, creates: wish.creates.map(creation) }),
    json: { deletes: deletes.map(({ id }) => id), updates: updates.map(({ record, fields: given }) => ({ id: record.id, ...given })), creates: wish.creates },
  };
}

function importOf(model: Model, { strategy, lines }: Extract<Write, { kind: 'import' }>): Request {
  const wanted = new Map<string, Spec>();
  for (const line of lines) {
    const draft = { ...line, priority: line.priority ?? null, proxied: false };
    const first = lines.find(({ type, name: at }) => type === line.type && at === line.name);
    const key = recordKey(draft);
    if (!canonicalRecord(draft, domain).faults && !wanted.has(key)) wanted.set(key, { type: line.type, name: line.name, value: line.value, ttl: first?.ttl ?? 300, ...(line.priority === undefined ? {} : { priority: line.priority }) });
  }
  const whole: RecordFields = strategy === 'replace' ? { proxied: false, originProtocol: null, originPort: null, originPath: null, originHostHeader: null, comment: null } : {};
  const there = new Map(model.active.map((record) => [recordKey(record), record]));
  const rdata = ({ type, value, priority }: Spec): string => (type === 'MX' ? `${priority} ${value === '.' ? '' : value}.` : type === 'CNAME' || type === 'NS' ? `${value}.` : type === 'TXT' ? `"${value}"` : value);
  return {
    method: 'POST', path: '/import', json: { strategy, zoneFile: lines.map((line) => `${line.name} ${line.ttl ?? 300} IN ${line.type} ${rdata(line)}`).join('\n') },
    expected: model.writes({
      deletes: strategy === 'replace' ? model.active.filter((record) => !wanted.has(recordKey(record))) : [],
      updates: [...wanted].flatMap(([key, { ttl: seconds }]) => {
        const record = there.get(key);
        return record ? [{ record, fields: { ...whole, ttl: seconds } }] : [];
      }),
      creates: [...wanted].flatMap(([key, line]) => {
        const made = creation(line);
        return there.has(key) ? [] : [{ ...made, fields: { ...whole, ...made.fields } }];
      }),
    }),
  };
}

function versionOf(model: Model, picked: number): Request | null {
  const former = model.versions[picked % Math.max(1, model.versions.length)];
  if (!former) return null;
  const now = new Map(model.active.map((record) => [record.id, JSON.stringify(shown(record))]));
  const written = former.active.filter((record) => now.get(record.id) !== JSON.stringify(shown(record)));
  const gone = model.active.some(({ id }) => !former.active.some((record) => record.id === id));
  return { method: 'POST', path: `/versions/${former.version}/restore`, expected: model.judge(former.active, written, [], gone) };
}

/** The request is answered as the model says; then the model is where the zone is. */
async function perform(model: Model, zoneId: string, { method, path, json, expected }: Request, tenant: Tenant): Promise<void> {
  const before = (await world.ask('GET', `/dns/zones/${zoneId}`, { tenant })).body.zone;
  const { status, body } = await world.ask(method, `/dns/zones/${zoneId}${path}`, { tenant, ...(json ? { json } : {}) });
  const wish = `${method} ${path} ${JSON.stringify(json)}`;
  expect([wish, status === 200 ? 'done' : body.code]).toEqual([wish, 'code' in expected ? expected.code : 'done']);
  if ('code' in expected) return;
  const createdIds: string[] = path === '/records' ? [body.record.id] : (body.created ?? []).map(({ id }: { id: string }) => id);
  const idOf = new Map(expected.created.map(({ id }, i) => [id, createdIds[i] ?? 'absent']));
  const after = expected.after.map((record) => ({ ...record, id: idOf.get(record.id) ?? record.id }));
  expect([wish, body.publication.version]).toEqual([wish, before.version + (expected.changed ? 1 : 0)]);
  if (expected.changed) model.took(after, body.publication.version);
  const { records } = (await world.ask('GET', `/dns/zones/${zoneId}/records`, { tenant })).body;
  expect([wish, records.map(shown).sort(byId)]).toEqual([wish, model.active.map(shown).sort(byId)]);
  expect((await world.ask('GET', `/dns/zones/${zoneId}`, { tenant })).body.zone).toMatchObject({ recordCount: model.active.length, proxiedCount: proxiedNames(model.active) });
}

/** A quiet point: the server's answers and its transfer are those of the model. */
async function compareServer(model: Model, zoneId: string, tenant: Tenant): Promise<void> {
  await until(async () => (await world.ask('GET', `/dns/zones/${zoneId}`, { tenant })).body.zone.publication.published, 'publication');
  const zone = await loadZone(world.api.deps.db.prisma, zoneId);
  if (!zone) throw new Error('The zone is there.');
  const { replace: sets } = changeSetOf({ kind: 'full', zone: { ...zone, zoneId: zone.id }, records: model.active }, world.api.deps.dnsPlatform);
  for (const server of world.api.deps.dnsPlatform.servers) {
    const [key] = platformTransferKeys(world.api.deps.config.HOLDFAST_MASTER_KEY);
    const transfer = await transferZone({ server: { address: server.addresses[0] ?? '', port: server.port }, domain, ...(key ? { key } : {}) });
    if (transfer.outcome !== 'zone') throw new Error(`No transfer: ${transfer.outcome}`);
    expect(rrsetsOf(transfer.records)).toEqual(sets);
  }
  for (const asked of [...names.map((one) => (one === '@' ? domain : `${one.replace('*', 'wild')}.${domain}`)), `deep.q.sub.${domain}`]) {
    for (const type of ['A', 'CNAME', 'MX', 'TXT']) {
      const naive = naiveAnswer(sets, domain, asked, type);
      const { rcode, answers } = await world.dig(asked, type);
      expect([asked, type, rcode, answers.map((line) => line.replace(/^(\S+ \S+) \d+/, '$1')).sort()]).toEqual([asked, type, naive.rcode === 3 ? 'NXDOMAIN' : 'NOERROR', naive.answer]);
    }
  }
}

test('after random writes of all kinds the API, the answers and a transfer are those of the model', async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.array(write, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 3 }), async (parts) => {
    const tenant = await world.newTenant();
    const zone = await world.zone(domain, tenant);
    const model = new Model({ domain, platformPorts: world.api.deps.dnsPlatform.ports });
    for (const writes of parts) {
      for (const wish of writes) {
        const request = requestOf(model, wish);
        if (request) await perform(model, zone.id, request, tenant);
      }
      await compareServer(model, zone.id, tenant);
    }
    await world.ask('DELETE', `/dns/zones/${zone.id}`, { tenant });
  }), { numRuns: rounds(12, 1000) });
}, rounds(120_000, 7_200_000));
