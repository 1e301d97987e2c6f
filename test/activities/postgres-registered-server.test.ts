import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import pg from 'pg';
import { createPostgresActivities } from '../../activities/postgres';
import { BackendByHost } from '../../src/adapters/postgres-backend/by-host';
import { FakeBackend } from '../../src/adapters/postgres-backend/fake';
import { HostPoolBackend } from '../../src/adapters/postgres-backend/host-pool/backend';
import { pgCustomer } from '../../src/adapters/postgres-customer/pg';
import { inTransaction } from '../../src/db/transaction';
import { createPublicGateway } from '../../src/postgres/public-gateway';
import { deleteService } from '../../src/postgres/deletion';
import { openServer, readHostsFile, registerServers, trustOfServer } from '../../src/postgres/registered-servers';
import { choosePlace, createService, type PostgresDeps } from '../../src/postgres/service';
import { secretAad, findCredentials } from '../../src/postgres/store/credentials';
import { findBackendOf } from '../../src/postgres/store/hosts';
import { loadService } from '../../src/postgres/store/services';
import { viewCredentials, viewService } from '../../src/postgres/view';
import { withDatabase } from '../support/database';
import { testConfig } from '../support/postgres-api';

import { TestPoolServer } from '../support/postgres-pool-server';
import { callerOf, createPostgresWorld, type PostgresWorld } from '../support/postgres-world';

const stored = withDatabase();
const cause = { actor: { kind: 'user', id: 'usr_test', displayName: 'A' }, action: 'test', requestId: null, ip: null } as const;
const authority = { certificate: async () => 'the gateway’s', file: '/ca.pem' };
let server: TestPoolServer;
let world: PostgresWorld;
let home: string;
jest.setTimeout(60_000);

beforeAll(async () => {
  server = await TestPoolServer.start();
  world = await createPostgresWorld(stored.database);
  home = await mkdtemp('/tmp/hf-hosts-');
  await chmod(home, 0o700);
  await writeFile(join(home, 'ca.pem'), server.certificate);
});
afterAll(async () => {
  await server?.stop();
  await rm(home, { recursive: true, force: true });
});

const registered = () => ({ db: stored.database, secrets: world.secrets });
const publicGateway = () => createPublicGateway(testConfig('postgres://x/x'), authority, (hostId) => trustOfServer(stored.database, hostId));

async function hostsFile(names: readonly string[]): Promise<string> {
  const file = join(home, 'hosts.json');
  const entry = { region: 'shared', dsn: server.dsn, capacityBytes: 10 ** 12, publicHost: 'localhost', publicPort: server.port, caFile: join(home, 'ca.pem') };
  await writeFile(file, JSON.stringify(names.map((name) => ({ name, ...entry }))));
  return file;
}

function activities() {
  const pool = new HostPoolBackend({ find: (name) => openServer(registered(), name) });
  const fake = new FakeBackend();
  const postgresBackend = new BackendByHost({ chosen: pool, keeper: fake, of: async (hostId) => (await findBackendOf(stored.database.prisma, hostId) === 'host_pool' ? pool : fake) });
  return createPostgresActivities({ ...world.deps, postgresBackend, postgresCustomer: pgCustomer, publicGateway: publicGateway() });
}

function deps(): PostgresDeps {
  return { ...world.deps, config: { ...testConfig('postgres://x/x'), PG_BACKEND: 'host_pool' }, publicGateway: publicGateway() } as unknown as PostgresDeps;
}

async function accept() {
  const place = await choosePlace(deps(), { region: 'shared' });
  return inTransaction(stored.database, (tx) => createService(tx, { caller: callerOf(world.tenant, 'owner'), body: { displayName: 'orders', plan: 'starter' }, place, cause }));
}

test('a service lives on a registered server from the first row to the purge', async () => {
  await registerServers(registered(), readHostsFile(await hostsFile(['pool-1'])));
  const { service, operation } = await accept();
  expect(viewService(service, publicGateway().addressOf(service))).toMatchObject({ isolation: 'database', host: null, port: null, region: 'shared' });
  const run = { serviceId: service.id, operationId: operation.id, generation: 1 };
  expect(await activities().provisionFromPool(run)).toBe('available');

  const made = await loadService(stored.database.prisma, service.id);
  const found = await findCredentials(stored.database.prisma, service.id);
  if (!made || !found) throw new Error('The service is gone.');
  const address = publicGateway().addressOf(made);
  expect(viewService(made, address)).toMatchObject({ status: 'available', host: 'localhost', port: server.port, database: `d_${service.id.slice(-12)}` });
  const password = world.secrets.open(found.shown.secretSealed ?? '', secretAad(found.shown));
  const shown = viewCredentials({ service: made, credential: found.shown, previous: null, address, trust: await publicGateway().trust(made), password });
  expect(shown.credentials).toMatchObject({ sslmode: 'verify-full', caCertificate: server.certificate });
  const client = new pg.Client({ connectionString: `${shown.connectionString}&sslrootcert=${join(home, 'ca.pem')}` });
  await client.connect();
  await client.query('create table first (n int); insert into first values (1)');
  await client.end();
  expect((await stored.database.pool.query('select dsn_sealed from postgres_host')).rows.join()).not.toContain('admin-of');

  const { operation: deletion } = await inTransaction(stored.database, (tx) => deleteService(tx, { caller: callerOf(world.tenant, 'owner'), serviceId: service.id, purge: true, cause }));
  const end = { serviceId: service.id, operationId: deletion?.id ?? '', generation: 2 };
  const { blockAccess, destroyInstance, destroyCredentials, markDeleted } = activities();
  await blockAccess(end);
  await destroyInstance(end);
  await destroyCredentials(end);
  await markDeleted(end);
  expect((await server.asRoot(`select datname from pg_database where datname like 'd\\_%' or datname like 'gone%'`)).rows).toEqual([]);
});

test('a server that is taken out of the file gets nothing new and serves what it has', async () => {
  await registerServers(registered(), readHostsFile(await hostsFile(['pool-1'])));
  const { service, operation } = await accept();
  await registerServers(registered(), readHostsFile(await hostsFile([])));
  const run = { serviceId: service.id, operationId: operation.id, generation: 1 };
  await expect(activities().ensurePlacement(run)).rejects.toMatchObject({ code: 'no_capacity' });
  await registerServers(registered(), readHostsFile(await hostsFile(['pool-1'])));
  expect(await activities().provisionFromPool(run)).toBe('available');
  await registerServers(registered(), readHostsFile(await hostsFile([])));
  await new MockActivityEnvironment().run(activities().observeServices);
  expect(await loadService(stored.database.prisma, service.id)).toMatchObject({ status: 'available', usedBytes: expect.any(Number) });
});

test('networks are refused where no gateway stands in front', async () => {
  await registerServers(registered(), readHostsFile(await hostsFile(['pool-1'])));
  await expect(choosePlace(deps(), { region: 'shared', allowedCidrs: ['10.0.0.0/8'] })).rejects.toMatchObject({ code: 'validation_error' });
});

test('a file that is not right stops the worker with one sentence that holds no password', async () => {
  const file = await hostsFile(['pool-1', 'pool-1']);
  expect(() => readHostsFile(file)).toThrow('must not name a server twice');
  await writeFile(file, `[{"dsn":"postgresql://a:secret@b"`);
  expect(() => readHostsFile(file)).toThrow(/^PG_HOSTS_FILE cannot be read as JSON \(syntax error\)\.$/);
});
