import { newId } from '../../src/core/ids';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(46);
const records = (zoneId: string) => `/dns/zones/${zoneId}/records`;
const add = async (zoneId: string, json: object) => (await world.ask('POST', records(zoneId), { json })).body.record;
const batch = (zoneId: string, json: object, query = '', headers = {}) => world.ask('POST', `${records(zoneId)}/batch${query}`, { json, headers });
const list = async (zoneId: string) => (await world.ask('GET', `${records(zoneId)}?sort=name`)).body.records.map(({ name, type, value, ttl }: { name: string; type: string; value: string; ttl: number }) => `${name} ${ttl} ${type} ${value}`);
const versionOf = async (zoneId: string) => (await world.ask('GET', `/dns/zones/${zoneId}`)).body.zone.version;

test('deletes, updates and creates are one version, judged by what they lead to', async () => {
  const zone = await world.zone('batch.test');
  const [a, b, c] = [await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' }), await add(zone.id, { type: 'TXT', name: 't', value: 'x' }), await add(zone.id, { type: 'TXT', name: 't', value: 'y' })];
  const answer = await batch(zone.id, {
    deletes: [a.id, a.id], updates: [{ id: b.id, value: 'y' }, { id: c.id, value: 'x', ttl: 60, comment: 'traded' }], creates: [{ type: 'CNAME', name: 'www', value: 'edge.example.net' }],
  }, '?wait=published');
  expect(answer).toMatchObject({
    status: 200, body: {
      ok: true, created: [{ type: 'CNAME', name: 'www', published: true }], updated: [{ id: b.id, value: 'y', ttl: 60, version: c.version + 1 }, { id: c.id, value: 'x', comment: 'traded' }],
      deletedIds: [a.id], affectedRecordIds: [], warnings: [], publication: { version: c.version + 1, published: true }, dryRun: false,
    },
  });
  expect(await list(zone.id)).toEqual(['t 60 TXT y', 't 60 TXT x', 'www 300 CNAME edge.example.net']);
  expect((await world.dig('www.batch.test', 'A')).answers).toEqual(['www.batch.test CNAME 300 edge.example.net']);
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone).toMatchObject({ version: c.version + 1, recordCount: 3 });
});

test('one write that is refused leaves nothing of the batch, and says which it was', async () => {
  const zone = await world.zone('nothing.test');
  const a = await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
  const create = { type: 'A', name: 'ok', value: '192.0.2.2' };
  const refused = async (json: object, query = '', headers = {}) => (await batch(zone.id, json, query, headers)).body;
  expect(await refused({ creates: [create, { type: 'CNAME', name: 'www', value: 'x.example.net' }] })).toMatchObject({ code: 'cname_conflict', conflicts: [a.id] });
  expect(await refused({ creates: [create, { type: 'A', name: 'w', value: 'no' }], updates: [{ id: a.id, ttl: 1 }] })).toMatchObject({ code: 'validation_error', issues: [{ path: 'updates.0.ttl' }, { path: 'creates.1.value' }] });
  expect(await refused({ deletes: [a.id, newId('rec')] })).toMatchObject({ code: 'not_found' });
  expect(await refused({ deletes: [a.id], updates: [{ id: a.id, ttl: 60 }] })).toMatchObject({ code: 'validation_error', issues: [{ path: 'updates.0.id' }] });
  expect(await refused({ updates: [{ id: a.id, type: 'AAAA' }] })).toMatchObject({ code: 'type_immutable' });
  expect(await refused({ deletes: [a.id] }, '', { 'if-match': '"1"' })).toMatchObject({ code: 'precondition_failed' });
  expect(await refused({})).toMatchObject({ code: 'validation_error' });
  expect(await refused({ deletes: Array.from({ length: 1001 }, () => newId('rec')) })).toMatchObject({ code: 'validation_error' });
  expect(await refused({ creates: Array.from({ length: 300 }, (_, i) => ({ type: 'A', name: `h${i}`, value: '192.0.2.1' })) })).toMatchObject({ code: 'quota_exceeded', resource: 'dns.records', limit: 200, used: 1, upgradeTo: 'launch' });
  expect([await list(zone.id), await versionOf(zone.id)]).toEqual([['www 300 A 192.0.2.1'], a.version]);
});

test('dryRun answers what would become of it and changes nothing', async () => {
  const zone = await world.zone('dry.test');
  const a = await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
  const json = { updates: [{ id: a.id, ttl: 60 }], creates: [{ type: 'A', name: 'www', value: '10.0.0.1' }], dryRun: true };
  expect((await batch(zone.id, json)).body).toMatchObject({ created: [{ ttl: 60 }], updated: [{ ttl: 60 }], warnings: [{ code: 'private_address' }, { code: 'private_address' }], dryRun: true, publication: { version: a.version } });
  expect([await list(zone.id), await versionOf(zone.id)]).toEqual([['www 300 A 192.0.2.1'], a.version]);
});

test('a batch is repeated under its Idempotency-Key without effect', async () => {
  const zone = await world.zone('again.test');
  const send = () => batch(zone.id, { creates: [{ type: 'A', name: 'www', value: '192.0.2.1' }] }, '', { 'idempotency-key': 'once' });
  const first = await send();
  expect((await send()).body.created).toEqual(first.body.created);
  expect(await list(zone.id)).toEqual(['www 300 A 192.0.2.1']);
});

test('a batch swaps A for CNAME under queries: only old or new is seen', async () => {
  const zone = await world.zone('swap.test');
  let { id } = await add(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
  await world.ask('POST', `${records(zone.id)}/batch?wait=published`, { json: { creates: [{ type: 'TXT', name: 'ready', value: 'x' }] } });
  const seen = new Set<string>();
  let over = false;
  const asking = Promise.all(Array.from({ length: 4 }, async () => {
    while (!over) seen.add((await world.dig('www.swap.test', 'A')).answers.join());
  }));
  for (let round = 0; round < 10; round++) {
    const create = round % 2 === 0 ? { type: 'CNAME', name: 'www', value: 'edge.example.net' } : { type: 'A', name: 'www', value: '192.0.2.1' };
    const { body } = await batch(zone.id, { deletes: [id], creates: [create] }, '?wait=published');
    id = body.created[0].id;
  }
  over = true;
  await asking;
  expect([...seen].sort()).toEqual(['www.swap.test A 300 192.0.2.1', 'www.swap.test CNAME 300 edge.example.net']);
});
