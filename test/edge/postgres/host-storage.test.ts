import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { EmbeddedBackend } from '../../../src/adapters/postgres-backend/embedded';
import { systemCode } from '../../../src/core/files';
import { newPassword, planLimits, scramVerifier } from '../../../src/postgres/rules';
import { makeService, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, until, type TestService } from '../../support/postgres-host';

jest.setTimeout(180_000);
let site: HostSite;
let backend: EmbeddedBackend;
const clients: pg.Client[] = [];

beforeEach(async () => {
  site = await HostSite.make();
  backend = site.backend();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => undefined)));
  backend.close();
  await site.remove();
});

async function recordOf({ ref }: TestService): Promise<{ slot: number; mode: string; settled: boolean; directory: string }> {
  const id = (await backend.inventory()).find((item) => item.serviceId === ref.serviceId)?.instanceRef ?? '';
  const directory = join(site.dataDir, 'instances', id);
  return { directory, ...JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8')) };
}

/** The customer at the instance itself: what holds here holds through every gateway. */
async function connect(service: TestService, change: pg.ClientConfig = {}): Promise<pg.Client> {
  const { slot } = await recordOf(service);
  const client = new pg.Client({ host: '127.0.0.1', port: site.config.PG_PORT_BASE + slot, user: service.login.name, password: service.password, database: 'app', ...change });
  client.on('error', () => undefined);
  clients.push(client);
  await client.connect();
  return client;
}

const inForce = async (service: TestService, wanted: string) => recordOf(service).then(({ mode: found, settled }) => found === wanted && settled);
const codeOf = (work: Promise<unknown>) => work.then(() => 'done', (error: unknown) => systemCode(error));
const mode = async (service: TestService, wanted: 'full' | 'read_only' | 'restricted' | 'blocked') => {
  await backend.setAccessMode({ ...service.ref, mode: wanted, stop: false });
};

test('restricted keeps reading, deleting and truncating over one connection, and nothing that writes', async () => {
  await site.start();
  const service = await makeService(backend, new TestRoutes());
  const owner = await connect(service);
  await owner.query(`create table kept as select n, repeat('x', 100) as t from generate_series(1, 1000) n; create schema other; create table other.more (n int);
    select lo_from_bytea(4711, 'abc')`);
  await owner.query('create database second');
  const second = await connect(service, { database: 'second' });
  await second.query('create table there (n int); insert into there values (1)');
  await mode(service, 'restricted');
  expect(await codeOf(owner.query('select 1'))).not.toBe('done');
  const client = await connect(service);
  expect((await client.query('select count(*)::int as n from kept')).rows).toEqual([{ n: 1000 }]);
  expect(await codeOf(connect(service))).toBe('53300');
  const refused = {
    'insert into kept values (1)': '42501', 'update kept set n = 1': '42501', 'create table new (n int)': '42501', 'create temporary table new (n int)': '42501',
    [`set role ${service.ref.names.owner}`]: '42501', 'select lo_create(0)': '42501', 'select lo_put(4711, 0, $$abcd$$)': '42501', "select lo_from_bytea(0, 'a')": '42501',
    'create database third': '42501', 'create schema more': '42501', [`alter role ${service.login.name} connection limit 10`]: '42501', [`alter role ${service.login.name} set role = ${service.ref.names.owner}`]: 'done',
    [`grant ${service.ref.names.owner} to ${service.login.name}`]: '42501', 'alter table kept add column m int': '42501', 'copy kept from program $$true$$': '42501',
  };
  for (const [sql, code] of Object.entries(refused)) expect({ sql, code: await codeOf(client.query(sql)) }).toEqual({ sql, code });
  await client.query('delete from kept where n = 1; truncate kept; truncate other.more');
  await client.end();
  const again = await connect(service, { database: 'second' });
  expect((await again.query('select n from there')).rows).toEqual([{ n: 1 }]);
  await again.query('truncate there');
  expect(await codeOf(again.query('insert into there values (1)'))).toBe('42501');
  await again.end();
  await mode(service, 'full');
  const free = await connect(service);
  await free.query('insert into kept values (1); create table new (n int); create temporary table t (n int); select lo_create(0)');
  await free.query(`alter role ${service.login.name} reset role`).catch(() => undefined);
  expect((await free.query(`select count(*)::int as n from pg_roles where rolname = '${service.ref.names.restricted}'`)).rows).toEqual([{ n: 0 }]);
  await connect(service);
});

test('a restriction holds over a rotation, a sleep and a new login, and ends with a larger plan', async () => {
  const host = await site.start();
  const service = await makeService(backend, new TestRoutes());
  await (await connect(service)).query('create table kept (n int)');
  await mode(service, 'restricted');
  const password = newPassword();
  const next = { ...service.login, name: service.ref.names.logins[1], verifier: scramVerifier(password) };
  await backend.ensureAccess({ ...service.ref, generation: 2, logins: [service.login, next], endSessionsOf: [] });
  const renewed: TestService = { ...service, password, login: next };
  expect(await codeOf((await connect(renewed)).query('insert into kept values (1)'))).toBe('42501');
  await backend.setAccessMode({ ...service.ref, generation: 2, mode: 'restricted', stop: true });
  await host.stop();
  await site.start();
  await backend.ensureInstance({ ...service.ref, generation: 3, version: '18' });
  expect(await codeOf((await connect(renewed)).query('insert into kept values (1)'))).toBe('42501');
  expect((await backend.observe(service.ref)).mode).toBe('restricted');
  const limits = planLimits.starter;
  expect(await backend.setLimits({ ...service.ref, generation: 4, limits })).toEqual({ restarted: true });
  await (await connect(renewed)).query('insert into kept values (1)');
  expect(await backend.setLimits({ ...service.ref, generation: 5, limits })).toEqual({ restarted: false });
  expect(await backend.setLimits({ ...service.ref, generation: 6, limits: { ...limits, workMemMb: 5 } })).toEqual({ restarted: false });
});

test('a limit set while the server sleeps holds when it wakes', async () => {
  await site.start();
  const service = await makeService(backend, new TestRoutes());
  await backend.setAccessMode({ ...service.ref, mode: 'full', stop: true });
  expect(await backend.setLimits({ ...service.ref, generation: 2, limits: planLimits.starter })).toEqual({ restarted: false });
  await backend.ensureInstance({ ...service.ref, generation: 3, version: '18', limits: planLimits.starter });
  const client = await connect(service);
  expect((await client.query(`select rolconnlimit, current_setting('max_connections') as most from pg_roles where rolname = session_user`)).rows)
    .toEqual([{ rolconnlimit: planLimits.starter.connections, most: String(planLimits.starter.connections + 5) }]);
});

test('a writer past 120 % of the plan ends restricted by the host alone, frees its space and is let write again; a neighbour goes on', async () => {
  const host = await site.start({}, { guardMs: 50, closedMs: 1_000 });
  const [service, neighbour] = [await makeService(backend, new TestRoutes()), await makeService(backend, new TestRoutes())];
  const beside = await connect(neighbour);
  await beside.query('create table kept (n int)');
  const limit = planLimits.trial.storageBytes;
  const writer = await connect(service, { options: '-c statement_timeout=0 -c synchronous_commit=off' });
  await writer.query('create table filler (t text); alter table filler alter column t set storage external');
  const megabyte = randomBytes(500_000).toString('hex');
  await writer.query(`create function grow() returns void language sql security definer as $$ insert into filler select repeat(md5(random()::text), 30000) from generate_series(1, 20) $$`);
  // One transaction: neither a reload nor a check at its start can stop it before it is past the limit.
  await writer.query('begin');
  const wrote = await codeOf((async () => {
    for (let written = 0; written < 1.3 * limit; written += 10 * megabyte.length) await writer.query('insert into filler select $1 from generate_series(1, 10)', [megabyte]);
    await writer.query('commit');
  })());
  await until(() => inForce(service, 'restricted'), 'the restriction');
  expect(['done', '57P01', 'ECONNRESET', null]).toContain(wrote);
  expect(await codeOf(beside.query('insert into kept values (1)'))).toBe('done');
  const client = await connect(service);
  expect(await codeOf(client.query(`insert into filler values ('a')`))).toBe('42501');
  // A function that writes with its owner's rights: it gets as far as the guard looks.
  await until(() => client.query('select grow()').then(() => false, () => true), 'the end of its sessions');
  await until(async () => await codeOf(connect(service).then((back) => back.query('truncate filler'))) === 'done', 'another chance to make room');
  await until(() => inForce(service, 'full'), 'the recovery');
  await (await connect(service)).query(`insert into filler values ('a')`);
  const { directory } = await recordOf(service);
  expect(await readFile(join(directory, 'server.log'), 'utf8')).not.toContain('PANIC');
  expect((await backend.observe(neighbour.ref)).mode).toBe('full');
  await host.stop();
});
