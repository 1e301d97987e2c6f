import { inTransaction } from '../../src/db/transaction';
import { ensureManagedRecords, findHostedZone, findRecordsPointingAt, removeManagedRecords } from '../../src/dns/service';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(47);
const owned = { owner: 'mail', ownerId: 'dom_01kahq3v7ye5fr2m8d4xw0zt6c' } as const;
const ensure = (zoneId: string, records: Parameters<typeof ensureManagedRecords>[2]['records']) => inTransaction(world.api.deps.db, (tx) => ensureManagedRecords(tx, world.api.deps, { zoneId, ...owned, records }));
const mx = { type: 'MX', name: '@', value: '10 mx.example.net', ttl: 300 } as const;
const spf = { type: 'TXT', name: '@', value: 'v=spf1 -all', ttl: 300 } as const;

test("a product's records are exactly what it asks for, twice is once, and users may read but not write them", async () => {
  const zone = await world.zone('managed.test');
  const list = async () => (await world.ask('GET', `/dns/zones/${zone.id}/records`)).body.records;
  const first = await ensure(zone.id, [mx, spf]);
  expect(first.records).toEqual([{ type: 'MX', name: '@', published: true }, { type: 'TXT', name: '@', published: true }]);
  expect((await ensure(zone.id, [mx, spf])).version).toBe(first.version);
  await ensure(zone.id, [mx]);
  const [record, ...others] = await list();
  expect({ record, others }).toMatchObject({ record: { type: 'MX', value: 'mx.example.net', priority: 10, managed: 'mail' }, others: [] });
  const path = `/dns/zones/${zone.id}/records/${record.id}`;
  expect((await world.ask('DELETE', path)).body).toMatchObject({ code: 'managed_record' });
  expect((await world.ask('PATCH', path, { json: { ttl: 60 } })).body).toMatchObject({ code: 'managed_record' });
  expect((await world.ask('POST', `/dns/zones/${zone.id}/records/bulk-delete`, { json: { recordIds: [record.id] } })).body).toMatchObject({ deleted: false, skipped: [{ id: record.id, code: 'managed_record' }] });
  expect((await findRecordsPointingAt(world.api.deps.db.prisma, world.tenant.projectId, 'MX.example.net')).map(({ id, fqdn }) => ({ id, fqdn }))).toEqual([{ id: record.id, fqdn: 'managed.test' }]);
  await inTransaction(world.api.deps.db, (tx) => removeManagedRecords(tx, world.api.deps, owned));
  expect(await list()).toEqual([]);
});

test('findHostedZone finds the closest zone of the project itself', async () => {
  const zone = await world.zone('near.test');
  const find = (domain: string, projectId = world.tenant.projectId) => findHostedZone(world.api.deps.db.prisma, projectId, domain);
  expect(await find('mail.eu.near.test')).toMatchObject({ zoneId: zone.id, domain: 'near.test', mode: 'full_hosting' });
  expect([await find('far.test'), await find('near.test', (await world.newTenant()).projectId)]).toEqual([null, null]);
});

test("a user's record in the way stays: anything at a CNAME, any TXT at _dmarc; the others are published, and all are once it is gone", async () => {
  const zone = await world.zone('theirs.test');
  const create = async (json: Record<string, unknown>) => (await world.ask('POST', `/dns/zones/${zone.id}/records`, { json })).body.record.id;
  const inTheWay = [await create({ type: 'TXT', name: 'bounce', value: 'mine' }), await create({ type: 'TXT', name: '_dmarc', value: 'v=DMARC1; p=reject' })];
  await create({ type: 'TXT', name: '@', value: 'v=spf1 -all', ttl: 900 });
  const wanted = [
    { type: 'CNAME', name: 'bounce', value: 'bounce.mail.holdfast.test', ttl: 300 }, { type: 'TXT', name: '_dmarc', value: 'v=DMARC1; p=none', ttl: 300 }, spf,
    { type: 'TXT', name: 'hf1._domainkey', value: `v=DKIM1; p=${'A'.repeat(400)}`, ttl: 300 },
  ] as const;
  const published = async () => (await ensure(zone.id, wanted)).records.map((record) => record.published);
  expect(await published()).toEqual([false, false, true, true]);
  const list = async (): Promise<string[]> => (await world.ask('GET', `/dns/zones/${zone.id}/records?sort=name`)).body.records.map((record: { name: string; type: string; ttl: number; managed: string | null }) => `${record.name} ${record.type} ${record.ttl} ${record.managed}`);
  const before = await list();
  expect(before).toEqual(['@ TXT 900 null', '_dmarc TXT 300 null', 'bounce TXT 300 null', 'hf1._domainkey TXT 300 mail']);
  expect([await published(), await list()]).toEqual([[false, false, true, true], before]);
  await world.ask('POST', `/dns/zones/${zone.id}/records/bulk-delete`, { json: { recordIds: inTheWay } });
  expect(await published()).toEqual([true, true, true, true]);
  const { version } = await inTransaction(world.api.deps.db, (tx) => removeManagedRecords(tx, world.api.deps, owned));
  expect([await list(), (await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone.version]).toEqual([['@ TXT 900 null'], version]);
});

test('a changed ttl is a change of the record that stands there', async () => {
  const zone = await world.zone('shorter.test');
  await ensure(zone.id, [spf]);
  const before = (await world.ask('GET', `/dns/zones/${zone.id}/records`)).body.records[0];
  await ensure(zone.id, [{ ...spf, ttl: 60 }]);
  expect((await world.ask('GET', `/dns/zones/${zone.id}/records`)).body.records).toMatchObject([{ id: before.id, ttl: 60, version: before.version + 1 }]);
});
