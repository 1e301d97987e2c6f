import { createHash, randomUUID } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';

/**
 * Applies what is missing of prisma/migrations, in order, and says what it applied. Prisma's folder and table format, so
 * its own tools can read the history. Script and mark are one transaction: after a crash a migration is applied or not,
 * never half. Several processes may call it at once: one applies, the others wait and find nothing to do.
 * Errors: an applied migration whose text has changed.
 */
export async function migrate(url: string, migrationsDir: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url, application_name: 'holdfast-migrate' });
  await client.connect();
  try {
    await client.query(`select pg_advisory_lock(hashtext('holdfast-migrate'))`);
    await client.query(historyTable);
    const applied = await appliedMigrations(client);
    const missing: string[] = [];
    for (const migration of await readMigrations(migrationsDir)) {
      const checksum = applied.get(migration.name);
      if (checksum === undefined) {
        await apply(client, migration);
        missing.push(migration.name);
      } else if (checksum !== migration.checksum) {
        throw new Error(`Migration ${migration.name} was applied with another text. Restore its file; changes go into a new migration.`);
      }
    }
    return missing;
  } finally {
    await client.end();
  }
}

/** Names of migrations that are in the folder and not in the database; empty when all is applied. Used by /readyz and at start. */
export async function missingMigrations(client: Pick<pg.Pool, 'query'>, migrationsDir: string): Promise<string[]> {
  const { rows } = await client.query<{ exists: boolean }>(`select to_regclass('_prisma_migrations') is not null as exists`);
  const applied = rows[0]?.exists ? await appliedMigrations(client) : new Map();
  return (await readMigrations(migrationsDir)).map((migration) => migration.name).filter((name) => !applied.has(name));
}

type Migration = { name: string; script: string; checksum: string };

const historyTable = `create table if not exists _prisma_migrations (
  id varchar(36) primary key, checksum varchar(64) not null, finished_at timestamptz, migration_name varchar(255) not null, logs text,
  rolled_back_at timestamptz, started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`;

async function appliedMigrations(client: Pick<pg.Pool, 'query'>): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'select migration_name as name, checksum from _prisma_migrations where finished_at is not null and rolled_back_at is null');
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

async function readMigrations(dir: string): Promise<Migration[]> {
  const entries = await readdir(dir, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name).toSorted();
  return Promise.all(names.map(async (name) => {
    const script = await readFile(join(dir, name, 'migration.sql'), 'utf8');
    return { name, script, checksum: createHash('sha256').update(script).digest('hex') };
  }));
}

async function apply(client: pg.Client, { name, script, checksum }: Migration): Promise<void> {
  try {
    await client.query('begin');
    await client.query(script);
    await client.query(`insert into _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
      values ($1, $2, $3, now(), clock_timestamp(), 1)`, [randomUUID(), checksum, name]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new Error(`Migration ${name} failed; nothing of it was applied.`, { cause: error });
  }
}
