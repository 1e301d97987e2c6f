import { TableResolver } from '../../src/adapters/dns-resolver/table';
import { createListener } from '../../src/db/listen';
import { startFlattening } from '../../src/dns/service';
import { nextTargetDueInMs } from '../../src/dns/store/flattened';
import { silent } from '../support/accepted-work';
import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';

const world = withDnsWorld(72);
const resolver = new TableResolver();
const stops: (() => Promise<unknown>)[] = [];
const target = (name: string, ipv4: readonly string[] | 'timeout', ipv6: readonly string[] = [], ttl = 120) => {
  resolver.set(name, 'A', ipv4 === 'timeout' ? ipv4 : ipv4.map((value) => ({ name, type: 'A', ttl, value })));
  resolver.set(name, 'AAAA', ipv6.map((value) => ({ name, type: 'AAAA', ttl, value })));
};
const create = (zoneId: string, json: Record<string, unknown>) => world.ask('POST', `/dns/zones/${zoneId}/records`, { json });
const alias = (zoneId: string, value: string, more: Record<string, unknown> = {}) => create(zoneId, { type: 'CNAME', name: '@', value, ...more });
const answers = async (name: string, type = 'A') => (await world.dig(name, type)).answers;
const due = (zoneId: string) => world.api.deps.db.pool.query('update dns_flattened set next_refresh_at = now() where zone_id = $1', [zoneId]).then(() => world.api.deps.db.pool.query('notify dns_flattened'));
const zoneOf = async (zoneId: string) => (await world.ask('GET', `/dns/zones/${zoneId}`)).body.zone;

beforeAll(() => {
  Object.assign(world.api.deps, { dnsResolver: resolver });
  const { config, db, dnsPlatform } = world.api.deps;
  const listener = createListener({ url: config.DATABASE_URL, process: 'worker', log: silent });
  for (let i = 0; i < 2; i++) {
    const loop = startFlattening({ db, dnsPlatform, dnsResolver: resolver, listener, log: silent });
    stops.unshift(() => loop.stop());
  }
  stops.push(() => listener.close());
});
afterAll(async () => {
  for (const stop of stops) await stop();
});

test('without a target there is nothing to wait for, so the loop rests', async () => {
  expect(await nextTargetDueInMs(world.api.deps.db.prisma)).toBeNull();
});

test('an apex CNAME is answered with the addresses of its target, with the smaller ttl, from the write on', async () => {
  const zone = await world.zone('flat.test');
  target('shop.cdn.example', ['198.51.100.8', '198.51.100.7'], ['2001:db8::7']);
  await create(zone.id, { type: 'MX', name: '@', value: 'mail.example.net' });
  const { status, body } = await alias(zone.id, 'shop.cdn.example');
  expect({ status, effective: body.record.effective }).toEqual({ status: 200, effective: { served: true, via: 'flattened', values: ['198.51.100.7', '198.51.100.8', '2001:db8::7'], ttl: 120 } });
  await until(async () => (await answers('flat.test')).length === 2, 'both addresses');
  expect(await answers('flat.test')).toEqual(['flat.test A 120 198.51.100.7', 'flat.test A 120 198.51.100.8']);
  expect(await answers('flat.test', 'AAAA')).toEqual(['flat.test AAAA 120 2001:db8::7']);
  expect(await answers('flat.test', 'CNAME')).toEqual([]);
  expect(await answers('flat.test', 'MX')).toEqual(['flat.test MX 300 10 mail.example.net']);
  expect((await world.ask('GET', `/dns/zones/${zone.id}/records/${body.record.id}`)).body.record.effective).toEqual(body.record.effective);
});

test('changed addresses are a version of the zone, the same ones are none', async () => {
  const zone = await world.zone('moves.test');
  target('moves.cdn.example', ['198.51.100.1']);
  const { body } = await alias(zone.id, 'moves.cdn.example', { ttl: 60 });
  target('moves.cdn.example', ['198.51.100.2']);
  await due(zone.id);
  await until(async () => (await answers('moves.test')).join() === 'moves.test A 60 198.51.100.2', 'the new address');
  const { version, serial } = await zoneOf(zone.id);
  expect([version, serial > body.publication.serial]).toEqual([body.publication.version + 1, true]);
  await due(zone.id);
  await until(async () => (await world.api.deps.db.pool.query(`select from dns_flattened where zone_id = $1 and next_refresh_at > now() + interval '59 seconds'`, [zone.id])).rowCount === 1, 'the next refresh to be planned');
  expect((await zoneOf(zone.id)).version).toBe(version);
  const [{ seconds }] = (await world.api.deps.db.pool.query(`select extract(epoch from next_refresh_at - now())::int as seconds from dns_flattened where zone_id = $1`, [zone.id])).rows;
  expect(seconds).toBeGreaterThan(85);
  expect(seconds).toBeLessThanOrEqual(96);
});

test('a target that nobody can tell of keeps its last addresses for a day, then there are none', async () => {
  const zone = await world.zone('silent.test');
  target('silent.cdn.example', ['198.51.100.1']);
  const { body } = await alias(zone.id, 'silent.cdn.example');
  target('silent.cdn.example', 'timeout');
  const asked = () => until(async () => (await world.api.deps.db.pool.query('select from dns_flattened where zone_id = $1 and next_refresh_at > now() + interval \'31 seconds\'', [zone.id])).rowCount === 1, 'the target to be asked about');
  await due(zone.id);
  await asked();
  await until(async () => (await answers('silent.test')).join() === 'silent.test A 120 198.51.100.1', 'the last good answer');
  await world.api.deps.db.pool.query(`update dns_flattened set resolved_at = now() - interval '25 hours' where zone_id = $1`, [zone.id]);
  await due(zone.id);
  await until(async () => (await answers('silent.test')).length === 0, 'NODATA');
  expect(await world.dig('silent.test', 'A')).toEqual({ rcode: 'NOERROR', answers: [] });
  expect((await world.ask('GET', `/dns/zones/${zone.id}/records/${body.record.id}`)).body.record.effective).toMatchObject({ served: true, via: 'none', values: [] });
  target('silent.cdn.example', ['198.51.100.3']);
  await due(zone.id);
  await until(async () => (await answers('silent.test')).join() === 'silent.test A 120 198.51.100.3', 'the address to come back');
});

test('a target that is not known at the write is resolved by the worker, and a new target replaces the old one', async () => {
  const zone = await world.zone('late.test');
  target('late.cdn.example', 'timeout');
  const { body } = await alias(zone.id, 'late.cdn.example');
  expect(body.record.effective).toMatchObject({ via: 'none', values: [] });
  target('late.cdn.example', ['198.51.100.4']);
  await due(zone.id);
  await until(async () => (await answers('late.test')).join() === 'late.test A 120 198.51.100.4', 'the address');
  target('other.cdn.example', ['198.51.100.5']);
  const changed = await world.ask('PATCH', `/dns/zones/${zone.id}/records/${body.record.id}`, { json: { value: 'other.cdn.example' } });
  expect(changed.body.record.effective.values).toEqual(['198.51.100.5']);
  await until(async () => (await answers('late.test')).join() === 'late.test A 120 198.51.100.5', 'the other address');
  await world.ask('DELETE', `/dns/zones/${zone.id}/records/${body.record.id}`);
  await until(async () => (await answers('late.test')).length === 0, 'the record to be gone');
  const restored = await world.ask('POST', `/dns/zones/${zone.id}/records/${body.record.id}/restore`);
  expect(restored.body.record.effective.values).toEqual(['198.51.100.5']);
});

test('a target inside the zone follows the zone itself, over aliases and wildcards', async () => {
  const zone = await world.zone('inside.test');
  const www = (await create(zone.id, { type: 'A', name: '*.web', value: '192.0.2.1', ttl: 600 })).body.record;
  await create(zone.id, { type: 'CNAME', name: 'www', value: 'any.web.inside.test', ttl: 90 });
  const { body } = await alias(zone.id, 'www.inside.test');
  expect(body.record.effective).toEqual({ served: true, via: 'flattened', values: ['192.0.2.1'], ttl: 90 });
  await world.ask('PATCH', `/dns/zones/${zone.id}/records/${www.id}`, { json: { value: '192.0.2.2' } });
  await until(async () => (await answers('inside.test')).join() === 'inside.test A 90 192.0.2.2', 'the apex to follow');
});

test('beside addresses an apex CNAME is a conflict, in a circle it is one, too', async () => {
  const zone = await world.zone('conflict.test');
  target('a.cdn.example', ['198.51.100.1']);
  const { body } = await create(zone.id, { type: 'A', name: '@', value: '192.0.2.1' });
  expect((await alias(zone.id, 'a.cdn.example')).body).toMatchObject({ code: 'cname_conflict', conflicts: [body.record.id] });
  await create(zone.id, { type: 'CNAME', name: 'www', value: 'conflict.test' });
  await world.ask('DELETE', `/dns/zones/${zone.id}/records/${body.record.id}`);
  expect((await alias(zone.id, 'www.conflict.test')).body).toMatchObject({ code: 'cname_loop' });
});
