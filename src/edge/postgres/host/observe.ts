import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import type { HostAnswer } from '../../../postgres/schemas/host';
import type { Names } from '../../../postgres/rules';
import { connectionsReserved } from './configuration';
import { isMissing } from '../../../core/files';

type Metrics = NonNullable<HostAnswer<'observe'>['metrics']>;

/** Bytes on disk of everything below `path`; files that go away meanwhile count nothing. */
export async function usedBytes(path: string): Promise<number> {
  try {
    const found = await lstat(path);
    if (!found.isDirectory()) return found.blocks * 512;
    const sizes = await Promise.all((await readdir(path)).map((entry) => usedBytes(join(path, entry))));
    return sizes.reduce((sum, size) => sum + size, found.blocks * 512);
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

export async function readVerifiers(client: pg.Client, names: Names): Promise<Record<string, string>> {
  const { rows } = await client.query<{ rolname: string; rolpassword: string }>(
    'select rolname, rolpassword from pg_authid where rolname = any($1::text[]) and rolpassword is not null and rolcanlogin', [names.logins]);
  return Object.fromEntries(rows.map((row) => [row.rolname, row.rolpassword]));
}

/** Whether a setting in the files needs a restart to hold: the server reads them and says so, whether or not it has reloaded yet. */
export async function pendingRestart(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('select 1 from pg_file_settings where error is not null limit 1');
  return rows.length > 0;
}

/** Sessions that are not ours. */
export async function countSessions(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ sessions: number }>(
    `select count(*)::int as sessions from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`);
  return rows[0]?.sessions ?? 0;
}

export async function readMetrics(client: pg.Client): Promise<Metrics> {
  const { rows: [row] } = await client.query<Record<string, number>>(`
    with session as materialized (select * from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid())
    select (select count(*) from session where state = 'active' and wait_event_type is distinct from 'Lock')::int as active,
      (select count(*) from session where state like 'idle%')::int as idle,
      (select count(*) from session where wait_event_type = 'Lock')::int as waiting,
      (select coalesce(extract(epoch from now() - min(xact_start)), 0) from session)::float8 as oldest,
      (select sum(xact_commit + xact_rollback) from pg_stat_database)::float8 as transactions,
      (select sum(blks_hit) from pg_stat_database)::float8 as hit,
      (select sum(blks_read) from pg_stat_database)::float8 as read,
      (select wal_bytes from pg_stat_wal)::float8 as wal,
      current_setting('max_connections')::int as connections`);
  const value = (key: string) => row?.[key] ?? 0;
  return {
    connections: { active: value('active'), idle: value('idle'), waiting: value('waiting'), limit: value('connections') - connectionsReserved },
    transactions: value('transactions'), blocksHit: value('hit'), blocksRead: value('read'), walBytes: value('wal'),
    oldestTransactionSeconds: value('oldest'), blockedSessions: value('waiting'),
  };
}
