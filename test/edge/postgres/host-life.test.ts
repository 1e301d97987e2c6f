import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { EmbeddedBackend } from '../../../src/adapters/postgres-backend/embedded';
import { systemCode } from '../../../src/core/files';
import type { Instance } from '../../../src/edge/postgres/host/instance';
import { customer, makeService, refusalOf, startGateway, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, newService, until, type TestService } from '../../support/postgres-host';

const asRoot = process.getuid?.() === 0;
let site: HostSite;
let backend: EmbeddedBackend;
const routes = new TestRoutes();
jest.setTimeout(90_000);

beforeEach(async () => {
  site = await HostSite.make();
  backend = site.backend();
  routes.routes.clear();
});
afterEach(async () => {
  backend.close();
  await site.remove();
});

async function recordOf(service: TestService): Promise<{ id: string; slot: number; data: string }> {
  const id = (await backend.inventory()).find((item) => item.serviceId === service.ref.serviceId)?.instanceRef ?? '';
  const { slot } = JSON.parse(await readFile(join(site.dataDir, 'instances', id, 'instance.json'), 'utf8'));
  return { id, slot, data: join(site.dataDir, 'instances', id, 'data') };
}

async function postmasterOf(service: TestService): Promise<number> {
  const { data } = await recordOf(service);
  return Number((await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
}

/** Processes that stand in a directory below ours. */
async function processesHere(): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const stands = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).then((cwd) => cwd.startsWith(site.home), () => false)));
  return pids.filter((_, index) => stands[index]);
}

async function rowsOf(port: number, service: TestService, sql: string): Promise<unknown[]> {
  const client = customer(port, service);
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

test('an unused service is stopped and waked by the next connection, its rows as they were', async () => {
  const host = await site.start({}, { idleMs: () => 50, sweepMs: 20 });
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes);
  await rowsOf(gateway.port, service, 'create table kept (n int); insert into kept values (7)');
  await until(async () => (await backend.observe(service.ref)).compute === 'idle', 'the idle stop');
  expect(await processesHere()).toEqual([]);
  const answers = await Promise.all(Array.from({ length: 30 }, () => rowsOf(gateway.port, service, 'select n from kept')));
  expect(answers).toEqual(Array.from({ length: 30 }, () => [{ n: 7 }]));
  await gateway.drain(0);
  await host.stop();
});

test('a service with a session is not stopped, through the gateway or past it', async () => {
  const rested: Instance[] = [];
  const host = await site.start({}, { idleMs: (instance) => { rested.push(instance); return 0; }, sweepMs: 5 });
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes);
  const session = customer(gateway.port, service);
  await session.connect();
  const { slot } = await recordOf(service);
  const direct = customer(site.config.PG_PORT_BASE + slot, service, { ssl: false });
  await direct.connect();
  await session.end();
  const sweeps = rested.length;
  await until(() => rested.length > sweeps + 20);
  expect((await direct.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await direct.end();
  await until(async () => (await backend.observe(service.ref)).compute === 'idle', 'the idle stop');
  await gateway.drain(0);
  await host.stop();
});

test('a killed postmaster is replaced at the next connection, with every committed row', async () => {
  const host = await site.start();
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes);
  await rowsOf(gateway.port, service, 'create table kept (n int); insert into kept select generate_series(1, 1000)');
  const former = await postmasterOf(service);
  process.kill(former, 'SIGKILL');
  expect(await rowsOf(gateway.port, service, 'select count(*)::int as n from kept')).toEqual([{ n: 1000 }]);
  expect(await postmasterOf(service)).not.toBe(former);
  await gateway.drain(0);
  await host.stop();
});

test('sessions survive a killed host, which adopts the servers again and starts no second one', async () => {
  const first = await site.startProcess({ PG_STOP_ON_EXIT: false });
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes);
  const session = customer(gateway.port, service);
  await session.connect();
  const postmaster = await postmasterOf(service);
  first.kill('SIGKILL');
  await once(first, 'exit');
  expect((await session.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  expect(await refusalOf(customer(gateway.port, service))).toBeNull();
  const host = await site.start({ PG_STOP_ON_EXIT: true }, { idleMs: () => 0, sweepMs: 5 });
  expect((await backend.observe(service.ref)).compute).toBe('running');
  expect(await postmasterOf(service)).toBe(postmaster);
  expect((await session.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
  await session.end();
  await until(async () => (await backend.observe(service.ref)).compute === 'idle', 'the idle stop');
  await gateway.drain(0);
  await host.stop();
});

test('a host that is to stop its servers leaves no process and no socket', async () => {
  const host = await site.start({ PG_STOP_ON_EXIT: true, PG_POOL_RUNNING: 'trial:1' });
  await until(() => host.pool.counts().running['trial'] === 1, 'the pool');
  await makeService(backend, routes);
  await host.stop();
  expect(await processesHere()).toEqual([]);
  expect(await readdir(site.runDir)).toEqual([]);
});

test('the fence outlives service and host', async () => {
  const first = await site.start();
  const service = await makeService(backend, routes);
  await Promise.all([2, 3, 4, 5].map((generation) => backend.destroy({ ...service.ref, generation, retain: false })
    .catch((error: unknown) => expect(error).toMatchObject({ code: 'stale_generation' }))));
  await first.stop();
  const second = await site.start();
  await expect(backend.ensureInstance({ ...service.ref, generation: 4, version: '18' })).rejects.toMatchObject({ code: 'stale_generation' });
  expect(await readdir(join(site.dataDir, 'instances'))).toEqual([]);
  await second.stop();
});

test('a destruction overtakes a creation that is under way, and nothing is left', async () => {
  const host = await site.start();
  const service = newService();
  const creation = backend.ensureInstance({ ...service.ref, version: '18' }).then(() => 'made', (error: unknown) => systemCode(error));
  await until(async () => (await readdir(join(site.dataDir, 'instances'))).length === 1, 'the directory');
  await backend.destroy({ ...service.ref, generation: 2, retain: false });
  expect(await creation).toBe('stale_generation');
  expect(await readdir(join(site.dataDir, 'instances'))).toEqual([]);
  expect(await readdir(join(site.dataDir, 'trash'))).toEqual([]);
  expect(await processesHere()).toEqual([]);
  await host.stop();
});

test('a creation that was cut by a kill is finished by its repetition', async () => {
  const first = await site.startProcess();
  const service = newService();
  const cut = backend.ensureInstance({ ...service.ref, version: '18' }).catch((error: unknown) => systemCode(error));
  await until(async () => (await readdir(join(site.dataDir, 'instances'))).length === 1, 'the directory');
  first.kill('SIGKILL');
  expect(await cut).toBe('backend_error');
  const host = await site.start();
  await backend.ensureInstance({ ...service.ref, version: '18' });
  await backend.ensureAccess({ ...service.ref, logins: [service.login], endSessionsOf: [] });
  expect(await readdir(join(site.dataDir, 'instances'))).toHaveLength(1);
  const { slot } = await recordOf(service);
  expect(await refusalOf(customer(site.config.PG_PORT_BASE + slot, service, { ssl: false }))).toBeNull();
  await host.stop();
});

test('a server whose port was taken while it slept wakes at another', async () => {
  const host = await site.start();
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes);
  const { slot } = await recordOf(service);
  process.kill(await postmasterOf(service), 'SIGINT');
  await until(async () => (await processesHere()).length === 0, 'the stop');
  const intruder = createServer().listen(site.config.PG_PORT_BASE + slot, '127.0.0.1');
  await once(intruder, 'listening');
  expect(await rowsOf(gateway.port, service, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect((await recordOf(service)).slot).not.toBe(slot);
  intruder.close();
  await gateway.drain(0);
  await host.stop();
});

test('a directory whose record cannot be understood is left as it is, and the others are served', async () => {
  const first = await site.start();
  const [service, damaged] = [await makeService(backend, routes), newService()];
  await backend.place({ ...damaged.ref, version: '18' });
  const { id } = await recordOf(damaged);
  await first.stop();
  await writeFile(join(site.dataDir, 'instances', id, 'instance.json'), '{"serviceId":');
  const second = await site.start();
  expect(await backend.observe(service.ref)).toMatchObject({ compute: 'idle' });
  expect(await readdir(join(site.dataDir, 'instances', id))).toEqual(['instance.json']);
  await second.stop();
});

test('read-only lets in and reads, and writes again when it is lifted', async () => {
  const host = await site.start();
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes);
  await rowsOf(gateway.port, service, 'create table kept (n int)');
  await backend.setAccessMode({ ...service.ref, mode: 'read_only', stop: false });
  await until(() => rowsOf(gateway.port, service, 'insert into kept values (1)').then(() => false, (error: unknown) => systemCode(error) === '25006'), 'the reload');
  expect(Array.isArray(await rowsOf(gateway.port, service, 'select n from kept'))).toBe(true);
  await backend.setAccessMode({ ...service.ref, mode: 'full', stop: false });
  await until(() => rowsOf(gateway.port, service, 'insert into kept values (1)').then(() => true, () => false), 'the reload');
  await gateway.drain(0);
  await host.stop();
});

test('a second host for the same directory is refused', async () => {
  const host = await site.start();
  await expect(site.start()).rejects.toThrow('Another instance host serves');
  await host.stop();
});

test('the pool gives a ready server to the first who asks, and fills again', async () => {
  const host = await site.start({ PG_POOL_PREPARED: 1, PG_POOL_RUNNING: 'trial:1' });
  await until(() => host.pool.counts().running['trial'] === 1 && host.pool.counts().prepared === 1, 'the pool');
  const [pooled] = await backend.inventory().then((items) => items.map((item) => item.instanceRef));
  const service = await makeService(backend, routes);
  const seen = await backend.observe(service.ref);
  expect(seen.verifiers).toEqual({ [service.login.name]: service.login.verifier });
  expect(Date.parse(seen.provenAt ?? '')).toBeLessThanOrEqual(Date.now());
  expect((await backend.inventory()).map((item) => item.instanceRef)).toContain(pooled);
  const { slot } = await recordOf(service);
  const roles = await rowsOfDirect(slot, service, `select rolname from pg_roles where rolname !~ '^pg_' order by 1`);
  expect(roles).toEqual(['holdfast_admin', service.ref.names.owner, service.login.name].map((rolname) => ({ rolname })));
  const ours = async () => (await rowsOfDirect(slot, service, `select from pg_stat_activity where application_name = 'holdfast'`)).length;
  await until(async () => await ours() === 0, 'the session that was ready for the claim to end');
  await until(() => host.pool.counts().running['trial'] === 1 && host.pool.counts().prepared === 1, 'the pool again');
  await host.stop();
});

async function rowsOfDirect(slot: number, service: TestService, sql: string): Promise<unknown[]> {
  const client = customer(site.config.PG_PORT_BASE + slot, service, { ssl: false });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

test('every cluster has its own identifier, checksums and the settings of its plan, and its log knows no secret', async () => {
  const host = await site.start();
  const [service, other] = [await makeService(backend, routes), await makeService(backend, routes, 'starter')];
  const { slot, id } = await recordOf(service);
  const names = ['data_checksums', 'max_connections', 'shared_buffers', 'temp_file_limit', 'statement_timeout', 'allow_alter_system', 'ssl', 'io_method', 'listen_addresses'];
  const rows = await rowsOfDirect(slot, service, `select name, setting || coalesce(' ' || unit, '') as value from pg_settings where name = any('{${names.join(',')}}') order by name`);
  expect(rows).toEqual([
    ['allow_alter_system', 'off'], ['data_checksums', 'on'], ['io_method', 'sync'], ['listen_addresses', '127.0.0.1'], ['max_connections', '15'],
    ['shared_buffers', '2048 8kB'], ['ssl', 'off'], ['statement_timeout', '60000 ms'], ['temp_file_limit', '262144 kB'],
  ].map(([name, value]) => ({ name, value })));
  expect((await backend.observe(service.ref)).systemId).not.toBe((await backend.observe(other.ref)).systemId);
  const log = await readFile(join(site.dataDir, 'instances', id, 'server.log'), 'utf8');
  expect(log).toContain('ready to accept connections');
  expect(log).not.toContain(service.password);
  expect(log).not.toContain(service.login.verifier);
  await host.stop();
});

(asRoot ? test : test.skip)('as root every instance runs under a user of its own that can read no other’s files (needs root)', async () => {
  const host = await site.start();
  const [service, other] = [await makeService(backend, routes), await makeService(backend, routes)];
  const [here, there] = [await recordOf(service), await recordOf(other)];
  const uid = site.config.PG_UID_BASE + here.slot;
  expect((await stat(`/proc/${await postmasterOf(service)}`)).uid).toBe(uid);
  expect((await stat(here.data)).mode & 0o777).toBe(0o700);
  const read = (path: string) => promisify(execFile)('cat', [path], { uid, gid: uid }).then(() => 'read', () => 'refused');
  expect(await read(join(here.data, 'PG_VERSION'))).toBe('read');
  expect(await read(join(there.data, 'PG_VERSION'))).toBe('refused');
  expect(await read(join(site.dataDir, 'instances', there.id, 'instance.json'))).toBe('refused');
  expect(await read(join(site.dataDir, 'instances', there.id, 'server.log'))).toBe('refused');
  await host.stop();
});

test('a directory that service users could not enter is named at boot', async () => {
  const shut = await HostSite.make();
  await promisify(execFile)('chmod', ['0700', shut.home]);
  if (asRoot) await expect(shut.start()).rejects.toThrow(`may not traverse ${shut.home}`);
  else await (await shut.start()).stop();
  await promisify(execFile)('chmod', ['0711', shut.home]);
  await shut.remove();
});
