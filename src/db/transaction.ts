import type { Database } from './client';
import { OpenTransaction, type Hook } from './open-transaction';

/** A transaction: what must not run outside one asks for it by type. */
export type Tx = OpenTransaction;

type Options = { timeoutMs?: number; isolation?: 'read committed' | 'repeatable read' };

/**
 * Runs `work` in one transaction and commits. No network call belongs inside; the longest a transaction may take is
 * `timeoutMs` (default 10 s), the longest it waits for a connection 5 s.
 */
export async function inTransaction<T>(database: Pick<Database, 'pool'>, work: (tx: Tx) => Promise<T>, options: Options = {}): Promise<T> {
  const client = await database.pool.connect();
  const tx = new OpenTransaction(client);
  const timeoutMs = options.timeoutMs ?? 10_000;
  let given: Error | undefined;
  // A connection given back with an error is closed, which rolls back and fails whatever still waits for an answer.
  const giveUp = (reason: Error) => {
    if (!given) client.release(given = reason);
  };
  const deadline = setTimeout(() => giveUp(new Error(`The transaction took longer than ${timeoutMs} ms.`)), timeoutMs);
  try {
    await client.query(`begin isolation level ${options.isolation ?? 'read committed'}`);
    const result = await work(tx);
    for (let hook = takeFirst(tx.before); hook; hook = takeFirst(tx.before)) await hook.run();
    const { command } = await tx.query({ text: 'commit' });
    if (command !== 'COMMIT') throw new Error('A statement of the transaction had failed, so all of it was rolled back.');
    for (const run of tx.after) run();
    return result;
  } catch (error) {
    const cause: unknown = given ?? error;
    await tx.query({ text: 'rollback' }).catch((failure: unknown) => giveUp(failure instanceof Error ? failure : new Error('The rollback failed.')));
    throw cause;
  } finally {
    clearTimeout(deadline);
    if (!given) client.release();
  }
}

/**
 * Puts a statement at the end of the transaction: those of lower rank first. Locks that every writer needs (the audit
 * chain's head, rank 9) are so taken last, held shortest and in one order.
 */
export function beforeCommit(tx: Tx, rank: number, run: () => Promise<void>): void {
  tx.before.push({ rank, run });
}

/** Runs once the transaction is durable, never after a rollback. Must not throw; whatever it starts is not awaited. */
export function afterCommit(tx: Tx, run: () => void): void {
  tx.after.push(run);
}

function takeFirst(hooks: Hook[]): Hook | undefined {
  const [first] = hooks.toSorted((a, b) => a.rank - b.rank);
  if (first) hooks.splice(hooks.indexOf(first), 1);
  return first;
}
