import type pg from 'pg';
import type { HostPoolBackend } from '../../src/adapters/postgres-backend/host-pool/backend';
import { systemCode } from '../../src/core/files';
import { newPassword, planLimits, scramVerifier, type AccessMode } from '../../src/postgres/rules';
import { refusalOf } from '../support/postgres-gateway';
import { newService, until, type TestService } from '../support/postgres-host';
import { TestPoolServer } from '../support/postgres-pool-server';

let server: TestPoolServer;
let backend: HostPoolBackend;
let intruder: TestService;
let victim: TestService;
let session: pg.Client;
jest.setTimeout(60_000);

beforeAll(async () => {
  server = await TestPoolServer.start();
  backend = server.backend();
  [intruder, victim] = await Promise.all([make(), make()]);
  session = server.customer(intruder);
  await session.connect();
  const owner = server.customer(victim);
  await owner.connect();
  await owner.query(`create table private (n int); insert into private values (1)`);
  await owner.end();
});
afterAll(async () => {
  await session?.end();
  await server?.stop();
});

async function make(): Promise<TestService> {
  const service = newService('trial', 'database');
  await backend.ensureInstance(service.ref);
  await backend.ensureAccess({ ...service.ref, logins: [service.login], endSessionsOf: [] });
  return service;
}

const setMode = (service: TestService, mode: AccessMode) => backend.setAccessMode({ ...service.ref, mode, stop: false });

/** SQLSTATE the statement was refused with; null when it was done. */
async function refusal(sql: string, client = session): Promise<string | null> {
  return client.query(sql).then(() => null, (error: unknown) => systemCode(error) ?? String(error));
}

async function once<T>(service: TestService, work: (client: pg.Client) => Promise<T>, change: pg.ClientConfig = {}): Promise<T> {
  const client = server.customer(service, change);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const denied = '42501';
test.each([
  ['become the platform’s administrator', 'set role holdfast_pool', denied],
  ['become the superuser', 'set role holdfast', denied],
  ['become a session of the superuser', 'set session authorization holdfast', denied],
  ['become a neighbour', () => `set role ${victim.ref.names.owner}`, denied],
  ['take a neighbour’s role', () => `grant ${victim.ref.names.owner} to current_user`, denied],
  ['give its own role away', () => `grant ${intruder.ref.names.owner} to ${victim.ref.names.owner}`, denied],
  ['make a role', 'create role colleague', denied],
  ['make itself a superuser', 'alter role current_user superuser', denied],
  ['let itself make databases', 'alter role current_user createdb', denied],
  ['change a neighbour’s password', () => `alter role ${victim.login.name} password 'x'`, denied],
  ['change the administrator’s password', `alter role holdfast_pool password 'x'`, denied],
  ['raise its own number of connections', () => `alter role ${intruder.login.name} connection limit 100`, denied],
  ['raise its database’s number of connections', () => `alter database ${intruder.ref.names.database} connection limit 100`, denied],
  ['rename its database', () => `alter database ${intruder.ref.names.database} rename to mine`, denied],
  ['drop its database', () => `drop database ${intruder.ref.names.database}`, denied],
  ['make a database', 'create database second', denied],
  ['let everybody into its database', () => `grant connect on database ${intruder.ref.names.database} to public`, null],
  ['take a neighbour’s connect right', () => `revoke connect on database ${victim.ref.names.database} from ${victim.ref.names.owner}`, denied],
  ['read the stored passwords', 'select rolpassword from pg_authid', denied],
  ['read pg_shadow', 'select * from pg_shadow', denied],
  ['change a setting of the server', `alter system set work_mem = '1GB'`, denied],
  ['change a setting of all roles', `alter role all set work_mem = '1GB'`, denied],
  ['lift the limit of temporary files', 'set temp_file_limit = -1', denied],
  ['lift it for the next login', () => `alter role ${intruder.login.name} set temp_file_limit = -1`, denied],
  ['reach shared libraries', `load '/tmp/evil.so'`, denied],
  ['read a file', `select pg_read_file('/etc/passwd')`, denied],
  ['list a directory', `select pg_ls_dir('/')`, denied],
  ['see the server’s log', 'select pg_current_logfile()', denied],
  ['copy a file in', `create temp table lines (line text); copy lines from '/etc/passwd'`, denied],
  ['copy a file out', `copy (select 1) to '/tmp/out'`, denied],
  ['run a program', `copy (select 1) to program 'id'`, denied],
  ['read from a program', `create temp table said (line text); copy said from program 'id'`, denied],
  ['import a file as a large object', `select lo_import('/etc/passwd')`, denied],
  ['export a large object', `select lo_export(lo_create(0), '/tmp/out')`, denied],
  ['write C', `create function evil() returns int language c as 'evil'`, denied],
  ['make a tablespace', `create tablespace there location '/tmp'`, denied],
  ['make a foreign server of files', 'create extension file_fdw', denied],
  ['reach another server by dblink', 'create extension dblink', denied],
  ['reach another server by a foreign table', 'create extension postgres_fdw', denied],
  ['reach another server by a subscription', `create subscription theirs connection 'host=127.0.0.1' publication p`, denied],
  ['force a checkpoint', 'checkpoint', denied],
  ['reload the server', 'select pg_reload_conf()', denied],
  ['take a base backup', `select pg_backup_start('mine')`, denied],
  ['make a replication slot', `select pg_create_logical_replication_slot('s', 'pgoutput')`, denied],
  ['make an event trigger', `create function hook() returns event_trigger language plpgsql as 'begin end'; create event trigger hook on ddl_command_end execute function hook()`, denied],
  ['write the catalogue', 'update pg_database set datallowconn = true', denied],
  ['write the platform’s record', 'update holdfast.public.service set generation = 0', '0A000'],
] as const)('a customer on a shared server cannot %s', async (_what, sql, expected) => {
  expect(await refusal(typeof sql === 'string' ? sql : sql())).toBe(expected);
  await session.query('rollback').catch(() => undefined);
});

test('a customer reaches no database but his own, by no login', async () => {
  for (const database of [victim.ref.names.database, 'holdfast', 'postgres', 'template1']) {
    expect([database, await refusalOf(server.customer(intruder, { database }))]).toEqual([database, denied]);
  }
  expect(await refusalOf(server.customer(victim, { database: intruder.ref.names.database }))).toBe(denied);
  expect(await refusalOf(server.customer(intruder, { user: victim.login.name }))).toBe('28P01');
  expect(await refusalOf(server.customer(intruder, { user: intruder.ref.names.owner }))).toBe('28P01');
});

test('a neighbour’s sessions can be neither read nor ended', async () => {
  await once(victim, async (client) => {
    const { rows: [{ pid }] } = await client.query('select pg_backend_pid() as pid');
    const { rows } = await session.query('select query, client_addr from pg_stat_activity where pid = $1', [pid]);
    expect(rows).toEqual([{ query: '<insufficient privilege>', client_addr: null }]);
    expect(await refusal(`select pg_terminate_backend(${pid})`)).toBe(denied);
    expect(await refusal(`select pg_cancel_backend(${pid})`)).toBe(denied);
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
});

test('what a customer can name is no customer’s word and no secret', async () => {
  const texts = [];
  for (const table of ['pg_roles', 'pg_database', 'pg_settings', 'pg_stat_activity', 'pg_db_role_setting']) {
    texts.push((await session.query(`select to_jsonb(t)::text as row from ${table} t`)).rows.map(({ row }) => row).join('\n'));
  }
  expect(texts.join('\n')).not.toContain('SCRAM-SHA-256$');
});

test('what a customer is sold works: tables in public, schemas, trusted extensions, temporary tables', async () => {
  const own = await make();
  await once(own, async (client) => {
    for (const sql of [
      'create table t (n int primary key)', 'insert into t values (1)', 'create schema other', 'create table other.t (n int)', 'create temp table s (n int)', 'create extension btree_gist',
      'create function f() returns int language plpgsql as $$ begin return 1; end $$', 'vacuum t', 'analyze t', 'comment on schema public is null', 'drop schema public cascade', 'create schema public',
    ]) expect([sql, await refusal(sql, client)]).toEqual([sql, null]);
    const { rows: [limits] } = await client.query(`select current_user::text as role, current_setting('temp_file_limit') as temp, current_setting('statement_timeout') as timeout`);
    expect(limits).toEqual({ role: own.ref.names.owner, temp: `${planLimits.trial.tempFileLimitMb}MB`, timeout: '1min' });
  });
});

test('the plan’s connections are the server’s own limit', async () => {
  const clients = await Promise.all(Array.from({ length: planLimits.trial.connections }, async () => {
    const client = server.customer(victim);
    await client.connect();
    return client;
  }));
  expect(await refusalOf(server.customer(victim))).toBe('53300');
  await Promise.all(clients.map((client) => client.end()));
});

test('read-only ends sessions and holds for new ones until it is lifted', async () => {
  const own = await make();
  await once(own, (client) => client.query('create table t (n int)'));
  await setMode(own, 'read_only');
  await once(own, async (client) => {
    expect(await refusal('insert into t values (1)', client)).toBe('25006');
    expect(await refusal('set default_transaction_read_only = off', client)).toBeNull();
    expect(await refusal('insert into t values (1)', client)).toBeNull();
  });
  expect((await backend.observe(own.ref)).mode).toBe('read_only');
  await setMode(own, 'full');
  await once(own, async (client) => expect(await refusal('insert into t values (1)', client)).toBeNull());
});

test('restricted leaves one session that may read, delete and empty, and gives everything back', async () => {
  const own = await make();
  await once(own, (client) => client.query('create schema s; create table s.t (n int); insert into s.t values (1), (2)'));
  const before = server.customer(own);
  await before.connect();
  const cut = new Promise<void>((resolve) => before.once('end', resolve));
  await setMode(own, 'restricted');
  await cut;
  await once(own, async (client) => {
    expect((await client.query('select count(*)::int as n from s.t')).rows).toEqual([{ n: 2 }]);
    expect(await refusalOf(server.customer(own))).toBe('53300');
    for (const sql of ['insert into s.t values (3)', 'create table u ()', 'create temp table u ()', `set role ${own.ref.names.owner}`, 'update s.t set n = 0', 'create schema other']) {
      expect([sql, await refusal(sql, client)]).toEqual([sql, denied]);
    }
    for (const sql of ['delete from s.t where n = 1', 'truncate s.t']) expect([sql, await refusal(sql, client)]).toEqual([sql, null]);
  });
  await setMode(own, 'full');
  await once(own, async (client) => expect(await refusal('insert into s.t values (3)', client)).toBeNull());
});

test('retained data is untouched, and back after an undelete with a new password alone', async () => {
  const own = await make();
  await once(own, (client) => client.query('create table t (n int); insert into t values (7)'));
  const later = { ...own.ref, generation: 2 };
  await backend.destroy({ ...later, retain: true });
  expect((await server.asRoot(`select datname from pg_database where datname like '%${own.ref.names.key}'`)).rows).toEqual([{ datname: `gone_${own.ref.names.key}` }]);
  await backend.restore({ ...later, source: { kind: 'retained' } });
  await backend.restore({ ...later, source: { kind: 'retained' } });
  expect(await backend.observe(later)).toMatchObject({ compute: 'stopped', mode: 'blocked' });
  await backend.ensureInstance(later);
  expect(await refusalOf(server.customer(own))).not.toBeNull();
  const password = newPassword();
  await backend.ensureAccess({ ...later, logins: [{ ...own.login, verifier: scramVerifier(password) }], endSessionsOf: [] });
  expect(await refusalOf(server.customer(own))).toBe('28P01');
  await once({ ...own, password }, async (client) => expect((await client.query('select n from t')).rows).toEqual([{ n: 7 }]));
});

test('a purge leaves no database and no role, also with the customer in it and after an interrupted one', async () => {
  const own = await make();
  const inside = server.customer(own);
  await inside.connect();
  await server.asRoot(`update pg_database set datconnlimit = -2 where datname = '${own.ref.names.database}'`);
  await backend.destroy({ ...own.ref, generation: 2, retain: false });
  const left = await server.asRoot(`select datname::text as name from pg_database where datname like '%${own.ref.names.key}' union all select rolname from pg_roles where rolname like '%${own.ref.names.key}%'`);
  expect(left.rows).toEqual([]);
});

test('eight workers at once make one database and end in the same state', async () => {
  const own = newService('trial', 'database');
  await Promise.all(Array.from({ length: 8 }, () => server.backend().ensureInstance(own.ref)));
  await Promise.all(Array.from({ length: 8 }, () => server.backend().ensureAccess({ ...own.ref, logins: [own.login], endSessionsOf: [] })));
  expect(await refusalOf(server.customer(own))).toBeNull();
});

test('a deletion overtakes a creation under way, which then leaves nothing', async () => {
  const own = newService('trial', 'database');
  const made = backend.ensureInstance(own.ref).then(() => null, (error: unknown) => error);
  await backend.destroy({ ...own.ref, generation: 2, retain: false });
  const error = await made;
  if (error !== null) expect(error).toMatchObject({ code: 'stale_generation' });
  await until(async () => (await server.asRoot(`select from pg_database where datname = '${own.ref.names.database}'`)).rowCount === 0, 'nothing to be left');
});

test('a server that shows customers to each other, or is not registered, takes nobody', async () => {
  const bare = await TestPoolServer.start({ prepared: false });
  try {
    await bare.asRoot(`create role holdfast_pool login createrole password 'admin-of-the-pool'`);
    await bare.asRoot('drop database holdfast');
    await bare.asRoot('create database holdfast owner holdfast_pool');
    const error: unknown = await bare.backend().place(newService('trial', 'database').ref).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'backend_error', cause: { message: expect.stringMatching(/CREATEDB.*temp_file_limit.*REVOKE CONNECT ON DATABASE postgres/) } });
  } finally {
    await bare.stop();
  }
  await expect(backend.place({ ...newService('trial', 'database').ref, hostId: 'elsewhere' })).rejects.toMatchObject({ code: 'backend_error' });
});
