import type pg from 'pg';
import { statement } from './statement';

export type Hook = { rank: number; run: () => Promise<void> };

/** An open transaction on a connection of its own; its statements run one after another, whoever asks for them. */
export class OpenTransaction {
  /** Run before the commit, the lowest rank first. */
  readonly before: Hook[] = [];
  /** Run once the transaction is durable. */
  readonly after: (() => void)[] = [];
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly client: pg.ClientBase) {}

  /** Any query of `pg`, after those that were asked for before it. */
  query<Row extends pg.QueryResultRow>(query: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    const result = this.last.then(() => this.client.query<Row>(query));
    this.last = result.catch(() => undefined);
    return result;
  }

  async rows<Row>(sql: string, values: readonly unknown[]): Promise<Row[]> {
    const { rows } = await this.query<Row & pg.QueryResultRow>(statement(sql, values));
    return rows;
  }

  async execute(sql: string, values: readonly unknown[]): Promise<number> {
    const { rowCount } = await this.query(statement(sql, values));
    return rowCount ?? 0;
  }
}
