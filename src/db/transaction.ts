import type { Database, Db } from './client';

declare const transactional: unique symbol;
/** A transaction: what must not run outside one asks for it by type. */
export type Tx = Db & { readonly [transactional]: true };

type Hook = { rank: number; run: () => Promise<void> };
const beforeCommitOf = new WeakMap<object, Hook[]>();
const afterCommitOf = new WeakMap<object, (() => void)[]>();

/**
 * Runs `work` in one transaction and commits. No network call belongs inside; the longest a transaction may take is
 * `timeoutMs` (default 10 s), the longest it waits for a connection 5 s.
 */
export async function inTransaction<T>(database: Database, work: (tx: Tx) => Promise<T>, timeoutMs = 10_000): Promise<T> {
  const after: (() => void)[] = [];
  const result = await database.prisma.$transaction(async (client) => {
    const before: Hook[] = [];
    beforeCommitOf.set(client, before);
    afterCommitOf.set(client, after);
    if (!isTransaction(client)) throw new Error('unreachable: the client was registered above');
    const value = await work(client);
    for (let hook = takeFirst(before); hook; hook = takeFirst(before)) await hook.run();
    return value;
  }, { maxWait: 5_000, timeout: timeoutMs });
  for (const run of after) run();
  return result;
}

/**
 * Puts a statement at the end of the transaction: those of lower rank first. Locks that every writer needs (the audit
 * chain's head, rank 9) are so taken last, held shortest and in one order.
 */
export function beforeCommit(tx: Tx, rank: number, run: () => Promise<void>): void {
  hooksOf(beforeCommitOf, tx).push({ rank, run });
}

/** Runs once the transaction is durable, never after a rollback. Must not throw; whatever it starts is not awaited. */
export function afterCommit(tx: Tx, run: () => void): void {
  hooksOf(afterCommitOf, tx).push(run);
}

function hooksOf<H>(map: WeakMap<object, H[]>, tx: Tx): H[] {
  const hooks = map.get(tx);
  if (!hooks) throw new Error('This transaction was not begun by inTransaction.');
  return hooks;
}

function isTransaction(client: Db): client is Tx {
  return beforeCommitOf.has(client);
}

function takeFirst(hooks: Hook[]): Hook | undefined {
  const [first] = hooks.toSorted((a, b) => a.rank - b.rank);
  if (first) hooks.splice(hooks.indexOf(first), 1);
  return first;
}
