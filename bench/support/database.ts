import { randomBytes } from 'node:crypto';
import { chown, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { ensureCatalogue } from '../../src/billing/catalogue';
import { openDatabase, type Database } from '../../src/db/client';
import { migrate } from '../../src/db/migrate';
import { serverUser, startEmbeddedPostgres } from '../../src/dev/embedded-postgres';
import { openInstallation } from '../../src/dev/installation';
import { anyFreePort } from '../../src/dev/ports';
import { billingDefaults } from '../../test/support/billing-defaults';

/**
 * A migrated database of its own with the plan catalogue, dropped afterwards: on the server of TEST_DATABASE_URL, else on an
 * embedded one with durable commits. Says how durable they are. Run in the folder of the project.
 */
export async function withBenchDatabase(measure: (database: Database) => Promise<void>): Promise<void> {
  const given = process.env['TEST_DATABASE_URL'];
  const embedded = given === undefined ? await startPostgres() : null;
  const server = given ?? embedded?.url ?? '';
  const name = `bench_${randomBytes(6).toString('hex')}`;
  await onServer(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  await migrate(url.href, resolve('prisma/migrations'));
  const database = openDatabase({ url: url.href, max: 24, process: 'bench', log: pino({ level: 'silent' }) });
  try {
    await ensureCatalogue(database, billingDefaults);
    const { rows } = await database.pool.query<{ version: string; fsync: string }>(`select current_setting('server_version') as version, current_setting('fsync') as fsync`);
    print(`PostgreSQL ${rows[0]?.version}, fsync ${rows[0]?.fsync}`);
    await measure(database);
  } finally {
    await database.close();
    await onServer(server, `drop database ${name} with (force)`);
    await embedded?.stop();
  }
}

async function startPostgres() {
  const { openDir } = await openInstallation(resolve('.holdfast'));
  const home = await mkdtemp(join(tmpdir(), 'holdfast-bench-postgres-'));
  const user = await serverUser(process.env['PG_INITDB_USER']);
  if (user) await chown(home, user.uid, user.gid);
  return startEmbeddedPostgres({
    nativeDir: join(openDir, 'postgres/native'), dataDir: join(home, 'data'), logFile: join(home, 'log'), removeAfterwards: home,
    port: await anyFreePort(), password: 'bench', user: process.env['PG_INITDB_USER'], settings: { max_wal_size: '4GB' },
  });
}

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value that this share of the others do not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
