import { randomBytes } from 'node:crypto';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { migrate, missingMigrations } from '../../src/db/migrate';
import { createDatabase } from '../support/database';

const migrationsDir = join(__dirname, '../../prisma/migrations');
let emptied: { url: string; drop: () => Promise<void> };

beforeEach(async () => {
  emptied = await createDatabase({ empty: true });
});
afterEach(() => emptied.drop());

test('an empty database gets every migration once, in order, and nothing the second time', async () => {
  const names = (await readdir(migrationsDir, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name).toSorted();
  expect(await migrate(emptied.url, migrationsDir)).toEqual(names);
  expect(await migrate(emptied.url, migrationsDir)).toEqual([]);
});

test('three processes at once on an empty database: one applies, nothing is applied twice', async () => {
  const script = join(__dirname, '../support/migrate-process.cjs');
  const runs = await Promise.all([1, 2, 3].map(() => promisify(execFile)(process.execPath, [script, emptied.url, migrationsDir])));
  const applied = runs.map(({ stdout }) => JSON.parse(stdout));
  const names = (await readdir(migrationsDir, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name).toSorted();
  expect(applied.toSorted((a, b) => b.length - a.length)).toEqual([names, [], []]);
  await withClient(async (client) => {
    const { rows } = await client.query('select migration_name, count(*)::int as times from _prisma_migrations group by 1 having count(*) > 1');
    expect(rows).toEqual([]);
  });
}, 60_000);

test('a migration that fails leaves nothing of itself behind', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-migrations-'));
  await cp(migrationsDir, dir, { recursive: true });
  const broken = join(dir, '99999999999999_broken');
  await mkdir(broken);
  await writeFile(join(broken, 'migration.sql'), 'create table half (id int); select no_such_function();');
  await expect(migrate(emptied.url, dir)).rejects.toThrow('99999999999999_broken failed');
  await withClient(async (client) => {
    expect((await client.query(`select to_regclass('half') as half`)).rows).toEqual([{ half: null }]);
    expect(await missingMigrations(client, dir)).toEqual(['99999999999999_broken']);
  });
  await rm(dir, { recursive: true });
});

test('a migration changed after it was applied is refused', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-migrations-'));
  await cp(migrationsDir, dir, { recursive: true });
  await migrate(emptied.url, dir);
  const [first = ''] = (await readdir(dir)).toSorted();
  await writeFile(join(dir, first, 'migration.sql'), `-- ${randomBytes(4).toString('hex')}`);
  await expect(migrate(emptied.url, dir)).rejects.toThrow('another text');
  await rm(dir, { recursive: true });
});

async function withClient(work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: emptied.url });
  await client.connect();
  await work(client).finally(() => client.end());
}
