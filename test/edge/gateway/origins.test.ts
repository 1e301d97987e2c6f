import { originCheck } from '../../../src/edge/gateway/origin-access';
import { RestingAddresses } from '../../../src/edge/gateway/origin-access';
import { mayBeOrigin } from '../../../src/dns/rules/platform';
import { loadProxyRoutes } from '../../../src/dns/service';
import { withGateway, writeZone } from '../../support/gateway-world';
import { inNetworks } from '../../../src/edge/gateway/client-address';
import { until } from '../../support/until';

const names = new Map<string, string[]>();
const world = withGateway({
  resolveName: (name) => Promise.resolve({ addresses: names.get(name) ?? [], ttlSeconds: 0 }),
  mayDial: (address, port) => originCheck(inNetworks(['127.0.0.0/8']), [`127.0.0.77:${port}`])(address, port),
});
const get = (host: string, more = '') => world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`);

test('no address is dialled that is not public and not allowed, in whatever clothes, nor one we listen on', () => {
  const platform = { servers: [{ addresses: ['8.8.4.4'], port: 53 }], gatewayAddresses: { ipv4: ['8.8.8.8'], ipv6: [] }, privateOrigins: [] };
  const mayDial = originCheck((address) => mayBeOrigin(platform, address), ['0.0.0.0:8443', '9.9.9.9:8080']);
  for (const address of ['127.0.0.1', '10.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1', '8.8.8.8', '8.8.4.4', '::1', '::', 'fe80::1', 'fc00::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1',
    '::ffff:8.8.8.8', '64:ff9b::7f00:1', '64:ff9b::a00:1', '2002:7f00:1::', 'not an address']) expect([address, mayDial(address, 80)]).toEqual([address, false]);
  expect(mayDial('1.1.1.1', 80)).toBe(true);
  expect(mayDial('2606:4700::1111', 443)).toBe(true);
  for (const port of [22, 25, 53, 465, 587]) expect(mayDial('1.1.1.1', port)).toBe(false);
  const allowed = originCheck(() => true, ['127.0.0.1:10080', '[::]:8443', '9.9.9.9:8080']);
  expect([allowed('127.0.0.1', 10_080), allowed('::ffff:127.0.0.1', 10_080), allowed('127.0.0.1', 8_443), allowed('9.9.9.9', 8_080), allowed('127.0.0.1', 10_090)]).toEqual([false, false, false, false, true]);
});

test('a name that leads to a forbidden address is not dialled, also when it did not before', async () => {
  const origin = await world.origin((_request, response) => response.end('ok'));
  names.set('moving.example', ['127.0.0.1']);
  await world.zone('moving.test', [{ name: '@', value: 'moving.example', type: 'CNAME', port: origin.port }]);
  expect((await get('moving.test')).status).toBe(200);
  const before = origin.connections();
  names.set('moving.example', ['127.0.0.77', '10.0.0.1']);
  await until(async () => (await get('moving.test')).status === 502, 'the refusal');
  names.set('moving.example', ['127.0.0.1', '127.0.0.77']);
  await until(async () => (await get('moving.test')).status === 200, 'the name to be back');
  expect(origin.connections()).toBeGreaterThanOrEqual(before);
});

test('a pending claim is served to nobody and its origin never asked; it is reachable on activation and gone with its route', async () => {
  const origin = await world.origin((_request, response) => response.end('ok'));
  const zoneId = await writeZone(world.test, 'claimed.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], 'pending');
  expect((await get('claimed.test')).status).toBe(404);
  expect(origin.connections()).toBe(0);
  const set = (sql: string) => world.test.database.pool.query(`update dns_zone set ${sql}, version = version + 1, version_at = now() where id = $1`, [zoneId]);
  await set(`status = 'active', served = true`);
  await until(async () => (await get('claimed.test')).status === 200, 'the zone to be served');
  expect(await loadProxyRoutes(world.test.database.prisma, zoneId)).toHaveLength(1);
  await set(`deleted_at = now(), purge_at = now() + interval '7 days', served = false`);
  await until(async () => (await get('claimed.test')).status === 404, 'the zone to be gone');
});

test('two zones that point at each other: 508 at the first return', async () => {
  let hops = 0;
  const relay = (host: string) => world.origin((request, response) => {
    hops += 1;
    void world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nCDN-Loop: ${String(request.headers['cdn-loop'])}\r\nConnection: close\r\n\r\n`).then(({ status }) => response.writeHead(status).end());
  });
  const [a, b] = [await relay('b.test'), await relay('a.test')];
  await world.zone('a.test', [{ name: '@', value: '127.0.0.1', port: a.port }]);
  await world.zone('b.test', [{ name: '@', value: '127.0.0.1', port: b.port }]);
  expect((await get('a.test')).status).toBe(508);
  expect(hops).toBe(1);
});

test('an address that refuses rests, and a request that changes nothing is sent elsewhere once', async () => {
  const [alive, dead] = [await world.origin((_request, response) => response.end('alive')), await world.origin(() => undefined)];
  await dead.close();
  await world.zone('pool.test', [{ name: '@', value: '127.0.0.1', port: alive.port }, { name: '@', value: '127.0.0.2', port: alive.port }]);
  for (let i = 0; i < 6; i++) expect((await get('pool.test')).status).toBe(200);
  await world.zone('dead.test', [{ name: '@', value: '127.0.0.1', port: alive.port }, { name: 'www', value: '127.0.0.1', port: dead.port }]);
  expect((await get('www.dead.test')).status).toBe(502);
  expect((await get('www.dead.test', 'Accept: application/json\r\n')).body).toContain('"code":"origin_unreachable"');
});

test('of two addresses the one that answers serves what may be sent twice at once, and everything while the other rests', async () => {
  const [alive, dead] = [await world.origin((request, response) => request.resume().on('end', () => response.end('alive'))), await world.origin(() => undefined)];
  await dead.close();
  await world.zone('half.test', [{ name: '@', value: '127.0.0.1', port: alive.port }, { name: '@', value: '127.0.0.2', port: dead.port }]);
  for (let i = 0; i < 6; i++) expect((await get('half.test')).status).toBe(200);
  for (let i = 0; i < 4; i++) expect((await world.raw('POST / HTTP/1.1\r\nHost: half.test\r\nContent-Length: 1\r\nConnection: close\r\n\r\na')).status).toBe(200);
  expect(alive.seen).toHaveLength(10);
});

test('an origin that may not be dialled is told about where hosts are looked at', async () => {
  const zoneId = await world.zone('refused.test', [{ name: '@', value: '127.0.0.1', port: 25 }]);
  expect((await get('refused.test')).status).toBe(502);
  const found = () => world.test.database.pool.query('select address, healthy, last_error from gateway_origin where zone_id = $1', [zoneId]).then(({ rows }) => rows);
  await until(async () => (await found()).length > 0, 'the finding');
  expect(await found()).toEqual([{ address: '127.0.0.1', healthy: false, last_error: 'address_refused' }]);
});

test('rests are 10 s, then double to 60 s, and end with a success', () => {
  let now = 0;
  const resting = new RestingAddresses(() => now);
  const target = { poolKey: 'zone_1 rec_1 192.0.2.1 80' };
  const lasted: number[] = [];
  for (let i = 0; i < 5; i++) {
    resting.failed(target);
    lasted.push(resting.until(target) - now);
    now = resting.until(target) + 1;
  }
  expect(lasted).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
  resting.reached(target);
  resting.failed(target);
  expect(resting.until(target) - now).toBe(10_000);
});

test('the most specific zone owns a name, a wildcard covers what DNS says it does, and protocol, path and host header are the record\'s', async () => {
  const [outer, inner] = [await world.origin((_request, response) => response.end('outer')), await world.origin((_request, response) => response.end('inner'))];
  await world.zone('wide.test', [{ name: '*', value: '127.0.0.1', port: outer.port, path: '/base/', hostHeader: 'real.example' }, { name: 'x.sub', value: '127.0.0.1', port: outer.port }]);
  await world.zone('sub.wide.test', [{ name: 'x', value: '127.0.0.1', port: inner.port }]);
  await until(async () => (await get('x.sub.wide.test')).body.includes('inner'), 'the zone below');
  expect((await get('any.deep.wide.test')).body).toContain('outer');
  expect(outer.seen.at(-1)).toMatchObject({ url: '/base/', headers: { 'host': 'real.example', 'x-forwarded-host': 'any.deep.wide.test' } });
  expect((await get('y.sub.wide.test')).status).toBe(404);
});

test('a lost notification costs a second, and a policy that cannot be read changes nothing', async () => {
  const origin = await world.origin((_request, response) => response.end('ok'));
  const zoneId = await world.zone('deaf.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'monitor' } });
  const { pool } = world.test.database;
  await pool.query('drop trigger gateway_policy_changed on gateway_policy');
  await world.writePolicy(zoneId, { mode: 'block' });
  await until(async () => (await get('deaf.test', 'X-Block: 1\r\n')).status === 403, 'the policy by poll');
  await pool.query(`update gateway_policy set version = version + 1, mode = 'off', document = '{"mode":"off","ipLists":7}', updated_at = now() where zone_id = $1`, [zoneId]);
  await world.writePolicy(await world.zone('other.test', [{ name: '@', value: '127.0.0.1', port: origin.port }]), { mode: 'block' });
  await until(async () => (await get('other.test', 'X-Block: 1\r\n')).status === 403, 'a later policy of another zone');
  expect((await get('deaf.test', 'X-Block: 1\r\n')).status).toBe(403);
});

test('a gateway that starts without its database serves what it last knew', async () => {
  const origin = await world.origin((_request, response) => response.end('ok'));
  await world.zone('kept.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'block' } });
  await until(async () => (await get('kept.test', 'X-Block: 1\r\n')).status === 403, 'the policy');
  const gone = new Proxy(world.test.database, { get: (database, key) => (key === 'close' ? Reflect.get(database, key) : new Proxy(() => undefined, { get: () => () => Promise.reject(new Error('away')), apply: () => Promise.reject(new Error('away')) })) });
  await world.restart({ db: gone, routes: { load: () => Promise.reject(new Error('away')), versions: () => Promise.reject(new Error('away')) } });
  expect((await get('kept.test')).status).toBe(200);
  expect((await get('kept.test', 'X-Block: 1\r\n')).status).toBe(403);
  await world.restart();
});
