import { createHash } from 'node:crypto';
import { canonicalJson } from '../core/canonical-json';
import { AppError, invalid } from '../core/errors';
import { execute, rows, type Database, type Db } from '../db/client';
import { databaseError } from '../db/errors';
import { beforeCommit, inTransaction, type Tx } from '../db/transaction';

/** What is kept of an answer: enough to give it again. Secrets in it are null. */
export type KeptAnswer = { status: number; headers: Record<string, string>; body: Record<string, unknown> };
export type IdempotencyScope = { principal: string; operation: string; key: string; fingerprint: string };

/** The header's value, or null without one. Errors: `validation_error`. */
export function readIdempotencyKey(header: string | undefined): string | null {
  if (header === undefined) return null;
  if (/^[\x20-\x7e]{1,255}$/.test(header)) return header;
  throw invalid([{ path: 'Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters' }]);
}

/** The validated request: the same key with another path, query or body is another request. */
export function fingerprintOf(request: { params: unknown; query: unknown; body: unknown }): string {
  return createHash('sha256').update(canonicalJson(request)).digest('hex');
}

/** The answer given before to this key; null for a new key. Errors: `idempotency_key_reused`. */
export async function findKeptAnswer(db: Db, scope: IdempotencyScope): Promise<KeptAnswer | null> {
  const [row] = await rows<KeptAnswer & { fingerprint: string }>(db, `select fingerprint, status, headers, body from idempotency_key
    where principal = $1 and operation = $2 and key = $3 and status is not null`, scope.principal, scope.operation, scope.key);
  if (!row) return null;
  if (row.fingerprint !== scope.fingerprint) throw new AppError('idempotency_key_reused', 'This Idempotency-Key was used with another request. Use a new key.');
  return { status: row.status, headers: row.headers, body: row.body };
}

/** Somebody else's answer was found while our transaction began; nothing of ours was stored. */
class AlreadyDone extends Error {}

/**
 * Runs `work` in a transaction that also keeps its answer under the key. A second caller with the same key waits for the
 * first on the row itself, 5 s at most. Returns the first caller's answer as `replayed` when there is one.
 * Errors: `idempotency_in_progress`, `idempotency_key_reused`.
 */
export async function transactOnce<T>(
  database: Database, scope: IdempotencyScope, work: (tx: Tx) => Promise<T>, keep: (result: T) => KeptAnswer,
): Promise<{ result: T } | { replayed: KeptAnswer }> {
  try {
    return await inTransaction(database, async (tx) => {
      await claim(tx, scope);
      const result = await work(tx);
      beforeCommit(tx, 8, () => store(tx, scope, keep(result)));
      return { result };
    });
  } catch (error) {
    if (!(error instanceof AlreadyDone)) throw error;
    const replayed = await findKeptAnswer(database.prisma, scope);
    if (replayed) return { replayed };
    throw inProgress();
  }
}

async function claim(tx: Tx, scope: IdempotencyScope): Promise<void> {
  try {
    await execute(tx, `set local lock_timeout = '5s'`);
    const inserted = await execute(tx, `insert into idempotency_key (principal, operation, key, fingerprint) values ($1, $2, $3, $4)
      on conflict do nothing`, scope.principal, scope.operation, scope.key, scope.fingerprint);
    if (inserted === 0) throw new AlreadyDone();
    await execute(tx, `set local lock_timeout = 0`);
  } catch (error) {
    if (databaseError(error)?.sqlState === '55P03') throw inProgress();
    throw error;
  }
}

async function store(tx: Tx, scope: IdempotencyScope, answer: KeptAnswer): Promise<void> {
  await execute(tx, `update idempotency_key set status = $4, headers = $5::json, body = $6::json where principal = $1 and operation = $2 and key = $3`,
    scope.principal, scope.operation, scope.key, answer.status, JSON.stringify(answer.headers), JSON.stringify(answer.body));
}

function inProgress(): AppError {
  return new AppError('idempotency_in_progress', 'The first request with this Idempotency-Key is still at work. Try again in a second.');
}
