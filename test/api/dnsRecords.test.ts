import { newId } from '../../src/core/ids';
import type { Scope } from '../../src/core/caller';
import { withDnsWorld } from '../support/dns-world';
import { insertApiKey } from '../support/mail-rows';

const world = withDnsWorld(45);
const records = (zoneId: string) => `/dns/zones/${zoneId}/records`;
const add = (zoneId: string, json: object) => world.ask('POST', records(zoneId), { json });
const settled = async (name: string, type: string, answers: string[]) => {
  for (;;) if (JSON.stringify((await world.dig(name, type)).answers) === JSON.stringify(answers)) return;
};

test('createDnsRecord, updateDnsRecord, deleteDnsRecord, restoreDnsRecord: dig follows each', async () => {
  const zone = await world.zone('follow.test');
  const { status, body } = await add(zone.id, { type: 'A', name: 'WWW', value: '192.0.2.1', ttl: 60 });
  expect({ status, ...body }).toMatchObject({ status: 200, record: { name: 'www', fqdn: 'www.follow.test', status: 'active', managed: null, priority: null }, affectedRecordIds: [], publication: { version: body.record.version } });
  const path = `${records(zone.id)}/${body.record.id}`;
  await settled('www.follow.test', 'A', ['www.follow.test A 60 192.0.2.1']);
  const changed = await world.ask('PATCH', path, { json: { value: '192.0.2.2' } });
  expect(changed.body).toMatchObject({ record: { value: '192.0.2.2', ttl: 60 }, publication: { version: body.record.version + 1 } });
  await settled('www.follow.test', 'A', ['www.follow.test A 60 192.0.2.2']);
  expect((await world.ask('PATCH', path, { json: { value: '192.0.2.2' } })).body.publication.version).toBe(body.record.version + 1);
  expect((await world.ask('DELETE', path)).body).toMatchObject({ deleted: true, recordId: body.record.id, record: { status: 'deleted' } });
  await settled('www.follow.test', 'A', []);
  expect((await world.ask('DELETE', path)).status).toBe(404);
  expect((await world.ask('POST', `${path}/restore`)).body).toMatchObject({ record: { id: body.record.id, status: 'active', value: '192.0.2.2' } });
  await settled('www.follow.test', 'A', ['www.follow.test A 60 192.0.2.2']);
  expect((await world.ask('POST', `${path}/restore`)).body).toMatchObject({ code: 'invalid_state' });
});

test.each([
  ['duplicate_record', { type: 'A', name: 'www', value: '192.0.2.1' }],
  ['cname_conflict', { type: 'CNAME', name: 'www', value: 'a.example.net' }],
  ['delegation_conflict', { type: 'NS', name: 'www', value: 'ns.example.net' }],
])('createDnsRecord: %s names the record in the way', async (code, json) => {
  const zone = await world.zone('clash.test');
  const first = (await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' })).body.record.id;
  expect(await add(zone.id, json)).toMatchObject({ status: 400, body: { code, conflicts: [first] } });
});

test('20 conflicting creates at once: one wins', async () => {
  const zone = await world.zone('race.test');
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => add(zone.id, { type: 'CNAME', name: 'one', value: `t${i}.example.net` })));
  expect(answers.filter(({ status }) => status === 200).length).toBe(1);
  expect(answers.filter(({ body }) => body.code === 'cname_conflict').length).toBe(19);
});

test('updateDnsRecord: the type stays, a stale If-Match is refused, null clears', async () => {
  const zone = await world.zone('patch.test');
  const { record } = (await add(zone.id, { type: 'MX', name: '@', value: 'mx.example.net', priority: 5, ttl: 600, comment: 'x' })).body;
  const patch = (json: object, headers: Record<string, string> = {}) => world.ask('PATCH', `${records(zone.id)}/${record.id}`, { json, headers });
  expect((await patch({ type: 'A' })).body).toMatchObject({ code: 'type_immutable' });
  expect((await patch({ ttl: 60 }, { 'if-match': '"1"' })).body).toMatchObject({ code: 'precondition_failed' });
  expect((await patch({ type: 'MX', ttl: null, priority: null, comment: null }, { 'if-match': `"${record.version}"` })).body.record).toMatchObject({ ttl: 300, priority: 10, comment: null });
  expect((await patch({})).body).toMatchObject({ code: 'validation_error' });
});

test('createDnsRecord: a chain of CNAME records is seen from its end, and a wildcard only where no name stands', async () => {
  const zone = await world.zone('chain.test');
  const batch = (creates: object[]) => world.ask('POST', `${records(zone.id)}/batch`, { json: { creates } });
  const cname = (name: string, target: string) => ({ type: 'CNAME', name, value: target });
  const chain = (await batch(Array.from({ length: 8 }, (_, i) => cname(`c${i}`, `c${i + 1}.chain.test`)))).body.created;
  expect((await add(zone.id, cname('c8', 'out.example.net'))).body).toMatchObject({ code: 'cname_loop', conflicts: chain.map(({ id }: { id: string }) => id) });
  expect((await add(zone.id, cname('*', 'out.example.net'))).body).toMatchObject({ code: 'cname_loop' });
  expect((await add(zone.id, { type: 'TXT', name: 'below.c8', value: 'c8 exists now' })).status).toBe(200);
  expect((await add(zone.id, cname('*', 'out.example.net'))).status).toBe(200);
  const other = (await add(zone.id, cname('x.w', 'y.w.chain.test'))).body.record;
  expect((await add(zone.id, cname('*.w', 'x.w.chain.test'))).body).toMatchObject({ code: 'cname_loop', conflicts: [other.id] });
});

test('createDnsRecord: every fault of a record is told at once, those of ranges too', async () => {
  const zone = await world.zone('faults.test');
  const { body } = await add(zone.id, { type: 'A', name: 'a b', value: '1.2.3', ttl: 5, priority: 70_000, proxied: true, originPort: 25, originPath: 'x', originHostHeader: 'a b' });
  expect(body.issues.map(({ path }: { path: string }) => path).sort()).toEqual(['name', 'originHostHeader', 'originPath', 'originPort', 'priority', 'ttl', 'value']);
  expect((await add(zone.id, { type: 'A', name: 'a', value: '8.8.8.8', proxied: true, originPort: Number(world.api.deps.config.API_ADDR.split(':')[1]) })).body).toMatchObject({ code: 'validation_error', issues: [{ path: 'originPort' }] });
});

test('a stored text stays as it is when something else of its record changes', async () => {
  const zone = await world.zone('text.test');
  const { record } = (await add(zone.id, { type: 'TXT', name: 't', value: '"\\"quoted\\""' })).body;
  expect(record.value).toBe('"quoted"');
  expect((await world.ask('PATCH', `${records(zone.id)}/${record.id}`, { json: { ttl: 60 } })).body.record).toMatchObject({ value: '"quoted"', ttl: 60 });
});

test('createDnsRecord: wait=published answers when the servers do, or tells after 2 s that they do not yet', async () => {
  const zone = await world.zone('wait.test');
  const wait = (name: string) => world.ask('POST', `${records(zone.id)}?wait=published`, { json: { type: 'A', name, value: '192.0.2.1' } });
  expect((await wait('a')).body).toMatchObject({ record: { published: true }, publication: { published: true } });
  expect((await world.dig('a.wait.test', 'A')).answers).toEqual(['a.wait.test A 300 192.0.2.1']);
  await world.stopServer();
  expect((await wait('b')).body).toMatchObject({ record: { published: false }, publication: { published: false } });
  await world.restartServer();
  const external = (await world.ask('POST', '/dns/zones', { json: { domain: 'outside.test', mode: 'external' } })).body.zone;
  expect((await add(external.id, { type: 'A', name: 'a', value: '8.8.8.8' })).body.publication).toMatchObject({ published: true });
});

test('glue is not proxiable, wherever it is shown', async () => {
  const zone = await world.zone('glue.test');
  await add(zone.id, { type: 'NS', name: 'sub', value: 'ns.sub.glue.test' });
  const { record } = (await add(zone.id, { type: 'A', name: 'ns.sub', value: '8.8.8.8' })).body;
  const listed = (await world.ask('GET', `${records(zone.id)}?type=A`)).body.records;
  expect([record, listed[0], (await world.ask('GET', `${records(zone.id)}/${record.id}`)).body.record].map(({ proxiable }) => proxiable)).toEqual([false, false, false]);
  expect((await world.ask('PATCH', `${records(zone.id)}/${record.id}`, { json: { proxied: true } })).body).toMatchObject({ code: 'delegation_conflict' });
});

test('bulkDeleteDnsRecords: one version for all; atomic changes nothing when one is not there', async () => {
  const zone = await world.zone('bulk.test');
  const ids = [];
  for (let i = 1; i <= 3; i++) ids.push((await add(zone.id, { type: 'A', name: `h${i}`, value: '192.0.2.1' })).body.record.id);
  const bulk = (recordIds: string[], query = '') => world.ask('POST', `${records(zone.id)}/bulk-delete${query}`, { json: { recordIds } });
  const unknown = newId('rec');
  expect((await bulk([...ids, unknown], '?atomic=true')).body).toMatchObject({ code: 'invalid_state' });
  const before = (await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone.version;
  expect((await bulk([...ids, ...ids, unknown, 'nonsense'])).body).toMatchObject({ deleted: true, deletedIds: ids, deletedCount: 3, notFound: [unknown, 'nonsense'], skipped: [], publication: { version: before + 1 } });
  expect((await bulk(ids)).body).toMatchObject({ deleted: false, deletedCount: 0, notFound: ids });
  expect((await bulk([unknown])).status).toBe(404);
});

test('listDnsRecords filters and pages; getDnsRecord shows deleted ones too', async () => {
  const zone = await world.zone('list.test');
  const ids: string[] = [];
  for (const json of [{ type: 'A', name: 'a', value: '192.0.2.1' }, { type: 'TXT', name: 'b', value: 'Hello' }, { type: 'A', name: 'c', value: '192.0.2.2', comment: 'office' }]) ids.push((await add(zone.id, json)).body.record.id);
  const [a, b, c] = ids;
  const list = async (query: string) => (await world.ask('GET', `${records(zone.id)}${query}`)).body;
  const found = async (query: string) => (await list(query)).records.map(({ id }: { id: string }) => id);
  expect([await found(''), await found('?type=A'), await found('?name=B.list.test.'), await found('?search=OFFICE'), await found('?sort=name'), await found('?proxied=true')]).toEqual([[c, b, a], [c, a], [b], [c], [a, b, c], []]);
  const first = await list('?limit=2&sort=name');
  expect(first).toMatchObject({ hasMore: true });
  expect(await found(`?limit=2&sort=name&cursor=${first.nextCursor}`)).toEqual([c]);
  await world.ask('DELETE', `${records(zone.id)}/${b}`);
  expect([await found('?status=deleted'), (await found('?status=all')).length]).toEqual([[b], 3]);
  expect((await world.ask('GET', `${records(zone.id)}/${b}`)).body.record).toMatchObject({ status: 'deleted', effective: { served: false } });
});

test('listDnsZonesByKey and listDnsRecordsByKey: a dns:read key reads its own project, another scope is refused', async () => {
  const zone = await world.zone('key.test');
  await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
  const foreign = await world.zone('foreign.test', await world.newTenant());
  const key = async (scopes: Scope[]) => ({ headers: { authorization: `Bearer ${(await insertApiKey(world.api.deps.db, world.tenant, { scopes })).key}` } });
  const reader = await key(['dns:read']);
  expect((await world.api.ask('GET', '/v1/api/dns/zones', reader)).body.zones.map(({ id }: { id: string }) => id)).toEqual([zone.id]);
  expect((await world.api.ask('GET', `/v1/api/dns/zones/${zone.id}/records`, reader)).body.records).toMatchObject([{ name: 'www', value: '192.0.2.1' }]);
  expect((await world.api.ask('GET', `/v1/api/dns/zones/${foreign.id}/records`, reader)).status).toBe(404);
  expect(await world.api.ask('GET', '/v1/api/dns/zones', await key(['mail:send']))).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } });
});

test('committed is published: the server that was down answers what was written meanwhile, and a lost notification costs one poll', async () => {
  const zone = await world.zone('down.test');
  await world.stopServer();
  await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
  await world.restartServer();
  expect((await world.dig('www.down.test', 'A')).answers).toEqual(['www.down.test A 300 192.0.2.1']);
  await world.api.deps.db.pool.query('alter table dns_zone disable trigger dns_zone_changed');
  try {
    await add(zone.id, { type: 'A', name: 'late', value: '192.0.2.2' });
    await settled('late.down.test', 'A', ['late.down.test A 300 192.0.2.2']);
  } finally {
    await world.api.deps.db.pool.query('alter table dns_zone enable trigger dns_zone_changed');
  }
});
