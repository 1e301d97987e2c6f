import type { RecordView } from '../../src/dns/schemas';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(48);
const versions = (zoneId: string, more = '') => world.ask('GET', `/dns/zones/${zoneId}/versions${more}`);
const batch = (zoneId: string, json: object) => world.ask('POST', `/dns/zones/${zoneId}/records/batch`, { json });
const records = async (zoneId: string): Promise<RecordView[]> => (await world.ask('GET', `/dns/zones/${zoneId}/records`)).body.records;
const state = async (zoneId: string) => (await records(zoneId)).map(({ version, updatedAt, published, ...record }) => record).toSorted((a, b) => (a.id < b.id ? -1 : 1));

test('listDnsZoneVersions and getDnsZoneVersion tell every version from the first, who made it and what it changed', async () => {
  const zone = await world.zone('told.test');
  const { body: { created: [a] } } = await batch(zone.id, { creates: [{ type: 'A', name: 'www', value: '192.0.2.1' }] });
  const changed = (await world.ask('PATCH', `/dns/zones/${zone.id}/records/${a.id}`, { json: { ttl: 60 } })).body.publication;
  const { body } = await versions(zone.id);
  expect(body).toMatchObject({ hasMore: false, nextCursor: null });
  expect(body.versions.map(({ version }: { version: number }) => version)).toEqual(Array.from({ length: changed.version }, (_, i) => changed.version - i));
  expect(body.versions[0]).toEqual({
    version: changed.version, serial: changed.serial, actor: { kind: 'user', id: world.tenant.userIds.owner, displayName: 'owner' }, requestId: expect.stringMatching(/^req_/),
    counts: { created: 0, updated: 1, deleted: 0 }, createdAt: expect.any(String),
  });
  expect((await versions(zone.id, `/${changed.version}`)).body).toMatchObject({ version: { version: changed.version }, changes: [{ recordId: a.id, before: { ttl: 300 }, after: { ttl: 60 } }] });
  const first = (await versions(zone.id, '?limit=1')).body;
  expect((await versions(zone.id, `?limit=1&cursor=${first.nextCursor}`)).body.versions).toMatchObject([{ version: changed.version - 1 }]);
  expect([(await versions(zone.id, '/1')).body.changes, (await versions(zone.id, '/99')).status, (await versions(zone.id, '/x')).status]).toEqual([[], 404, 404]);
});

test('a former version comes back under the same ids, with a swap of names and a type that changed hands', async () => {
  const zone = await world.zone('back.test');
  const { body: { created: [a, b, c, d], publication: { version } } } = await batch(zone.id, { creates: [
    { type: 'A', name: 'a', value: '8.8.8.8', proxied: true, originPort: 8443, ttl: 60 }, { type: 'A', name: 'b', value: '8.8.4.4', ttl: 900 }, { type: 'TXT', name: 't', value: '"\\"x\\""', comment: 'c' }, { type: 'MX', name: '@', value: 'mx.example.net', priority: 5 },
  ] });
  const before = await state(zone.id);
  await batch(zone.id, { updates: [{ id: a.id, name: 'b' }, { id: b.id, name: 'a', value: '9.9.9.9' }], deletes: [c.id], creates: [{ type: 'CNAME', name: 't', value: 'x.example.net' }] });
  await world.ask('PATCH', `/dns/zones/${zone.id}/records/${d.id}`, { json: { value: 'other.example.net' } });
  const now = await state(zone.id);
  const restore = (json?: object) => world.ask('POST', `/dns/zones/${zone.id}/versions/${version}/restore`, json ? { json } : {});
  expect((await restore({ dryRun: true })).body).toMatchObject({ dryRun: true, deletedIds: [expect.any(String)] });
  expect(await state(zone.id)).toEqual(now);
  const answer = await restore();
  expect(answer).toMatchObject({ status: 200, body: { created: [], deletedIds: [expect.any(String)], publication: { version: version + 3 } } });
  expect(await state(zone.id)).toEqual(before);
  expect((await restore()).body.publication.version).toBe(version + 3);
  expect((await world.ask('POST', `/dns/zones/${zone.id}/versions/1/restore`)).body.deletedIds.length).toBe(4);
  expect(await records(zone.id)).toEqual([]);
});

test('a version that never was or is no longer known is not found, and a stale If-Match is refused', async () => {
  const zone = await world.zone('gone.test');
  await batch(zone.id, { creates: [{ type: 'A', name: 'a', value: '192.0.2.1' }] });
  const restore = (version: string, headers = {}) => world.ask('POST', `/dns/zones/${zone.id}/versions/${version}/restore`, { headers });
  expect([(await restore('99')).status, (await restore('0')).status, (await restore('x')).status]).toEqual([404, 404, 404]);
  expect((await restore('1', { 'if-match': '"1"' })).body).toMatchObject({ code: 'precondition_failed' });
  await world.api.deps.db.pool.query('delete from dns_change_set where zone_id = $1 and version <= 2', [zone.id]);
  expect((await restore('1')).status).toBe(404);
});
