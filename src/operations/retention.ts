import { prepared, type Database } from '../db/client';

const pageMax = 5_000;

/**
 * Kept answers live 24 hours (contract api.md §7), a limit's row until it says nothing, a raised alert 40 days. In pages,
 * so no statement holds many locks; `beat` is called after each.
 */
export async function dropExpiredFrameRows(database: Database, beat: () => void): Promise<void> {
  for (const statement of statements) {
    for (let dropped = pageMax; dropped === pageMax;) {
      const [row] = await prepared<{ dropped: number }>(database, `with gone as (${statement} returning 1) select count(*)::int as dropped from gone`, [pageMax]);
      dropped = row?.dropped ?? 0;
      beat();
    }
  }
}

const statements = [
  `delete from idempotency_key where ctid = any(array(select ctid from idempotency_key where created_at < now() - interval '25 hours' limit $1::int))`,
  `delete from rate_limit where ctid = any(array(select ctid from rate_limit where arrival_at < now() - interval '1 minute' limit $1::int))`,
  `delete from overdue_alert where ctid = any(array(select ctid from overdue_alert where alerted_at < now() - interval '40 days' limit $1::int))`,
];
