import { inTransaction } from '../../src/db/transaction';
import { ensureChallenge, findRecordsPointingAt, loadProxyRoutes, removeChallenge, requestDeletion, resumeFromPayment, suspendForPayment } from '../../src/dns/service';
import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';

const world = withDnsWorld(74, { GATEWAY_PUBLIC_ADDRESSES: '203.0.113.10' });
const create = async (zoneId: string, json: Record<string, unknown>) => {
  const { status, body } = await world.ask('POST', `/dns/zones/${zoneId}/records`, { json });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.record;
};
const routes = (zoneId: string) => loadProxyRoutes(world.api.deps.db.prisma, zoneId);
const setStatus = (zoneId: string, status: string) => world.api.deps.db.pool.query(`update dns_zone set status = $2, activated_at = coalesce(activated_at, now()), status_reason = null, version = version + 1 where id = $1`, [zoneId, status]);
const live = async (domain: string) => {
  const zone = await world.zone(domain);
  world.registry.delegate(domain, zone.nameservers);
  const { body } = await world.ask('POST', `/dns/zones/${zone.id}/verify`);
  expect(body.zone.status).toBe('active');
  return zone;
};
const names = async (zoneId: string) => (await routes(zoneId)).map(({ hostname }) => hostname);

test('each proxied name of a live zone is a route with its pool of origins; a pending zone has none', async () => {
  const zone = await world.zone('routed.test');
  const v4 = await create(zone.id, { type: 'A', name: 'www', value: '8.8.8.8', proxied: true, originProtocol: 'https', originPort: 8443, originPath: '/app', originHostHeader: 'origin.example.net' });
  const v6 = await create(zone.id, { type: 'AAAA', name: 'www', value: '2001:4860:4860::8888' });
  const alias = await create(zone.id, { type: 'CNAME', name: 'shop', value: 'shops.example.net', proxied: true });
  await create(zone.id, { type: 'A', name: 'plain', value: '8.8.4.4' });
  expect(await routes(zone.id)).toEqual([]);
  world.registry.delegate('routed.test', zone.nameservers);
  await world.ask('POST', `/dns/zones/${zone.id}/verify`);
  const common = { protocol: 'https', port: 8443, path: '/app', hostHeader: 'origin.example.net' };
  expect(await routes(zone.id)).toEqual([
    { hostname: 'shop.routed.test', wildcard: false, hiddenBy: [], origins: [{ recordId: alias.id, kind: 'CNAME', value: 'shops.example.net', protocol: 'http', port: null, path: null, hostHeader: null }] },
    { hostname: 'www.routed.test', wildcard: false, hiddenBy: [], origins: [{ recordId: v4.id, kind: 'A', value: '8.8.8.8', ...common }, { recordId: v6.id, kind: 'AAAA', value: '2001:4860:4860::8888', ...common }] },
  ]);
  await until(async () => (await world.dig('shop.routed.test', 'A')).answers.join() === 'shop.routed.test A 300 203.0.113.10', 'the gateway in DNS');
});

test('a wildcard tells which names hide it: existing ones, empty non-terminals and zones below', async () => {
  const zone = await live('wild.test');
  await create(zone.id, { type: 'A', name: '*', value: '8.8.8.8', proxied: true });
  for (const name of ['here', 'deep.empty', '_svc._tcp.texts', '*.stars']) await create(zone.id, { type: 'TXT', name, value: 'x' });
  const [route] = await routes(zone.id);
  expect(route).toMatchObject({ hostname: '*.wild.test', wildcard: true, hiddenBy: ['empty.wild.test', 'here.wild.test', 'stars.wild.test', 'texts.wild.test'] });
  for (const hidden of ['deep.empty', 'x.empty', 'x.here', 'x.texts', 'x.y.stars']) expect((await world.dig(`${hidden}.wild.test`, 'A')).answers).toEqual([]);
  await until(async () => (await world.dig('other.thing.wild.test', 'A')).answers.join() === 'other.thing.wild.test A 300 203.0.113.10', 'the wildcard in DNS');
});

test('of two zones the most specific owns a name; of two claims the active one, else the one activated last', async () => {
  const above = await live('owner.test');
  await create(above.id, { type: 'A', name: 'www.sub', value: '8.8.8.8', proxied: true });
  await create(above.id, { type: 'A', name: '*', value: '8.8.8.8', proxied: true });
  const below = (await world.ask('POST', '/dns/zones', { json: { domain: 'sub.owner.test', mode: 'external' } })).body.zone;
  await create(below.id, { type: 'A', name: 'www', value: '8.8.4.4', proxied: true });
  expect([await names(above.id), await names(below.id)]).toEqual([['*.owner.test', 'www.sub.owner.test'], []]);
  await setStatus(below.id, 'active');
  expect([await names(above.id), await names(below.id)]).toEqual([['*.owner.test'], ['www.sub.owner.test']]);
  expect((await routes(above.id))[0]?.hiddenBy).toEqual(['sub.owner.test']);
  const rival = (await world.ask('POST', '/dns/zones', { tenant: await world.newTenant(), json: { domain: 'sub.owner.test', mode: 'external' } })).body.zone;
  await world.api.deps.db.pool.query(`insert into dns_record (id, zone_id, type, name, value, ttl, proxied, origin_protocol, rdata_hash, version) values ('rec_rival', $1, 'A', 'www', '8.8.4.4', 300, true, 'http', '\\x00', 1)`, [rival.id]);
  await setStatus(below.id, 'moved');
  await setStatus(rival.id, 'active');
  expect([await names(below.id), await names(rival.id)]).toEqual([[], ['www.sub.owner.test']]);
  await world.api.deps.db.pool.query(`update dns_zone set activated_at = now() - interval '1 day' where id = $1`, [rival.id]);
  await setStatus(rival.id, 'moved');
  expect([await names(below.id), await names(rival.id)]).toEqual([['www.sub.owner.test'], []]);
  await world.api.deps.db.pool.query(`update dns_zone set status_reason = 'claimed_elsewhere' where id = $1`, [below.id]);
  expect([await names(below.id), await names(rival.id)]).toEqual([[], ['www.sub.owner.test']]);
});

test('suspended for payment a zone answers and routes on, and cannot be changed until it is paid; deleted it has no routes', async () => {
  const zone = await live('unpaid.test');
  await create(zone.id, { type: 'A', name: 'www', value: '8.8.8.8', proxied: true });
  const { db, config, dnsPlatform } = world.api.deps;
  for (let i = 0; i < 2; i++) await inTransaction(db, (tx) => suspendForPayment(tx, world.tenant.orgId));
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone).toMatchObject({ status: 'suspended', statusReason: 'billing', served: true });
  expect(await names(zone.id)).toEqual(['www.unpaid.test']);
  expect(await world.ask('POST', `/dns/zones/${zone.id}/records`, { json: { type: 'A', name: 'x', value: '8.8.8.8' } })).toMatchObject({ status: 403, body: { code: 'service_suspended' } });
  for (let i = 0; i < 2; i++) await inTransaction(db, (tx) => resumeFromPayment(tx, world.tenant.orgId));
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone.status).toBe('active');
  for (let i = 0; i < 2; i++) await inTransaction(db, (tx) => requestDeletion(tx, { config, dnsPlatform }, world.tenant.projectId));
  expect([await names(zone.id), (await world.ask('GET', `/dns/zones/${zone.id}`)).status]).toEqual([[], 404]);
  await until(async () => (await world.dig('www.unpaid.test', 'A')).rcode === 'REFUSED', 'the end of our answers');
});

test('a challenge is answered by every server when it is there, is listed nowhere, and leaves what a user wrote', async () => {
  const zone = await world.zone('acme.test');
  const fqdn = '_acme-challenge.www.acme.test';
  await create(zone.id, { type: 'TXT', name: '_acme-challenge.www', value: 'users own', ttl: 900 });
  const before = (await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone;
  const ensure = (value: string, more = {}) => ensureChallenge(world.api.deps, { zoneId: zone.id, fqdn, value }, more);
  await ensure('token-1');
  await ensure('token-2');
  await ensure('token-2');
  const answers = async () => (await world.dig(fqdn, 'TXT')).answers;
  expect(await answers()).toEqual([`${fqdn} TXT 900 token-1`, `${fqdn} TXT 900 token-2`, `${fqdn} TXT 900 users own`]);
  expect((await world.ask('GET', `/dns/zones/${zone.id}/records?status=all`)).body.records.map(({ value }: { value: string }) => value)).toEqual(['users own']);
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone).toMatchObject({ recordCount: before.recordCount, version: before.version + 2 });
  const version = await world.ask('GET', `/dns/zones/${zone.id}/versions/${before.version + 1}`);
  expect(JSON.stringify(version.body)).not.toContain('token-1');
  expect(JSON.stringify((await world.ask('GET', `/dns/zones/${zone.id}/export`)).body)).not.toContain('token-1');
  for (const value of ['token-1', 'token-2', 'token-2', 'users own']) await removeChallenge(world.api.deps, { zoneId: zone.id, fqdn, value });
  await until(async () => (await answers()).join() === `${fqdn} TXT 900 users own`, 'the challenges to be gone');
  await ensureChallenge(world.api.deps, { zoneId: zone.id, fqdn: '_acme-challenge.acme.test', value: 'alone' });
  expect((await world.dig('_acme-challenge.acme.test', 'TXT')).answers).toEqual(['_acme-challenge.acme.test TXT 60 alone']);
  await expect(ensureChallenge(world.api.deps, { zoneId: zone.id, fqdn: '_acme-challenge.other.test', value: 'x' })).rejects.toMatchObject({ code: 'validation_error' });
  await world.stopServer();
  try {
    await expect(ensure('late', { waitMs: 50 })).rejects.toMatchObject({ code: 'deadline_exceeded' });
  } finally {
    await world.restartServer();
  }
  await ensure('late');
  expect(await answers()).toContain(`${fqdn} TXT 900 late`);
  await world.ask('DELETE', `/dns/zones/${zone.id}`);
  await removeChallenge(world.api.deps, { zoneId: zone.id, fqdn, value: 'late' });
  await expect(ensure('late')).rejects.toMatchObject({ code: 'not_found' });
});

test('records that point at a host are found in the project, of every pointing type, whatever the spelling', async () => {
  const zone = await world.zone('points.test');
  const made = [await create(zone.id, { type: 'CNAME', name: 'db', value: 'pg-1.example.net' }), await create(zone.id, { type: 'MX', name: '@', value: 'pg-1.example.net' })];
  await create(zone.id, { type: 'TXT', name: '@', value: 'pg-1.example.net' });
  const found = (projectId: string) => findRecordsPointingAt(world.api.deps.db.prisma, projectId, 'PG-1.example.net');
  expect((await found(world.tenant.projectId)).map(({ id, fqdn }) => `${id} ${fqdn}`)).toEqual([`${made[0].id} db.points.test`, `${made[1].id} points.test`]);
  expect(await found((await world.newTenant()).projectId)).toEqual([]);
});
