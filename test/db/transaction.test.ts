import { rows, type Database, type Db } from '../../src/db/client';
import { databaseError } from '../../src/db/errors';
import { afterCommit, beforeCommit, inTransaction } from '../../src/db/transaction';
import { withDatabase } from '../support/database';

const world = withDatabase();
const count = async (db: Database) => (await rows<{ count: number }>(db.prisma, 'select count(*)::int as count from kept'))[0]?.count;

beforeAll(async () => {
  await world.database.pool.query('create table kept (id int primary key)');
});
beforeEach(async () => {
  await world.database.pool.query('truncate kept');
});

test.each([
  ['bigint', 'select $1::bigint as v', 9_007_199_254_740_993n],
  ['bigints', 'select $1::bigint[] as v', [1n, -2n]],
  ['no bigints', 'select $1::bigint[] as v', []],
  ['time with zone', 'select $1::timestamptz as v', new Date('2026-03-29T01:30:00.123Z')],
  ['time without', `select $1::timestamptz at time zone 'UTC' as v`, new Date('2026-03-29T01:30:00.123Z')],
  ['date', 'select $1::date as v', new Date('2026-03-29T00:00:00Z')],
  ['times', 'select $1::timestamptz[] as v', [new Date(0)]],
  ['json', 'select $1::jsonb as v', JSON.stringify({ a: [1, null] })],
  ['texts', 'select $1::text[] as v', ['a,"b', '']],
  ['null', 'select $1::int as v', null],
  ['float', 'select $1::float8 as v', 0.1],
  ['flag', 'select $1::boolean as v', false],
])('reads and writes a %s as Prisma does', async (_, sql, value) => {
  const read = async (db: Db) => (await rows<{ v: unknown }>(db, sql, value))[0]?.v;
  const prisma = await read(world.database.prisma);
  expect(await inTransaction(world.database, read)).toEqual(prisma);
});

test('reads and writes bytes', async () => {
  const [row] = await inTransaction(world.database, (tx) => rows<{ v: Uint8Array }>(tx, 'select $1::bytea as v', Buffer.from([0, 255])));
  expect([...(row?.v ?? [])]).toEqual([0, 255]);
});

test('keeps all or nothing, and says so in order', async () => {
  const said: string[] = [];
  await inTransaction(world.database, async (tx) => {
    beforeCommit(tx, 9, async () => void said.push('audit'));
    beforeCommit(tx, 1, async () => void said.push('counters'));
    afterCommit(tx, () => said.push('durable'));
    await Promise.all([1, 2, 3].map((id) => tx.execute('insert into kept values ($1)', [id])));
  });
  expect(said).toEqual(['counters', 'audit', 'durable']);
  await expect(inTransaction(world.database, async (tx) => {
    afterCommit(tx, () => said.push('never'));
    await tx.execute('insert into kept values (4)', []);
    throw new Error('no');
  })).rejects.toThrow('no');
  expect([await count(world.database), said.length]).toEqual([3, 3]);
});

test('is not taken for committed when a failed statement was swallowed', async () => {
  await expect(inTransaction(world.database, async (tx) => {
    await tx.execute('insert into kept values (1)', []);
    await tx.execute('insert into kept values (1)', []).catch(() => undefined);
  })).rejects.toThrow('rolled back');
  expect(await count(world.database)).toBe(0);
});

test('names the constraint that a statement violates', async () => {
  const error = await inTransaction(world.database, (tx) => tx.execute('insert into kept values (1), (1)', [])).catch((caught: unknown) => caught);
  expect(databaseError(error)).toMatchObject({ sqlState: '23505', constraint: 'kept_pkey' });
});

test('ends one that takes too long, also in the middle of a statement, and gives its connection back', async () => {
  const late = (work: string) => inTransaction(world.database, (tx) => tx.execute(work, []), { timeoutMs: 100 });
  await expect(late('select pg_sleep(30)')).rejects.toThrow('longer than 100 ms');
  const { pool } = world.database;
  await Promise.all(Array.from({ length: pool.options.max ?? 10 }, () => inTransaction(world.database, (tx) => tx.execute('select 1', []))));
  expect(pool.waitingCount).toBe(0);
});
