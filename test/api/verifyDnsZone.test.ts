import { newId } from '../../src/core/ids';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(41);
const verify = (zoneId: string, ask: Parameters<typeof world.ask>[2] = {}) => world.ask('POST', `/dns/zones/${zoneId}/verify`, ask);
const age = (zoneId: string) => world.api.deps.db.pool.query(`update dns_zone set last_checked_at = last_checked_at - interval '1 minute' where id = $1`, [zoneId]);

test('a zone delegated to our names is proven and becomes active, with the whole report and a settled operation', async () => {
  const zone = await world.zone('proven.test');
  world.registry.delegate('proven.test', zone.nameservers);
  const { status, body } = await verify(zone.id);
  expect({ status, problems: body.verification?.problems }).toEqual({ status: 200, problems: [] });
  expect(body.verification).toMatchObject({ result: 'verified', cached: false, method: 'nameservers', missing: [], unexpected: [], delegation: { parentZone: 'test', source: 'network', consistent: true } });
  expect(body.verification.servers.map((server: { authoritative: boolean; tcp: boolean }) => [server.authoritative, server.tcp])).toEqual([[true, true], [true, true]]);
  expect(body.zone).toMatchObject({ status: 'active', statusReason: null, served: true, expiresAt: null });
  expect(body.operation).toMatchObject({ kind: 'dns.verify', resourceId: zone.id, state: 'succeeded' });
  const shown = await world.ask('GET', `/dns/zones/${zone.id}`);
  expect(shown.body.zone.verification.report).toEqual(body.verification);
  const { rows } = await world.api.deps.db.pool.query(`select state from operation where resource_id = $1`, [zone.id]);
  expect(rows.map(({ state }) => state)).toEqual(['succeeded', 'succeeded']);
});

test('a negative answer is 200 and says what to set', async () => {
  const zone = await world.zone('unset.test');
  world.registry.delegate('unset.test', ['ns1.elsewhere.test', 'ns2.elsewhere.test']);
  const { status, body } = await verify(zone.id);
  expect(status).toBe(200);
  expect(body.zone).toMatchObject({ status: 'pending', statusReason: 'foreign_nameservers' });
  expect(body.verification).toMatchObject({ result: 'not_verified', unexpected: ['ns1.elsewhere.test', 'ns2.elsewhere.test'], problems: [{ code: 'foreign_nameservers', severity: 'critical' }] });
  expect(body.verification.problems[0].fix).toContain(zone.nameservers[0]);
});

test('a name that is not registered is told apart', async () => {
  const zone = await world.zone('nobody.test');
  const { body } = await verify(zone.id);
  expect(body).toMatchObject({ zone: { status: 'pending', statusReason: 'domain_not_registered' }, verification: { result: 'not_verified' } });
});

test('a report of the last ten seconds is given again without an operation; several at once share one check', async () => {
  const zone = await world.zone('twice.test');
  const answers = await Promise.all([verify(zone.id), verify(zone.id), verify(zone.id)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(new Set(answers.map(({ body }) => body.verification.checkedAt)).size).toBe(1);
  expect((await verify(zone.id)).body).toMatchObject({ operation: null, verification: { cached: true } });
  await age(zone.id);
  expect((await verify(zone.id)).body).toMatchObject({ operation: { state: 'succeeded' }, verification: { cached: false } });
});

test('parents that disagree degrade a live zone, until they agree', async () => {
  const zone = await world.zone('torn.test');
  world.registry.delegate('torn.test', zone.nameservers);
  await verify(zone.id);
  const before = (await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone;
  world.registry.disagree('torn.test', ['ns1.other.test', 'ns2.other.test']);
  await age(zone.id);
  expect((await verify(zone.id)).body.zone).toMatchObject({ status: 'degraded', statusReason: 'parent_inconsistent' });
  world.registry.disagree('torn.test', null);
  await age(zone.id);
  expect((await verify(zone.id)).body.zone).toMatchObject({ status: before.status, statusReason: null });
});

test('only its own project knows the zone, and a viewer may not ask', async () => {
  const zone = await world.zone('mine.test');
  const stranger = await world.newTenant();
  for (const id of [zone.id, newId('zone'), 'nonsense']) expect((await verify(id, { tenant: stranger })).body).toMatchObject({ code: 'not_found' });
  expect((await verify(zone.id, { as: 'viewer' })).status).toBe(403);
  expect((await verify(zone.id, { json: { force: true } })).body).toMatchObject({ code: 'validation_error' });
});

test('60 an hour', async () => {
  const zone = await world.zone('often.test');
  await world.api.deps.db.pool.query(`update dns_zone set report = '{}', last_checked_at = now() + interval '1 hour' where id = $1`, [zone.id]);
  const statuses = [];
  for (let i = 0; i < 61; i++) statuses.push((await verify(zone.id)).status);
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(1);
  expect(statuses.slice(0, 60)).not.toContain(429);
});
