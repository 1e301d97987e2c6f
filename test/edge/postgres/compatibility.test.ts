import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { pino } from 'pino';
import { systemCode } from '../../../src/core/files';
import { newId } from '../../../src/core/ids';
import { openDatabase, type Database } from '../../../src/db/client';
import { migrate } from '../../../src/db/migrate';
import { connectWith, Product } from '../../support/product';
import { until } from '../../support/until';

/**
 * A service as the tools of the trade find it: made by the API, reached by nothing but the returned connection string, with TLS verified in full. Debian's
 * clients prove nothing where they are not installed; their tests say so by name.
 */
jest.setTimeout(120_000);
const run = promisify(execFile);
let product: Product;
let serviceId: string;
let connectionString: string;
let directory: string;

beforeAll(async () => {
  product = await Product.start({ PG_POOL_RUNNING: 'starter:1', PG_POOL_PREPARED: '0' });
  const accepted = await product.accept('starter');
  expect(await product.finished(accepted.operationId)).toMatchObject({ state: 'succeeded' });
  serviceId = accepted.serviceId;
  connectionString = (await product.reveal(serviceId)).connectionString;
  directory = await mkdtemp('/tmp/hf-tools-');
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  await product?.stop();
});

/** The string with more said in it. */
const saying = (parameters: string) => `${connectionString}&${parameters}`;
const psql = (address: string, ...args: string[]) => run('psql', ['-XAt', '-v', 'ON_ERROR_STOP=1', address, ...args]);
const inDirectory = (name: string) => join(directory, name);

async function using<T>(work: (client: pg.Client) => Promise<T>, address = connectionString, config: pg.ClientConfig = {}): Promise<T> {
  const client = new pg.Client({ connectionString: address, ...config });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** A test that needs a program is skipped under a name that says which one is missing. */
function testWith(program: string, name: string, work: () => Promise<void>): void {
  const there = (process.env['PATH'] ?? '').split(':').some((path) => existsSync(join(path, program)));
  if (there) test(name, work);
  else test.skip(`${name} (${program} is not installed)`, work);
}

testWith('psql', 'psql connects with the string as it is, over TLS, and lists what it always lists', async () => {
  const { stdout } = await psql(connectionString, '-c', '\\conninfo', '-c', '\\du', '-c', '\\dn', '-c', '\\df pg_sleep');
  expect(stdout).toMatch(/SSL connection \(protocol: TLSv1\.3/);
  expect(stdout).toContain('pg_catalog|pg_sleep|void');
  expect((await psql(saying('gssencmode=prefer'), '-c', 'select current_database()')).stdout).toBe('app\n');
  await expect(psql(saying('channel_binding=require'), '-c', 'select 1')).rejects.toMatchObject({ stderr: expect.stringContaining('channel binding') });
});

testWith('psql', 'COPY both ways, a cursor and large objects pass through psql unchanged', async () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `${n}\t${'é\\\\n'.repeat(n % 7)}`).join('\n').concat('\n');
  await writeFile(inDirectory('in.tsv'), lines);
  await psql(connectionString, '-c', 'create table copied (n int, t text)', '-c', `\\copy copied from ${inDirectory('in.tsv')}`, '-c', `\\copy (table copied order by n) to ${inDirectory('out.tsv')}`);
  expect(await readFile(inDirectory('out.tsv'), 'utf8')).toBe(lines);
  const { stdout } = await psql(connectionString, '-v', 'FETCH_COUNT=100', '-c', 'select n from copied order by n');
  expect(stdout.trim().split('\n')).toHaveLength(20_000);
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, n) => n % 256));
  await writeFile(inDirectory('object'), bytes);
  await psql(connectionString, '-c', `\\lo_import ${inDirectory('object')}`, '-c', `\\lo_export :LASTOID ${inDirectory('object.back')}`);
  expect(await readFile(inDirectory('object.back'))).toEqual(bytes);
});

testWith('psql', 'Ctrl-C in psql ends the statement at the server', async () => {
  const shell = spawn('psql', ['-XAt', connectionString, '-c', 'select pg_sleep(600)']);
  let said = '';
  shell.stderr.on('data', (chunk: Buffer) => { said += chunk.toString(); });
  await using(async (client) => {
    const sleeping = async () => (await client.query(`select from pg_stat_activity where wait_event = 'PgSleep'`)).rowCount === 1;
    await until(sleeping, 'the statement');
    shell.kill('SIGINT');
    await until(() => shell.exitCode !== null, 'psql to end');
    expect(said).toContain('canceling statement due to user request');
    await until(async () => !await sleeping(), 'the statement to end');
  });
});

testWith('pgbench', 'pgbench loads its tables and runs in every protocol mode, reconnecting as well', async () => {
  await run('pgbench', ['-i', '-q', connectionString]);
  for (const mode of [['-M', 'simple'], ['-M', 'extended'], ['-M', 'prepared'], ['-C']]) {
    const { stdout } = await run('pgbench', ['-n', ...mode, '-c', '4', '-j', '2', '-t', '10', connectionString]);
    expect(stdout).toContain('number of transactions actually processed: 40/40');
    expect(stdout).toContain('number of failed transactions: 0');
  }
});

test('a migration tool (node-pg-migrate) goes up and down', async () => {
  const migrations = inDirectory('migrations');
  await mkdir(migrations);
  await writeFile(join(migrations, '1_books.cjs'), `exports.up = (pgm) => {
    pgm.createExtension('citext', { ifNotExists: true });
    pgm.createType('genre', ['novel', 'essay']);
    pgm.createTable('book', { id: 'id', title: { type: 'citext', notNull: true, unique: true }, genre: { type: 'genre', default: 'novel' }, tags: { type: 'text[]' } });
    pgm.createIndex('book', 'tags', { method: 'gin' });
  };`);
  await writeFile(join(migrations, '2_triggers.sql'), `-- Up Migration
    create function stamp() returns trigger language plpgsql as $$ begin new.title := trim(new.title); return new; end $$;
    create trigger stamp before insert on book for each row execute function stamp();
    -- Down Migration
    drop trigger stamp on book; drop function stamp();`);
  const tool = (...args: string[]) => run(process.execPath, [resolve('node_modules/node-pg-migrate/bin/node-pg-migrate.js'), ...args, '-m', migrations],
    { env: { PATH: process.env['PATH'], DATABASE_URL: connectionString } });
  expect((await tool('up')).stdout).toContain('Migrations complete');
  await using(async (client) => {
    expect((await client.query(`insert into book (title, tags) values ('  Emma ', '{a,b}') returning title, genre, tags`)).rows).toEqual([{ title: 'Emma', genre: 'novel', tags: ['a', 'b'] }]);
  });
  await tool('down', '2');
  await using(async (client) => expect((await client.query(`select to_regclass('book') as book`)).rows).toEqual([{ book: null }]));
});

test('an ORM (Prisma) works on a schema of triggers, functions and exclusion constraints: this product’s own', async () => {
  await using((client) => client.query('create database orm'));
  const url = new URL(connectionString);
  url.pathname = '/orm';
  expect((await migrate(url.href, resolve('prisma/migrations'))).length).toBeGreaterThan(10);
  const database = openDatabase({ url: url.href, max: 4, process: 'test', log: pino({ level: 'silent' }) });
  try {
    await workThroughPrisma(database);
  } finally {
    await database.close();
  }
  await using((client) => client.query('drop database orm with (force)'));
});

async function workThroughPrisma({ prisma }: Database): Promise<void> {
  const orgId = newId('org');
  const project = (slug: string) => ({ id: newId('prj'), orgId, slug, displayName: `Project ${slug}` });
  const [first, second] = [project('one'), project('two')];
  await prisma.organization.create({ data: { id: orgId, name: 'Readers', slug: 'readers' } });
  await prisma.project.createMany({ data: [first, second] });
  await expect(prisma.project.create({ data: first })).rejects.toMatchObject({ code: 'P2002' });
  await expect(prisma.$transaction(async (tx) => {
    await tx.project.update({ where: { id: first.id }, data: { displayName: 'changed' } });
    throw new Error('taken back');
  })).rejects.toThrow('taken back');
  const page = await prisma.project.findMany({ where: { orgId, displayName: { contains: 'PROJECT', mode: 'insensitive' } }, orderBy: { slug: 'desc' }, take: 1, skip: 1, cursor: { id: second.id } });
  expect(page).toEqual([expect.objectContaining({ id: first.id, displayName: 'Project one', createdAt: expect.any(Date) })]);
  await prisma.project.upsert({ where: { id: first.id }, create: first, update: { displayName: 'Renamed' } });
  expect(await prisma.project.groupBy({ by: ['orgId'], where: { orgId }, _count: true })).toEqual([{ orgId, _count: 2 }]);
  expect(await prisma.$queryRaw`select display_name as name from project where id = ${first.id}`).toEqual([{ name: 'Renamed' }]);
}

test('a driver has prepared statements, pipelines, portals, savepoints, listeners and its own statement timeout', async () => {
  await using(async (client) => {
    for (let n = 0; n < 3; n++) expect((await client.query({ name: 'twice', text: 'select $1::int * 2 as n', values: [n] })).rows).toEqual([{ n: n * 2 }]);
    await client.query('begin; declare c cursor for select generate_series(1, 1000) as n; savepoint s');
    expect((await client.query('fetch 3 from c')).rows.map(({ n }) => n)).toEqual([1, 2, 3]);
    await expect(client.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' });
    await client.query('rollback to s; move 500 from c');
    expect((await client.query('fetch 1 from c')).rows).toEqual([{ n: 504 }]);
    await client.query('commit');
    await client.query(`set statement_timeout = '20ms'`);
    await expect(client.query('select pg_sleep(60)')).rejects.toMatchObject({ code: '57014' });
  });
  await using(async (client) => {
    const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => client.query('select $1::int as n', [n]).then(({ rows }) => rows[0].n)));
    expect(answers).toEqual(Array.from({ length: 200 }, (_, n) => n));
  }, connectionString, { pipeline: true });
  await using(async (listener) => {
    const heard = new Promise((done) => listener.once('notification', ({ channel, payload }) => done({ channel, payload })));
    await listener.query('listen news');
    await using((teller) => teller.query(`notify news, 'good'`));
    expect(await heard).toEqual({ channel: 'news', payload: 'good' });
  });
});

test('a driver’s pool, TLS from the first byte, and the service named in the options', async () => {
  const pool = new pg.Pool({ connectionString, max: 5 });
  const sums = await Promise.all(Array.from({ length: 40 }, (_, n) => pool.query('select $1::int + 1 as n', [n])));
  expect(sums.map(({ rows }) => rows[0].n)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
  await pool.end();
  expect(await using(async (client) => (await client.query('select 1 as one')).rows, saying('sslnegotiation=direct'))).toEqual([{ one: 1 }]);
  await using((client) => client.query(`create role reader login password 'only-for-this-test'; grant connect on database app to reader`));
  const url = new URL(saying(`options=${encodeURIComponent(`-c holdfast.service=${serviceId}`)}`));
  Object.assign(url, { username: 'reader', password: 'only-for-this-test' });
  expect(await using(async (client) => (await client.query('select current_user::text as me')).rows, url.href)).toEqual([{ me: 'reader' }]);
  url.searchParams.delete('options');
  expect(await connectWith(url.href).catch((error: unknown) => systemCode(error))).toBe('28000');
});

test('every extension PostgreSQL trusts its users with can be made, and no other', async () => {
  await using(async (client) => {
    const { rows } = await client.query<{ name: string; trusted: boolean }>(`select distinct name, trusted from pg_available_extension_versions v
      where version = (select default_version from pg_available_extensions e where e.name = v.name) and name !~ 'pl(perl|python|tcl)' order by name`);
    for (const { name, trusted } of rows) {
      const refused = await client.query(`create extension if not exists "${name}" cascade`).then(() => null, (error: unknown) => systemCode(error));
      expect([name, refused]).toEqual([name, trusted ? null : '42501']);
    }
    expect(rows.filter(({ trusted }) => trusted).map(({ name }) => name)).toEqual(expect.arrayContaining(['btree_gin', 'btree_gist', 'citext', 'hstore', 'pg_trgm', 'pgcrypto', 'unaccent', 'uuid-ossp']));
    expect((await client.query(`select encode(digest('x', 'sha256'), 'hex') as d, uuid_generate_v4() is not null as u, similarity('word', 'words') > 0.5 as s`)).rows)
      .toEqual([{ d: expect.stringMatching(/^2d711642/), u: true, s: true }]);
  });
});
