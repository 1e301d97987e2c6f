import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { EmbeddedBackend } from '../../../src/adapters/postgres-backend/embedded';
import { systemCode } from '../../../src/core/files';
import { newId } from '../../../src/core/ids';
import type { PostgresHost } from '../../../src/edge/postgres/host/host';
import { customer, customerBy, domain, makeService, refusalOf, startGateway, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, type TestService } from '../../support/postgres-host';

let site: HostSite;
let host: PostgresHost;
let backend: EmbeddedBackend;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let intruder: TestService;
let victim: TestService;
let session: pg.Client;
const routes = new TestRoutes();
jest.setTimeout(120_000);

beforeAll(async () => {
  site = await HostSite.make();
  host = await site.start();
  backend = site.backend();
  gateway = await startGateway({ site, routes });
  intruder = await makeService(backend, routes);
  victim = await makeService(backend, routes);
  session = customer(gateway.port, intruder);
  await session.connect();
});
afterAll(async () => {
  await session.end();
  await gateway.drain(0);
  backend.close();
  await host.stop();
  await site.remove();
});

/** SQLSTATE the statement was refused with; null when it was done. */
async function refusal(sql: string): Promise<string | null> {
  return session.query(sql).then(() => null, (error: unknown) => systemCode(error) ?? String(error));
}

const denied = '42501';
test.each([
  ['become the platform’s role', 'set role holdfast_admin', denied],
  ['become a session of the platform’s role', 'set session authorization holdfast_admin', denied],
  ['make a superuser', 'create role boss superuser', denied],
  ['make itself a superuser', 'alter role current_user superuser', denied],
  ['make a role that bypasses row security', 'create role sneak bypassrls', denied],
  ['make a role that replicates', 'create role copier replication', denied],
  ['change the platform’s password', `alter role holdfast_admin password 'x'`, denied],
  ['take the platform’s role', 'grant holdfast_admin to current_user', denied],
  ['read the stored passwords', 'select rolpassword from pg_authid', denied],
  ['read pg_shadow', 'select * from pg_shadow', denied],
  ['change a setting of the server', `alter system set work_mem = '1GB'`, '0A000'],
  ['change a setting of the server for all its roles', `alter role all set work_mem = '1GB'`, denied],
  ['lift the limit of temporary files', `set temp_file_limit = -1`, denied],
  ['lift the reserve of connections', 'set session superuser_reserved_connections = 0', '55P02'],
  ['reach shared libraries', `load '/tmp/evil.so'`, denied],
  ['load one for every session', `set session_preload_libraries = 'evil'`, denied],
  ['read a file of the machine', `select pg_read_file('/etc/passwd')`, denied],
  ['read a file of its own server', `select pg_read_binary_file('postgresql.conf')`, denied],
  ['list a directory', `select pg_ls_dir('/')`, denied],
  ['look at a file', `select pg_stat_file('/etc/passwd')`, denied],
  ['copy a file in', `create temp table lines (line text); copy lines from '/etc/passwd'`, denied],
  ['copy a file out', `copy (select 1) to '/tmp/out'`, denied],
  ['run a program', `copy (select 1) to program 'id'`, denied],
  ['read from a program', `create temp table said (line text); copy said from program 'id'`, denied],
  ['import a file as a large object', `select lo_import('/etc/passwd')`, denied],
  ['export a large object', `select lo_export(lo_create(0), '/tmp/out')`, denied],
  ['use an untrusted language', 'create extension plpython3u', denied],
  ['write C', `create function evil() returns int language c as 'evil'`, denied],
  ['make a tablespace', `create tablespace there location '/tmp'`, denied],
  ['make a foreign server of files', 'create extension file_fdw', denied],
  ['reach another server by dblink', 'create extension dblink', denied],
  ['reach another server by a foreign table', 'create extension postgres_fdw', denied],
  ['reach another server by a subscription', `create subscription theirs connection 'host=127.0.0.1' publication p`, denied],
  ['force a checkpoint', 'checkpoint', denied],
  ['see who is allowed in', 'select * from pg_hba_file_rules', denied],
  ['reload the server', 'select pg_reload_conf()', denied],
  ['rotate its log', 'select pg_rotate_logfile()', denied],
  ['promote it', 'select pg_promote()', denied],
  ['switch WAL', 'select pg_switch_wal()', denied],
  ['take a base backup', `select pg_backup_start('mine')`, denied],
  ['make a replication slot', `select pg_create_logical_replication_slot('s', 'pgoutput')`, denied],
  ['make an event trigger', `create function hook() returns event_trigger language plpgsql as 'begin end'; create event trigger hook on ddl_command_end execute function hook()`, denied],
  ['read the catalogue’s statistics of others', 'select * from pg_statistic', denied],
  ['write the catalogue', `update pg_database set datallowconn = true`, denied],
  ['drop the platform’s database', 'drop database postgres', denied],
] as const)('a customer cannot %s', async (_what, sql, expected) => {
  expect(await refusal(sql)).toBe(expected);
  await session.query('rollback').catch(() => undefined);
});

test('a customer cannot leave its own server, whatever name it gives', async () => {
  const theirs = { user: victim.login.name };
  expect(await refusalOf(customer(gateway.port, intruder, theirs))).toBe('28P01');
  expect(await refusalOf(customerBy(`${victim.ref.names.label}.${domain}`, gateway.port, intruder))).toBe('28P01');
  expect(await refusalOf(customer(gateway.port, intruder, { options: `-c holdfast.service=${victim.ref.serviceId}` }))).toBe('28P01');
  expect(await refusalOf(customer(gateway.port, intruder, { database: 'postgres' }))).toBe('42501');
  expect(await refusalOf(customer(gateway.port, intruder, { database: 'template1' }))).toBe('42501');
});

test('the platform’s role is refused by password on the instance’s own port and over the gateway', async () => {
  const ports = (await session.query('show port')).rows[0].port;
  expect(await refusalOf(customer(Number(ports), intruder, { user: 'holdfast_admin', ssl: false }))).toBe('28000');
  expect(await refusalOf(customer(gateway.port, intruder, { user: 'holdfast_admin' }))).toBe('28000');
});

test('a customer sees no name of another and no secret of the platform', async () => {
  const tables = ['pg_roles', 'pg_database', 'pg_settings', 'pg_stat_activity', 'pg_file_settings', 'pg_ident_file_mappings'];
  const seen = [];
  for (const table of tables) seen.push(await session.query(`select to_jsonb(t)::text as row from ${table} t`).then(({ rows }) => rows.map((row) => row.row).join('\n'), () => ''));
  const text = seen.join('\n');
  expect(text).toContain(intruder.ref.names.owner);
  expect(text).not.toContain(victim.ref.names.key);
  expect(text).not.toContain('SCRAM-SHA-256$');
});

test('what a customer is sold works: databases, roles, extensions, maintenance, ending its own sessions', async () => {
  for (const sql of [
    'create database second', 'create role colleague login', 'create schema private', 'create extension btree_gist', 'create extension btree_gin', 'vacuum', 'analyze',
    'select count(*) from pg_stat_activity', 'create publication everything', 'drop database second', 'drop role colleague',
  ]) expect([sql, await refusal(sql)]).toEqual([sql, null]);
});

/** A service of its own, to the customer's session in which everything is the customer's. */
async function planted(sql: string): Promise<{ service: TestService; owner: pg.Client }> {
  const service = await makeService(backend, routes, 'starter');
  const owner = customer(gateway.port, service);
  owner.on('error', () => undefined);
  await owner.connect();
  await owner.query(sql);
  return { service, owner };
}

test('nothing a customer has planted in its own databases runs with the platform’s rights', async () => {
  const { service, owner } = await planted(`
    create table trapped (who text); grant insert on trapped to public; create table kept (t text); insert into kept values ('one');
    create function trap(name, name) returns boolean language plpgsql as $$ begin insert into public.trapped values (current_user); return pg_catalog.nameregexne($1, $2::text); end $$;
    create operator public.!~ (leftarg = name, rightarg = name, function = trap);
    create function format(text, name, text) returns text language plpgsql as $$ begin insert into public.trapped values (current_user); return pg_catalog.format($1, $2, $3); end $$;
    create function as_text(kept) returns text language plpgsql as $$ begin raise exception 'this ran in a drill'; end $$; create cast (kept as text) with function as_text(kept);
    create materialized view never as select 1 as n with no data;
    alter database app set search_path = public, pg_catalog`);
  for (const [setting, value] of [['role', service.ref.names.owner], ['local_preload_libraries', 'missing'], ['transaction_timeout', `'1ms'`], ['idle_session_timeout', `'1ms'`], ['default_transaction_read_only', 'on']]) {
    await owner.query(`alter database app set ${setting} = ${value}`);
  }
  await backend.setAccessMode({ ...service.ref, mode: 'restricted', stop: false });
  await backend.setAccessMode({ ...service.ref, mode: 'full', stop: false });
  const backupId = newId('bak');
  await backend.snapshot({ ...service.ref, backupId });
  expect((await backend.drill(service.ref.serviceId, backupId)).tables).toBeGreaterThan(50);
  const again = customer(gateway.port, service, { options: '-c local_preload_libraries= -c transaction_timeout=0 -c idle_session_timeout=0 -c search_path=public' });
  await again.connect();
  expect((await again.query('select who from trapped')).rows).toEqual([]);
  await again.end();
});

test.each([
  ['the catalogue of roles', 'lock table pg_catalog.pg_authid in access exclusive mode'],
  ['the catalogue of databases', 'lock table pg_catalog.pg_database in access exclusive mode'],
  ['its own role', `set role none; alter role current_user password 'another'`],
])('a customer that locks %s is restricted, given another password, closed and deleted all the same', async (_what, lock) => {
  const { service, owner } = await planted('create table kept (n int)');
  const locked = async (): Promise<pg.Client> => {
    const client = customer(gateway.port, service);
    client.on('error', () => undefined);
    await client.connect();
    await client.query(`set idle_in_transaction_session_timeout = 0; begin; ${lock}`);
    return client;
  };
  await owner.end();
  await locked();
  await backend.setAccessMode({ ...service.ref, mode: 'restricted', stop: false });
  await backend.setAccessMode({ ...service.ref, mode: 'full', stop: false });
  await locked();
  await backend.ensureAccess({ ...service.ref, generation: 2, logins: [service.login], endSessionsOf: [] });
  await locked();
  await backend.setAccessMode({ ...service.ref, generation: 3, mode: 'blocked', stop: false });
  await backend.destroy({ ...service.ref, generation: 3, retain: false });
  expect((await backend.inventory()).map(({ serviceId }) => serviceId)).not.toContain(service.ref.serviceId);
});

/** A session of the platform's, as the host has them. */
async function platformAt(service: TestService): Promise<pg.Client> {
  const { instanceRef } = (await backend.inventory()).find(({ serviceId }) => serviceId === service.ref.serviceId) ?? { instanceRef: '' };
  const { slot } = JSON.parse(await readFile(join(site.dataDir, 'instances', instanceRef, 'instance.json'), 'utf8'));
  const admin = new pg.Client({ host: join(site.runDir, String(slot)), port: site.config.PG_PORT_BASE + slot, user: 'holdfast_admin', database: 'postgres' });
  await admin.connect();
  return admin;
}

test('a customer cannot end the platform’s sessions', async () => {
  const platform = await platformAt(intruder);
  expect(await refusal(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'holdfast_admin'`)).toBe(denied);
  expect((await platform.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await platform.end();
});

test('a database whose removal was cut short keeps neither a restriction nor a deletion from its end', async () => {
  const { service, owner } = await planted('create database second');
  const admin = await platformAt(service);
  await admin.query(`update pg_database set datconnlimit = -2 where datname = 'second'`);
  await admin.end();
  for (const mode of ['restricted', 'full', 'blocked'] as const) await backend.setAccessMode({ ...service.ref, mode, stop: false });
  await owner.end().catch(() => undefined);
});
