import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { PrismaClient } from './generated/client';
import type { OpenTransaction } from './open-transaction';
import { statementName } from './statement';

/**
 * Prisma clients that write in a transaction of ours, for a library that speaks only Prisma. A client takes some 30 ms to
 * make, so each is kept for the next transaction; there are as many as were ever needed at once.
 */
export class PrismaOnTransaction {
  private readonly free: Lent[] = [];

  async lend<T>(tx: OpenTransaction, work: (client: PrismaClient) => Promise<T>): Promise<T> {
    const lent = this.free.pop() ?? make();
    lent.tx = tx;
    try {
      return await work(lent.client);
    } finally {
      lent.tx = null;
      this.free.push(lent);
    }
  }
}

type Lent = { tx: OpenTransaction | null; readonly client: PrismaClient };

/** What Prisma takes for a pool opens no connection: every query goes into the transaction of the moment. */
function make(): Lent {
  const pool = new pg.Pool();
  const lent: Lent = { tx: null, client: new PrismaClient({ adapter: new PrismaPg(pool, { statementNameGenerator: ({ sql }) => statementName(sql) }) }) };
  Object.defineProperty(pool, 'query', {
    value: (query: pg.QueryConfig) => {
      if (!lent.tx) throw new Error('This Prisma client belongs to no transaction at the moment.');
      return lent.tx.query(query);
    },
  });
  return lent;
}
