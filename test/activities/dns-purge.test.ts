import { MockActivityEnvironment } from '@temporalio/testing';
import { createDnsActivities } from '../../activities/dns';
import { inTransaction } from '../../src/db/transaction';
import { dnsReconcileRule } from '../../src/dns/reconcile';
import { requestProductDeletions } from '../../src/identity/service';
import { markProjectDeleted, markProjectDeleting } from '../../src/identity/store/orgs';
import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';

const world = withDnsWorld(51);
type Name = 'ensureZoneRemoved' | 'markZonePurged' | 'purgeDnsHistory';
const run = (name: Name, zoneId = ''): Promise<unknown> => new MockActivityEnvironment().run(createDnsActivities(world.api.deps)[name], { zoneId });
const rows = async (sql: string, ...values: unknown[]): Promise<unknown[]> => (await world.api.deps.db.pool.query(sql, values)).rows;
const past = (zoneId: string) => rows(`update dns_zone set purge_at = now() - interval '1 second' where id = $1`, zoneId);
const content = async (zoneId: string) => (await rows(`select (select count(*)::int from dns_record where zone_id = $1) as records, (select count(*)::int from dns_change_set where zone_id = $1) as sets,
  (select purged_at is not null from dns_zone where id = $1) as purged`, zoneId))[0];
const record = (zoneId: string, name: string) => world.ask('POST', `/dns/zones/${zoneId}/records`, { json: { type: 'A', name, value: '192.0.2.1' } });
const silent = (zoneId: string) => until(async () => (await rows('select 1 from dns_ack where zone_id = $1', zoneId)).length === 0, 'the server to drop the zone');
const reopened = () => inTransaction(world.api.deps.db, async (tx) => (await dnsReconcileRule.reopen?.(tx, 50) ?? []).filter(({ kind }) => kind === 'dns.purge').map(({ resourceId, workflow, workflowId }) => ({ resourceId, workflow, workflowId })));

async function deleted(domain: string): Promise<{ id: string; nameservers: string[] }> {
  const zone = await world.zone(domain);
  await record(zone.id, 'www');
  await until(async () => (await world.dig(`www.${domain}`, 'A')).rcode === 'NOERROR');
  await world.ask('DELETE', `/dns/zones/${zone.id}`);
  await silent(zone.id);
  return zone;
}

test('a zone can be restored until purgeAt, and from then on it is 404 everywhere, purged or not yet', async () => {
  const zone = await deleted('late.test');
  await past(zone.id);
  expect(await world.ask('POST', `/dns/zones/${zone.id}/restore`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect((await world.ask('GET', '/dns/zones?status=deleted')).body.zones).toEqual([]);
  expect(await content(zone.id)).toMatchObject({ records: 1, purged: false });
});

test('reconcile gives such a zone one purge; each of its steps twice is once; the names of its servers lead nowhere', async () => {
  const zone = await deleted('gone.test');
  expect(await reopened()).not.toContainEqual(expect.objectContaining({ resourceId: zone.id }));
  await past(zone.id);
  expect(await reopened()).toContainEqual({ resourceId: zone.id, workflow: 'purgeZone', workflowId: `dns-purge/${zone.id}` });
  expect(await reopened()).toEqual([]);
  expect((await world.dig(zone.nameservers[0] ?? '', 'A')).rcode).toBe('NOERROR');
  for (let i = 0; i < 2; i++) await run('ensureZoneRemoved', zone.id);
  expect(await content(zone.id)).toEqual({ records: 0, sets: 0, purged: false });
  for (let i = 0; i < 2; i++) await run('markZonePurged', zone.id);
  expect(await content(zone.id)).toEqual({ records: 0, sets: 0, purged: true });
  expect(await rows(`select state from operation where resource_id = $1 and kind = 'dns.purge'`, zone.id)).toEqual([{ state: 'succeeded' }]);
  expect(await rows(`select count(*)::int as n from audit_entry where target_id = $1 and action = 'purgeDnsZone'`, zone.id)).toEqual([{ n: 1 }]);
  expect(await reopened()).toEqual([]);
  await until(async () => (await world.dig(zone.nameservers[0] ?? '', 'A')).rcode === 'NXDOMAIN', 'the token name to end');
});

test('nothing is removed while a name server still answers for the zone', async () => {
  const zone = await deleted('answered.test');
  await past(zone.id);
  await rows(`insert into dns_server (id, addresses) values ('slow', '{}')`);
  await rows(`insert into dns_ack (server_id, zone_id, version) values ('slow', $1, 1)`, zone.id);
  await expect(run('ensureZoneRemoved', zone.id)).rejects.toMatchObject({ name: 'TryLater' });
  expect(await content(zone.id)).toMatchObject({ records: 1 });
  await rows(`update dns_server set heartbeat_at = now() - interval '16 seconds' where id = 'slow'`);
  await run('ensureZoneRemoved', zone.id);
  expect(await content(zone.id)).toMatchObject({ records: 0 });
});

test('a zone that was restored meanwhile keeps everything, and the purge is cancelled', async () => {
  const zone = await deleted('back.test');
  await past(zone.id);
  await reopened();
  await rows(`update dns_zone set purge_at = now() + interval '1 day' where id = $1`, zone.id);
  expect((await world.ask('POST', `/dns/zones/${zone.id}/restore`)).status).toBe(200);
  await run('ensureZoneRemoved', zone.id);
  await run('markZonePurged', zone.id);
  expect(await content(zone.id)).toMatchObject({ records: 1, purged: false });
  expect(await rows(`select state from operation where resource_id = $1 and kind = 'dns.purge'`, zone.id)).toEqual([{ state: 'cancelled' }]);
  await until(async () => (await world.dig('www.back.test', 'A')).rcode === 'NOERROR');
});

test('a deleted project leaves nothing of its zones once their time is over', async () => {
  const zones = [await world.zone('one.test'), await world.zone('two.test')];
  for (const { id } of zones) await record(id, 'www');
  for (let i = 0; i < 2; i++) await requestProductDeletions(world.api.deps, world.tenant.projectId);
  for (const { id } of zones) {
    await silent(id);
    expect(await rows('select deleted_at is not null as deleted, served from dns_zone where id = $1', id)).toEqual([{ deleted: true, served: false }]);
    await past(id);
  }
  await inTransaction(world.api.deps.db, async (tx) => {
    await markProjectDeleting(tx, world.tenant.projectId);
    await markProjectDeleted(tx, world.tenant.projectId);
  });
  expect((await reopened()).map(({ resourceId }) => resourceId)).toEqual(expect.arrayContaining(zones.map(({ id }) => id)));
  for (const { id } of zones) {
    await run('ensureZoneRemoved', id);
    await run('markZonePurged', id);
    expect(await content(id)).toEqual({ records: 0, sets: 0, purged: true });
  }
});

test('deleted records go after 30 days and beyond ten times the limit, change sets after 90 days; twice is once', async () => {
  const zone = await world.zone('old.test');
  const made = [];
  for (const name of ['a', 'b', 'c']) made.push((await record(zone.id, name)).body.record.id);
  for (const id of made.slice(0, 2)) await world.ask('DELETE', `/dns/zones/${zone.id}/records/${id}`);
  await rows(`update dns_record set deleted_at = now() - interval '30 days' - interval '1 minute' where id = $1`, made[0]);
  await rows(`update dns_record set deleted_at = now() - interval '29 days' where id = $1`, made[1]);
  await rows(`update dns_change_set set created_at = now() - interval '91 days' where zone_id = $1 and version = (select min(version) from dns_change_set where zone_id = $1)`, zone.id);
  expect(await run('purgeDnsHistory')).toMatchObject({ records: 1, changeSets: 1, trimmedZones: 0 });
  expect(await run('purgeDnsHistory')).toMatchObject({ records: 0, changeSets: 0, trimmedZones: 0 });
  expect(await world.ask('POST', `/dns/zones/${zone.id}/records/${made[0]}/restore`)).toMatchObject({ status: 404 });
  expect(await world.ask('POST', `/dns/zones/${zone.id}/records/${made[1]}/restore`)).toMatchObject({ status: 200 });
  await rows(`insert into dns_record (id, zone_id, type, name, value, ttl, rdata_hash, version, deleted_at)
    select 'rec_' || lpad(n::text, 26, '0'), $1, 'A', 'n' || n, '192.0.2.1', 300, '\\x00', 1, now() - n * interval '1 second' from generate_series(1, 2005) n`, zone.id);
  expect(await run('purgeDnsHistory')).toMatchObject({ records: 0, trimmedZones: 1 });
  expect(await rows('select count(*)::int as n, max(name) filter (where name = $2) as newest from dns_record where zone_id = $1 and deleted_at is not null', zone.id, 'n1')).toEqual([{ n: 2000, newest: 'n1' }]);
}, 30_000);
