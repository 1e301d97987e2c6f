import { MockActivityEnvironment } from '@temporalio/testing';
import { createDnsActivities } from '../../activities/dns';
import { createGatewayActivities } from '../../activities/gateway';
import { certificateIssuerOf } from '../../src/gateway-control-composition';
import { certificateReconcileRule } from '../../src/gateway/reconcile';
import { ensureZoneCertificates } from '../../src/gateway/service';
import { inTransaction } from '../../src/db/transaction';
import { settleOperation } from '../../src/operations/store';
import { withGatewayApi } from '../support/gateway-api';

const world = withGatewayApi();
const activities = () => createGatewayActivities({ ...world.api.deps, certificateIssuer: certificateIssuerOf(world.api.deps) });
const run = <T>(work: () => Promise<T>): Promise<T> => new MockActivityEnvironment().run(work);
const one = async (text: string, ...values: unknown[]) => (await world.sql(text, ...values))[0];
const partitions = async (parent: string) => (await world.sql(`select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass order by 1`, parent)).map(({ name }) => String(name));
const dayOf = (daysFromNow: number) => new Date(Date.now() + daysFromNow * 86_400_000).toISOString().slice(0, 10).replaceAll('-', '');

test('tables have partitions three days ahead, and a day past its retention is dropped with all it holds', async () => {
  await world.sql(`select ensure_gateway_partitions(now() - interval '40 days', now() - interval '1 day')`);
  for (let i = 0; i < 2; i++) await run(activities().maintainGatewayTables);
  for (const [parent, days] of [['gateway_event_1', 1], ['gateway_event_7', 7], ['gateway_event_30', 30], ['gateway_minute', 31], ['gateway_top_hour', 31]] as const) {
    const names = await partitions(parent);
    for (let ahead = 0; ahead < 3; ahead++) expect(names).toContain(`${parent}_${dayOf(ahead)}`);
    expect(names).toContain(`${parent}_${dayOf(1 - days)}`);
    expect(names).not.toContain(`${parent}_${dayOf(-days - 3)}`);
  }
});

test('a hundred versions of a policy are kept, batches a week, proofs an hour, workers that are gone a day', async () => {
  const zone = await world.zone({ proxied: false });
  await world.put(zone, { mode: 'block' });
  await world.sql(`insert into gateway_policy_version (zone_id, version, document, changes) select $1, n, '{"mode":"off"}', '[]' from generate_series(2, 130) n`, zone.id);
  for (let version = 2; version <= 130; version++) await world.sql('update gateway_policy set version = $2 where zone_id = $1', zone.id, version);
  await world.sql(`insert into gateway_batch (instance_id, seq, at) values ('a', 1, now() - interval '8 days'), ('a', 2, now() - interval '6 days')`);
  await world.sql(`insert into gateway_acme_token (token, hostname, key_authorization, created_at) values ('old-token', 'a.test', 'x', now() - interval '2 hours'), ('new-token', 'a.test', 'x', now())`);
  await world.sql(`insert into gateway_instance (id, heartbeat_at) values ('gone', now() - interval '2 days'), ('here', now())`);
  expect((await world.gateway(zone, 'GET', '/versions')).body.versions).toHaveLength(100);
  for (let i = 0; i < 2; i++) await run(activities().maintainGatewayTables);
  expect(await one('select min(version) as oldest, count(*)::int as kept from gateway_policy_version where zone_id = $1', zone.id)).toEqual({ oldest: 31, kept: 100 });
  expect((await world.gateway(zone, 'GET', '/versions')).body.versions).toHaveLength(100);
  expect((await world.gateway(zone, 'GET', '/versions/30')).status).toBe(404);
  expect(await world.sql('select seq::int as seq from gateway_batch')).toEqual([{ seq: 2 }]);
  expect(await world.sql('select token from gateway_acme_token')).toEqual([{ token: 'new-token' }]);
  expect((await world.sql('select id from gateway_instance')).map(({ id }) => id)).toEqual(['here']);
  await world.sql('delete from gateway_instance');
});

test('billing is told the requests of every hour that is over, once', async () => {
  const zone = await world.zone({ proxied: false });
  const count = (hoursAgo: number, outcome: string, requests: number) => world.sql(`insert into gateway_minute (zone_id, minute, outcome, source, requests)
    values ($1, date_trunc('hour', now()) - $2::int * interval '1 hour', $3, $4, $5)`, zone.id, hoursAgo, outcome, outcome === 'clean' ? '' : 'managed', requests);
  await world.sql(`update gateway_usage_report set reported_until = date_trunc('hour', now()) - interval '5 hours'`);
  for (const [hoursAgo, outcome, requests] of [[4, 'clean', 100], [4, 'block', 23], [3, 'clean', 7], [0, 'clean', 1_000]] as const) await count(hoursAgo, outcome, requests);
  for (let i = 0; i < 2; i++) await run(activities().reportGatewayRequests);
  const told = await world.sql(`select quantity::int as quantity from usage_event where metric = 'dns.gateway_requests' and org_id = $1 order by occurred_at`, world.tenant.orgId);
  expect(told).toEqual([{ quantity: 123 }, { quantity: 7 }]);
});

test('an order nobody works on is given a run after ten minutes; a purged zone leaves nothing of the gateway but counters', async () => {
  const zone = await world.zone();
  await world.put(zone, { mode: 'block' });
  const opened = await Promise.all(Array.from({ length: 8 }, () => ensureZoneCertificates(world.api.deps, zone.id)));
  expect(opened.reduce((sum, one_) => sum + one_.opened, 0)).toBe(1);
  const row = await one('select c.id, o.id as "operationId" from gateway_certificate c join operation o on o.resource_id = c.id where c.zone_id = $1', zone.id);
  const reopened = () => inTransaction(world.api.deps.db, async (tx) => (await certificateReconcileRule.reopen?.(tx, 50) ?? []).map(({ resourceId, workflowId }) => ({ resourceId, workflowId })));
  await settleOperation(world.api.deps.db.prisma, String(row?.['operationId']), 'cancelled');
  expect(await reopened()).toEqual([]);
  await world.sql(`update gateway_certificate set status_at = now() - interval '11 minutes' where id = $1`, row?.['id']);
  expect(await reopened()).toEqual([{ resourceId: row?.['id'], workflowId: `gateway-cert/${String(row?.['id'])}` }]);
  expect(await reopened()).toEqual([]);

  await world.ask('DELETE', `/dns/zones/${zone.id}`);
  expect((await world.gateway(zone, 'GET')).status).toBe(404);
  await world.sql(`update dns_zone set purge_at = now() - interval '1 second' where id = $1`, zone.id);
  const dns = createDnsActivities(world.api.deps);
  await new MockActivityEnvironment().run(dns.ensureZoneRemoved, { zoneId: zone.id });
  await new MockActivityEnvironment().run(dns.markZonePurged, { zoneId: zone.id });
  expect(await one(`select (select count(*)::int from gateway_policy where zone_id = $1) as policies, (select count(*)::int from gateway_policy_version where zone_id = $1) as versions,
    (select count(*)::int from gateway_certificate where zone_id = $1) as certificates`, zone.id)).toEqual({ policies: 0, versions: 0, certificates: 0 });
});
