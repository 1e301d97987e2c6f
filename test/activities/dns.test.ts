import { createDnsActivities } from '../../activities/dns';
import { MockActivityEnvironment } from '@temporalio/testing';
import { inTransaction } from '../../src/db/transaction';
import { dnsReconcileRule } from '../../src/dns/reconcile';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(46);
const run = (name: 'ensureZoneChecked' | 'ensureZonePublished' | 'markSyncFailed', zoneId: string): Promise<unknown> => new MockActivityEnvironment().run(createDnsActivities(world.api.deps)[name], { zoneId });
const rows = async (sql: string, ...values: unknown[]): Promise<unknown[]> => (await world.api.deps.db.pool.query(sql, values)).rows;
const zoneRow = (zoneId: string) => rows('select status, version, check_attempt as attempt, last_checked_at as at from dns_zone where id = $1', zoneId);
const states = (zoneId: string, kind: string) => rows('select state, error_code as code from operation where resource_id = $1 and kind = $2', zoneId, kind);

test('ensureZoneChecked twice is once: the second reuses the report', async () => {
  const zone = await world.zone('twice.test');
  world.registry.delegate('twice.test', zone.nameservers);
  expect(await run('ensureZoneChecked', zone.id)).toEqual({ delayMs: expect.any(Number), status: 'active' });
  const after = await zoneRow(zone.id);
  expect(await run('ensureZoneChecked', zone.id)).toMatchObject({ status: 'active' });
  expect(await zoneRow(zone.id)).toEqual(after);
  expect(await states(zone.id, 'dns.verify')).toEqual([{ state: 'succeeded', code: null }]);
});

test('ensureZoneChecked says no further check is due once the zone is deleted', async () => {
  const zone = await world.zone('deleted.test');
  await world.ask('DELETE', `/dns/zones/${zone.id}`);
  expect(await run('ensureZoneChecked', zone.id)).toEqual({ delayMs: null, status: null });
});

test('inconclusive is not negative: a live zone whose parent is silent stays as it is; a pending one is not ended', async () => {
  const zone = await world.zone('quiet.test');
  world.registry.delegate('quiet.test', zone.nameservers);
  await run('ensureZoneChecked', zone.id);
  const silent = createDnsActivities({ ...world.api.deps, dnsResolver: {
    resolve: async (name) => ({ outcome: 'timeout', conclusive: false, canonicalName: name, records: [], ttl: 0, zone: null, server: null, queries: 1, durationMs: 1 }),
    delegation: async () => ({ outcome: 'timeout', conclusive: false, ttl: 0, parentZone: 'test', parentServers: [], consistent: true, nameservers: [] }),
    askServer: async () => ({ outcome: 'timeout', records: [], durationMs: 1, authoritative: false }),
  } });
  for (let i = 0; i < 6; i++) {
    await rows(`update dns_zone set last_checked_at = now() - interval '1 hour', created_at = now() - interval '90 days' where id = $1`, zone.id);
    expect(await new MockActivityEnvironment().run(silent.ensureZoneChecked, { zoneId: zone.id })).toMatchObject({ status: 'active' });
  }
});

test('three conclusive misses over an hour move a live zone, thirty days later it ends, and pending ones end after their time', async () => {
  const [live, pending] = [await world.zone('moving.test'), await world.zone('never.test')];
  world.registry.delegate('moving.test', live.nameservers);
  await run('ensureZoneChecked', live.id);
  world.registry.delegate('moving.test', ['ns1.other.test', 'ns2.other.test']);
  const again = (zoneId: string) => rows(`update dns_zone set last_checked_at = now() - interval '1 hour', first_miss_at = first_miss_at - interval '1 hour' where id = $1`, zoneId).then(() => run('ensureZoneChecked', zoneId));
  expect([await again(live.id), await again(live.id), await again(live.id)]).toMatchObject([{ status: 'degraded' }, { status: 'degraded' }, { status: 'moved' }]);
  await rows(`update dns_zone set moved_at = now() - interval '31 days' where id = $1`, live.id);
  await rows(`update dns_zone set created_at = now() - interval '29 days' where id = $1`, pending.id);
  expect([await again(live.id), await again(pending.id)]).toEqual([{ delayMs: null, status: null }, { delayMs: null, status: null }]);
  expect(await rows('select status_reason as reason, deleted_at is not null as deleted from dns_zone where id = any($1) order by id', [live.id, pending.id])).toEqual([{ reason: 'delegated_elsewhere', deleted: true }, { reason: 'unverified', deleted: true }]);
});

test('ensureZonePublished twice changes nothing; without a server it is tried again, and given up it is written down', async () => {
  const zone = await world.zone('published.test');
  await run('ensureZonePublished', zone.id);
  const before = await zoneRow(zone.id);
  expect(await run('ensureZonePublished', zone.id)).toMatchObject({ version: expect.any(Number) });
  expect(await zoneRow(zone.id)).toEqual(before);
  for (let i = 0; i < 2; i++) await run('markSyncFailed', zone.id);
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone.sync).toMatchObject({ status: 'failed', lastError: { code: 'backend_error' } });
});

test('reconcile gives a zone whose check is overdue one new operation, and one that was given up another', async () => {
  const [lost, zone] = [await world.zone('lost.test'), await world.zone('overdue.test')];
  await rows('update dns_zone set sync_error_code = null');
  await run('markSyncFailed', lost.id);
  await run('ensureZoneChecked', zone.id);
  await rows(`update dns_zone set next_check_at = now() - interval '11 minutes' where id = $1`, zone.id);
  const reopen = () => inTransaction(world.api.deps.db, async (tx) => (await dnsReconcileRule.reopen?.(tx, 10) ?? []).map(({ resourceId, signal }) => ({ resourceId, signal })));
  expect([await reopen(), await reopen()]).toEqual([[{ resourceId: zone.id, signal: 'recheck' }, { resourceId: lost.id, signal: 'requested' }], []]);
});
