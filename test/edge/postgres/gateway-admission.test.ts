import type { Socket } from 'node:net';
import type pg from 'pg';
import type { EmbeddedBackend } from '../../../src/adapters/postgres-backend/embedded';
import type { PostgresHost } from '../../../src/edge/postgres/host/host';
import { newPassword, planLimits } from '../../../src/postgres/rules';
import { customer, makeService, refusalOf, startGateway, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, newService, until, type TestService } from '../../support/postgres-host';

let site: HostSite;
let host: PostgresHost;
let backend: EmbeddedBackend;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let service: TestService;
const routes = new TestRoutes();
jest.setTimeout(60_000);

beforeAll(async () => {
  site = await HostSite.make();
  host = await site.start();
  backend = site.backend();
  gateway = await startGateway({ site, routes });
  service = await makeService(backend, routes);
});
afterAll(async () => {
  await gateway.drain(0);
  backend.close();
  await host.stop();
  await site.remove();
});

async function connected(who = service): Promise<pg.Client> {
  const client = customer(gateway.port, who);
  await client.connect();
  return client;
}

const open = { status: 'available', statusReason: null, accessOpen: true, storageState: 'ok' } as const;

/** The socket below a client. */
function streamOf(client: pg.Client): Socket {
  const { connection } = client as unknown as { connection: { stream: Socket } };
  return connection.stream;
}

/** Resolves with the code the session was ended with. */
function endOf(client: pg.Client): Promise<unknown> {
  return new Promise((resolve) => client.on('error', (error) => resolve('code' in error ? error.code : error.message)));
}

test('beyond the plan’s connections a customer waits until another leaves', async () => {
  const max = planLimits.trial.connections;
  const clients = await Promise.all(Array.from({ length: max }, () => connected()));
  let admitted = false;
  const late = connected().then((client) => {
    admitted = true;
    return client;
  });
  const other = await clients[1]?.query('select 1 as one');
  expect(other?.rows).toEqual([{ one: 1 }]);
  expect(admitted).toBe(false);
  await clients[0]?.end();
  const last = await late;
  expect((await last.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await Promise.all([...clients.slice(1), last].map((client) => client.end()));
});

test('who waits too long is told that all connections are in use', async () => {
  const clients = await Promise.all(Array.from({ length: planLimits.trial.connections }, () => connected()));
  expect(await refusalOf(customer(gateway.port, service))).toBe('53300');
  await Promise.all(clients.map((client) => client.end()));
}, 20_000);

test('thirty customers at once on ten places are all served', async () => {
  const answers = await Promise.all(Array.from({ length: 30 }, async (_, index) => {
    const client = await connected();
    const { rows } = await client.query('select $1::int as n', [index]);
    await client.end();
    return rows[0].n;
  }));
  expect(answers).toEqual(Array.from({ length: 30 }, (_, index) => index));
});

test.each([
  ['suspended', { status: 'suspended', statusReason: 'payment_overdue', accessOpen: false }, '28000'],
  ['deleting', { status: 'deleting', accessOpen: false }, '28000'],
  ['failed', { status: 'failed', statusReason: 'backend_error', accessOpen: false }, '28000'],
  ['not open yet', { status: 'provisioning', accessOpen: false }, '57P03'],
] as const)('a service that is %s lets nobody in and cuts who is in', async (_state, change, code) => {
  const own = service;
  const client = await connected(own);
  const ended = endOf(client);
  routes.set(own, change);
  expect(await ended).toBe('57P01');
  expect(await refusalOf(customer(gateway.port, own))).toBe(code);
  routes.set(own, open);
});

test('the reason of a suspension is told', async () => {
  routes.set(service, { status: 'suspended', statusReason: 'payment_overdue', accessOpen: false });
  await expect(customer(gateway.port, service).connect()).rejects.toThrow('suspended (payment_overdue)');
  routes.set(service, { status: 'available', statusReason: null, accessOpen: true });
});

test('networks that are not allowed stay outside', async () => {
  routes.set(service, { allowedCidrs: ['192.0.2.0/24', '2001:db8::/32'] });
  expect(await refusalOf(customer(gateway.port, service))).toBe('28000');
  routes.set(service, { allowedCidrs: ['127.0.0.0/8'] });
  expect(await refusalOf(customer(gateway.port, service))).toBeNull();
  routes.set(service, { allowedCidrs: [] });
});

test('a service nobody told the gateway of is found at its first connection', async () => {
  const own = await makeService(backend, new TestRoutes());
  expect(await refusalOf(customer(gateway.port, own))).toBe('28000');
  routes.set(own, { status: 'provisioning', accessOpen: false }, true);
  expect(await refusalOf(customer(gateway.port, own))).toBe('57P03');
  routes.set(own, { status: 'available', accessOpen: true }, true);
  expect(await refusalOf(customer(gateway.port, own))).toBeNull();
  await backend.destroy({ ...own.ref, retain: false });
});

test('an unknown name costs the database five questions a second at most', async () => {
  const stranger = newService();
  routes.asked = [];
  const codes = await Promise.all(Array.from({ length: 40 }, () => refusalOf(customer(gateway.port, stranger))));
  expect(new Set(codes)).toEqual(new Set(['28000']));
  const seconds = 3; // forty connections take less
  expect(routes.asked.filter((name) => name === stranger.ref.names.key).length).toBeLessThanOrEqual(5 * seconds);
});

test('while the database is away known services are served and unknown ones are not', async () => {
  routes.away = true;
  expect(await refusalOf(customer(gateway.port, service))).toBeNull();
  expect(await refusalOf(customer(gateway.port, newService()))).toBe('28000');
  routes.away = false;
});

test('a gateway that has never seen the routes says "later", not "unknown"', async () => {
  routes.away = true;
  const fresh = await startGateway({ site, routes });
  expect(await refusalOf(customer(fresh.port, service))).toBe('57P03');
  routes.away = false;
  expect(await refusalOf(customer(fresh.port, service))).toBeNull();
  await fresh.drain(0);
});

test('the twenty-first wrong password of a minute is not even tried, and others are not affected', async () => {
  const own = await makeService(backend, routes);
  const codes = [];
  for (let attempt = 0; attempt < 21; attempt++) codes.push(await refusalOf(customer(gateway.port, own, { password: newPassword() })));
  expect(codes).toEqual([...Array.from({ length: 20 }, () => '28P01'), '53300']);
  expect(await refusalOf(customer(gateway.port, own))).toBe('53300');
  expect(await refusalOf(customer(gateway.port, service))).toBeNull();
  await backend.destroy({ ...own.ref, retain: false });
});

test('forty wrong passwords at once are twenty tries', async () => {
  const own = await makeService(backend, routes, 'launch');
  const codes = await Promise.all(Array.from({ length: 40 }, () => refusalOf(customer(gateway.port, own, { password: newPassword() }))));
  expect(codes.filter((code) => code === '28P01')).toHaveLength(20);
  expect(codes.filter((code) => code === '53300')).toHaveLength(20);
  await backend.destroy({ ...own.ref, retain: false });
});

test('sixty right passwords at once are all let in', async () => {
  const own = await makeService(backend, routes, 'launch');
  const clients = await Promise.all(Array.from({ length: planLimits.launch.connections }, () => connected(own)));
  await Promise.all(clients.map((client) => client.end()));
  await backend.destroy({ ...own.ref, retain: false });
});

test('who waits is told at once when the service closes, and served at once when its plan grows', async () => {
  const own = await makeService(backend, routes);
  const clients = await Promise.all(Array.from({ length: planLimits.trial.connections }, () => connected(own)));
  const served = connected(own);
  const probe = customer(gateway.port, own);
  await until(async () => (await backend.observe(own.ref)).metrics?.connections.idle === planLimits.trial.connections, 'all places taken');
  await backend.setLimits({ ...own.ref, limits: planLimits.starter });
  await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
  routes.set(own, { plan: 'starter' });
  await (await served).end();
  const again = await Promise.all(Array.from({ length: planLimits.starter.connections }, () => connected(own)));
  const refused = refusalOf(probe);
  const other = refusalOf(customer(gateway.port, own));
  routes.set(own, { status: 'suspended', statusReason: 'user', accessOpen: false });
  expect([await refused, await other]).toEqual(['28000', '28000']);
  await Promise.all(again.map((client) => client.end().catch(() => undefined)));
  await backend.destroy({ ...own.ref, retain: false });
});

test('a customer who stops reading and vanishes leaves his place, and the server its lease', async () => {
  const own = service;
  const clients = await Promise.all(Array.from({ length: planLimits.trial.connections }, () => connected(own)));
  const [watcher, ...readers] = clients;
  for (const reader of readers) {
    void reader.query(`copy (select repeat('x', 1000) from pg_class a, pg_class b, pg_class c) to stdout`).catch(() => undefined);
    streamOf(reader).pause();
  }
  const stuck = async () => (await watcher?.query(`select from pg_stat_activity where wait_event = 'ClientWrite'`))?.rowCount;
  await until(async () => await stuck() === readers.length, 'all to be stuck');
  for (const client of clients) streamOf(client).destroy();
  expect(await refusalOf(customer(gateway.port, own))).toBeNull();
  await until(async () => (await backend.observe(own.ref)).metrics?.connections.active === 0, 'the abandoned statements to end');
  routes.set(own, open);
});

test('a service that was opened a moment ago is not refused, however often it was asked for before', async () => {
  const own = await makeService(backend, new TestRoutes());
  routes.set(own, { status: 'provisioning', accessOpen: false }, true);
  const early = await Promise.all(Array.from({ length: 30 }, () => refusalOf(customer(gateway.port, own))));
  expect(new Set(early)).toEqual(new Set(['57P03']));
  routes.set(own, { status: 'available', accessOpen: true }, true);
  expect(await refusalOf(customer(gateway.port, own))).toBeNull();
  await backend.destroy({ ...own.ref, retain: false });
});

test('restricted, the service admits one session of its own login and nobody else', async () => {
  const own = service;
  routes.set(own, { storageState: 'restricted' });
  expect(await refusalOf(customer(gateway.port, own, { user: 'reader', options: `-c holdfast.service=${own.ref.serviceId}` }))).toBe('53300');
  const first = await connected(own);
  let admitted = false;
  const second = connected(own).then((client) => {
    admitted = true;
    return client;
  });
  expect((await first.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(admitted).toBe(false);
  await first.end();
  await (await second).end();
  routes.set(own, open);
});

test('a draining gateway tells those who wait at once', async () => {
  const draining = await startGateway({ site, routes });
  const own = service;
  routes.set(own, { storageState: 'restricted' });
  const first = customer(draining.port, own);
  await first.connect();
  const waiting = refusalOf(customer(draining.port, own));
  await until(async () => (await backend.observe(own.ref)).metrics?.connections.idle === 1, 'the session');
  const drained = draining.drain(60_000);
  expect(['57P01', 'ECONNRESET', 'ECONNREFUSED']).toContain(await waiting);
  await first.end();
  await drained;
  routes.set(own, open);
});

test('a draining gateway lets sessions end, then ends them', async () => {
  const own = await startGateway({ site, routes });
  const client = customer(own.port, service);
  await client.connect();
  const ended = endOf(client);
  await own.drain(50);
  expect(await ended).toBe('57P01');
});

test('a session that ends while the gateway drains ends it', async () => {
  const own = await startGateway({ site, routes });
  const client = customer(own.port, service);
  await client.connect();
  const drained = own.drain(60_000);
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await client.end();
  await drained;
});

test('two gateways beside each other route alike', async () => {
  const second = await startGateway({ site, routes });
  expect(await refusalOf(customer(second.port, service))).toBeNull();
  expect(await refusalOf(customer(gateway.port, service))).toBeNull();
  await second.drain(0);
  await until(async () => (await backend.observe(service.ref)).metrics?.connections.idle === 0);
});
