import type pg from 'pg';
import type { Metrics } from '../../../postgres/ports';
import type { Limits, Names } from '../../../postgres/rules';

export async function sizeOf(client: pg.Client, database: string): Promise<number | null> {
  const { rows: [row] } = await client.query<{ bytes: number }>('select pg_database_size(datname)::float8 as bytes from pg_database where datname = $1', [database]);
  return row?.bytes ?? null;
}

/** Empty where the administrator was not granted to read them: then nobody can tell whether a password is still ours. */
export async function readVerifiers(client: pg.Client, names: Names): Promise<Record<string, string>> {
  const { rows: [may] } = await client.query<{ read: boolean }>(`select has_column_privilege('pg_authid', 'rolpassword', 'SELECT') as read`);
  if (!may?.read) return {};
  const { rows } = await client.query<{ rolname: string; rolpassword: string }>(
    'select rolname, rolpassword from pg_authid where rolname = any($1::text[]) and rolpassword is not null and rolcanlogin', [names.logins]);
  return Object.fromEntries(rows.map((row) => [row.rolname, row.rolpassword]));
}

/** Of the service's own database; WAL is the whole server's and told of nobody. */
export async function readMetrics(client: pg.Client, { database }: Names, limits: Limits): Promise<Metrics> {
  const { rows: [row] } = await client.query<Record<string, number>>(`
    with session as materialized (select * from pg_stat_activity where datname = $1 and backend_type = 'client backend' and pid <> pg_backend_pid())
    select (select count(*) from session where state = 'active' and wait_event_type is distinct from 'Lock')::int as active,
      (select count(*) from session where state like 'idle%')::int as idle,
      (select count(*) from session where wait_event_type = 'Lock')::int as waiting,
      (select coalesce(extract(epoch from now() - min(xact_start)), 0) from session)::float8 as oldest,
      (xact_commit + xact_rollback)::float8 as transactions, blks_hit::float8 as hit, blks_read::float8 as read
    from pg_stat_database where datname = $1`, [database]);
  const value = (key: string) => row?.[key] ?? 0;
  return {
    connections: { active: value('active'), idle: value('idle'), waiting: value('waiting'), limit: limits.connections },
    transactions: value('transactions'), blocksHit: value('hit'), blocksRead: value('read'), walBytes: 0,
    oldestTransactionSeconds: value('oldest'), blockedSessions: value('waiting'),
  };
}
