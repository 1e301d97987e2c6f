import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { EmbeddedBackend } from '../../../src/adapters/postgres-backend/embedded';
import { newId } from '../../../src/core/ids';
import { systemCode } from '../../../src/core/files';
import { archiveCommand } from '../../../src/edge/postgres/host/configuration';
import { makeService, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, newService, until, type TestService } from '../../support/postgres-host';

jest.setTimeout(180_000);
let site: HostSite;
let backend: EmbeddedBackend;
const clients: pg.Client[] = [];

beforeEach(async () => {
  site = await HostSite.make();
  backend = site.backend();
});
afterEach(async () => {
  await leave();
  backend.close();
  await site.remove();
});

async function leave(): Promise<void> {
  await Promise.all(clients.splice(0).map((client) => client.end().catch(() => undefined)));
}

async function recordOf({ ref }: TestService): Promise<{ slot: number; directory: string }> {
  const id = (await backend.inventory()).find((item) => item.serviceId === ref.serviceId && !item.retained)?.instanceRef ?? '';
  const directory = join(site.dataDir, 'instances', id);
  return { directory, ...JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8')) };
}

async function connect(service: TestService, change: pg.ClientConfig = {}): Promise<pg.Client> {
  const { slot } = await recordOf(service);
  const client = new pg.Client({ host: '127.0.0.1', port: site.config.PG_PORT_BASE + slot, user: service.login.name, password: service.password, database: 'app', ...change });
  client.on('error', () => undefined);
  clients.push(client);
  await client.connect();
  return client;
}

/** Everything of a table, in order: what "row by row" means. */
async function rowsOf(client: pg.Client, table = 'kept'): Promise<unknown[]> {
  return (await client.query(`select * from ${table} order by n`)).rows;
}

/** What has been committed is in the archive, as it is within a minute without anybody's help. */
async function archived(service: TestService): Promise<string> {
  const { slot } = await recordOf(service);
  const admin = await connect(service, { host: join(site.runDir, String(slot)), user: 'holdfast_admin', database: 'postgres' });
  const { rows: [before] } = await admin.query(`select pg_walfile_name(pg_switch_wal()) as file`);
  await until(async () => (await readdir(walOf(service))).includes(before.file), 'the archive');
  await admin.end();
  return (await backend.observe(service.ref)).newestArchivedWal ?? '';
}

const walOf = ({ ref }: TestService) => join(site.dataDir, 'backups', ref.serviceId, 'wal');
const baseOf = ({ ref }: TestService) => join(site.dataDir, 'backups', ref.serviceId, 'base');
const codeOf = (work: Promise<unknown>) => work.then(() => 'done', (error: unknown) => systemCode(error));
const snapshot = (service: TestService, backupId = newId('bak')) => backend.snapshot({ ...service.ref, backupId }).then((taken) => ({ ...taken, backupId }));
const now = async (client: pg.Client): Promise<string> => (await client.query('select clock_timestamp() as at')).rows[0].at.toISOString();

/** A new service from another's backup, opened as a workflow would. */
async function restored(from: TestService, backupId: string, targetTime: string | null): Promise<TestService> {
  const service = newService('starter');
  await backend.place({ ...service.ref, version: '18' });
  await restore(service, from, backupId, targetTime);
  return opened(service);
}

const restore = (service: TestService, from: TestService, backupId: string, targetTime: string | null) =>
  backend.restore({ ...service.ref, source: { kind: 'backup', serviceId: from.ref.serviceId, backupId, targetTime } });

async function opened(service: TestService): Promise<TestService> {
  await backend.ensureInstance({ ...service.ref, version: '18' });
  await backend.ensureAccess({ ...service.ref, logins: [service.login], endSessionsOf: [] });
  return service;
}

async function fill(service: TestService): Promise<pg.Client> {
  const client = await connect(service);
  await client.query(`create table kept as select n, md5(n::text) as t from generate_series(1, 20000) n; create table big (n int, t text);
    alter table big alter column t set storage external; insert into big select n, repeat(md5(n::text), 1000) from generate_series(1, 50) n`);
  return client;
}

async function flip(path: string, at: number): Promise<void> {
  const file = await open(path, 'r+');
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
  await file.write(Buffer.from([(buffer[0] ?? 0) ^ 0xff]), 0, 1, at);
  await file.close();
}

/** Processes that stand in a directory below ours. */
async function processesHere(): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const stands = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).then((cwd) => cwd.startsWith(site.home), () => false)));
  return pids.filter((_, index) => stands[index]);
}

test('a backup becomes another service, row by row, which nobody enters with the source’s password', async () => {
  await site.start();
  const source = await makeService(backend, new TestRoutes(), 'starter');
  const client = await fill(source);
  const taken = await snapshot(source);
  expect(await snapshot(source, taken.backupId)).toEqual(taken);
  expect(taken.sizeBytes).toBeGreaterThan(5_000_000);
  await client.query('delete from kept; drop table big');
  const copy = await restored(source, taken.backupId, null);
  const there = await connect(copy);
  expect(await rowsOf(there)).toHaveLength(20_000);
  expect((await there.query('select count(*)::int as n, sum(length(t))::int as bytes from big')).rows).toEqual([{ n: 50, bytes: 50 * 32_000 }]);
  expect((await backend.observe(copy.ref)).systemId).toBe(taken.systemId);
  expect(await codeOf(connect({ ...source, ref: copy.ref }))).toBe('28P01');
  expect((await there.query(`select rolname from pg_roles where rolname ~ '^[our]_' order by 1`)).rows.map((row) => row.rolname)).toEqual([copy.ref.names.owner, copy.login.name]);
  await there.query('create table new as select * from kept; drop table kept');
  expect(await rowsOf(client)).toEqual([]);
  expect(await restore(copy, source, taken.backupId, null)).toMatchObject({});
  expect(await rowsOf(there, 'new')).toHaveLength(20_000);
});

test('to fifty milliseconds before a DROP TABLE, to the very end, and to what no commit follows', async () => {
  await site.start();
  const source = await makeService(backend, new TestRoutes(), 'starter');
  const client = await fill(source);
  const { backupId } = await snapshot(source);
  await client.query(`insert into kept select n, 'later' from generate_series(20001, 20100) n`);
  await client.query('select pg_sleep(0.1)');
  const before = await now(client);
  await client.query('select pg_sleep(0.05)');
  await client.query('drop table kept');
  await client.query('select pg_sleep(0.05)');
  const afterDrop = await now(client);
  const latest = await archived(source);
  const all = await rowsOf(await connect(await restored(source, backupId, before)));
  expect(all).toHaveLength(20_100);
  expect(all.at(-1)).toEqual({ n: 20_100, t: 'later' });
  for (const time of [latest, afterDrop].filter((at) => at <= latest)) {
    expect(await codeOf(rowsOf(await connect(await restored(source, backupId, time))))).toBe('42P01');
  }
  const beyond = newService('starter');
  await backend.place({ ...beyond.ref, version: '18' });
  expect(await codeOf(restore(beyond, source, backupId, new Date(Date.parse(latest) + 1_000).toISOString()))).toBe('restore_unavailable');
  await backend.destroy({ ...beyond.ref, retain: false });
});

test('a flipped byte, a missing file or a missing backup is no backup, and the drill says so', async () => {
  await site.start();
  const source = await makeService(backend, new TestRoutes(), 'starter');
  await fill(source);
  const { backupId, systemId } = await snapshot(source);
  const before = await backend.inventory();
  const drilled = await backend.drill(source.ref.serviceId, backupId);
  expect(drilled).toMatchObject({ systemId });
  expect(drilled.rows).toBeGreaterThan(20_050);
  const data = join(baseOf(source), backupId, 'data/base');
  const [database = ''] = (await readdir(data)).toSorted((a, b) => Number(b) - Number(a));
  const files = await Promise.all((await readdir(join(data, database))).map(async (file) => ({ file: join(data, database, file), size: (await stat(join(data, database, file))).size })));
  const largest = files.toSorted((a, b) => b.size - a.size)[0];
  await flip(largest?.file ?? '', 4_321);
  expect(await codeOf(backend.drill(source.ref.serviceId, backupId))).toBe('restore_unavailable');
  const victim = newService('starter');
  await backend.place({ ...victim.ref, version: '18' });
  expect(await codeOf(restore(victim, source, backupId, null))).toBe('restore_unavailable');
  await flip(largest?.file ?? '', 4_321);
  await backend.drill(source.ref.serviceId, backupId);
  const [first = ''] = (await readdir(walOf(source))).filter((file) => file.endsWith('.backup'));
  await rm(join(walOf(source), first.slice(0, 24)));
  expect(await codeOf(backend.drill(source.ref.serviceId, backupId))).toBe('restore_unavailable');
  await rm(largest?.file ?? '');
  expect(await codeOf(backend.drill(source.ref.serviceId, backupId))).toBe('restore_unavailable');
  expect(await codeOf(backend.drill(source.ref.serviceId, newId('bak')))).toBe('restore_unavailable');
  await backend.destroy({ ...victim.ref, retain: false });
  expect(await backend.inventory()).toEqual(before);
  expect(await processesHere()).toHaveLength(await processesOf(source));
});

async function processesOf(service: TestService): Promise<number> {
  const { directory } = await recordOf(service);
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const stands = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).then((cwd) => cwd === join(directory, 'data'), () => false)));
  return stands.filter(Boolean).length;
}

test('dropping a backup drops the log only it needed; a destruction leaves neither', async () => {
  await site.start();
  const source = await makeService(backend, new TestRoutes(), 'starter');
  const client = await fill(source);
  const first = await snapshot(source);
  await client.query('insert into big select n, repeat(md5(n::text), 1000) from generate_series(1, 100) n');
  const second = await snapshot(source);
  const all = (await readdir(walOf(source))).length;
  await mkdir(join(baseOf(source), `${newId('bak')}.half`));
  await backend.dropBackup(source.ref.serviceId, first.backupId);
  await backend.dropBackup(source.ref.serviceId, first.backupId);
  expect((await readdir(walOf(source))).length).toBeLessThan(all - 3);
  expect(await rowsOf(await connect(await restored(source, second.backupId, null)))).toHaveLength(20_000);
  const third = await snapshot(source);
  expect((await readdir(baseOf(source))).toSorted()).toEqual([second.backupId, third.backupId].toSorted());
  await leave();
  await backend.destroy({ ...source.ref, generation: 2, retain: true });
  expect(await readdir(baseOf(source))).toHaveLength(2);
  await backend.destroy({ ...source.ref, generation: 2, retain: false });
  expect(await readdir(join(site.dataDir, 'backups'))).not.toContain(source.ref.serviceId);
});

test('retained data comes back whole under a new password, twice the same, and the archive goes on', async () => {
  await site.start();
  const service = await makeService(backend, new TestRoutes(), 'starter');
  await fill(service);
  const { backupId } = await snapshot(service);
  await leave();
  await backend.destroy({ ...service.ref, generation: 2, retain: true });
  const next = newService('starter');
  const back: TestService = { ref: { ...service.ref, generation: 3 }, password: next.password, login: { ...service.login, verifier: next.login.verifier } };
  await backend.restore({ ...back.ref, source: { kind: 'retained' } });
  await backend.restore({ ...back.ref, source: { kind: 'retained' } });
  expect((await backend.observe(back.ref))).toMatchObject({ compute: 'stopped', mode: 'blocked' });
  await opened(back);
  expect(await codeOf(connect({ ...service, ref: back.ref }))).toBe('28P01');
  const client = await connect(back);
  expect(await rowsOf(client)).toHaveLength(20_000);
  await client.query('create table more as select 1 as n');
  await client.query('select pg_sleep(0.02)');
  const latest = await archived(back);
  expect(await rowsOf(await connect(await restored(back, backupId, latest)), 'more')).toEqual([{ n: 1 }]);
  expect((await backend.inventory()).filter((item) => item.retained)).toEqual([]);
  expect(await codeOf(backend.restore({ ...newService().ref, source: { kind: 'retained' } }))).toBe('restore_unavailable');
});

test('the host or the server killed in a backup, a restore or a revival: the repetition ends it, and nothing is left over', async () => {
  let host = await site.startProcess({ PG_STOP_ON_EXIT: false });
  const again = async (): Promise<void> => {
    const exited = once(host, 'exit');
    host.kill('SIGKILL');
    await exited;
    host = await site.startProcess({ PG_STOP_ON_EXIT: false });
  };
  const source = await makeService(backend, new TestRoutes(), 'starter');
  await fill(source);
  const backupId = newId('bak');
  const cut = codeOf(snapshot(source, backupId));
  await until(async () => (await readdir(baseOf(source))).some((file) => file.endsWith('.half')), 'the half backup');
  await again();
  expect(await cut).toBe('backend_error');
  const second = codeOf(snapshot(source, backupId));
  await until(async () => (await readdir(baseOf(source))).some((file) => file.endsWith('.half')), 'the half backup');
  process.kill(Number((await readFile(join((await recordOf(source)).directory, 'data/postmaster.pid'), 'utf8')).split('\n')[0]), 'SIGKILL');
  expect(['backend_error', 'done']).toContain(await second);
  await snapshot(source, backupId);
  expect(await readdir(baseOf(source))).toEqual([backupId]);

  const copy = newService('starter');
  await backend.place({ ...copy.ref, version: '18' });
  const { directory } = await recordOf(copy);
  for (const moment of ['staged', 'data/recovery.signal']) {
    const half = codeOf(restore(copy, source, backupId, null));
    await until(async () => stat(join(directory, moment)).then(() => true, () => half.then((code) => code === 'done')), moment);
    await again();
    await half;
  }
  await restore(copy, source, backupId, null);
  expect(await rowsOf(await connect(await opened(copy)))).toHaveLength(20_000);

  await leave();
  await backend.destroy({ ...copy.ref, generation: 2, retain: true });
  const back = { ...copy, ref: { ...copy.ref, generation: 3 } };
  const revival = codeOf(backend.restore({ ...back.ref, source: { kind: 'retained' } }));
  await again();
  await revival;
  await backend.restore({ ...back.ref, source: { kind: 'retained' } });
  expect(await rowsOf(await connect(await opened(back)))).toHaveLength(20_000);
  const items = await backend.inventory();
  expect(items.map(({ serviceId, retained }) => ({ serviceId, retained })).toSorted((a, b) => String(a.serviceId).localeCompare(String(b.serviceId))))
    .toEqual([source, copy].map(({ ref }) => ({ serviceId: ref.serviceId, retained: false })).toSorted((a, b) => a.serviceId.localeCompare(b.serviceId)));
  expect(await readdir(join(site.dataDir, 'trash'))).toEqual([]);
  expect(await readdir(join(site.dataDir, 'instances'))).toHaveLength(2);
  const exited = once(host, 'exit');
  host.kill('SIGKILL');
  await exited;
});

test('a destruction overtakes a restore that is under way', async () => {
  await site.start();
  const source = await makeService(backend, new TestRoutes(), 'starter');
  await fill(source);
  const { backupId } = await snapshot(source);
  const copy = newService('starter');
  const { instanceRef } = await backend.place({ ...copy.ref, version: '18' });
  const late = codeOf(restore(copy, source, backupId, null));
  await until(async () => stat(join(site.dataDir, 'instances', instanceRef, 'staged')).then(() => true, () => false), 'the copy');
  await backend.destroy({ ...copy.ref, generation: 2, retain: false });
  expect(await late).toBe('stale_generation');
  expect(await readdir(join(site.dataDir, 'instances'))).toHaveLength(1);
  expect(await codeOf(restore(copy, source, backupId, null))).toBe('stale_generation');
});

test('an archived segment has its name only when it is whole; the same again is success, another is not', async () => {
  const home = await mkdtemp(join(tmpdir(), `hf-a'rchive-100%-`));
  const command = (from: string, name: string) => archiveCommand(join(home, 'wal')).replaceAll('%p', from).replaceAll('%f', name).replaceAll('%%', '%');
  const run = (from: string, name: string) => promisify(execFile)('sh', ['-c', command(from, name)], { cwd: home }).then(() => 'kept', () => 'refused');
  await mkdir(join(home, 'wal'));
  await Promise.all([writeFile(join(home, 'one'), 'one'), writeFile(join(home, 'two'), 'two')]);
  expect([await run('one', 'A'), await run('one', 'A'), await run('two', 'A'), await run('none', 'B')]).toEqual(['kept', 'kept', 'refused', 'refused']);
  await writeFile(join(home, 'wal/C.new'), 'half of another');
  expect(await run('two', 'C')).toBe('kept');
  expect((await readdir(join(home, 'wal'))).toSorted()).toEqual(['A', 'C']);
  expect(await readFile(join(home, 'wal/A'), 'utf8')).toBe('one');
  await rm(home, { recursive: true });
});
