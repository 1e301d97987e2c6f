import { join } from 'node:path';
import { withDatabase } from '../support/database';
import { prismaColumns, type Column } from '../support/prisma-models';

const migrated = withDatabase();

test('the Prisma models are the migrated database: tables, columns, types, nullability', async () => {
  const { rows } = await migrated.database.pool.query<Column>(`
    select c.relname as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> '_prisma_migrations' and a.attnum > 0 and not a.attisdropped`);
  expect(sorted(rows)).toEqual(sorted(prismaColumns(join(__dirname, '../../prisma'))));
});

test('no time is kept without its zone', async () => {
  const { rows } = await migrated.database.pool.query(`select table_name, column_name from information_schema.columns
    where table_schema = 'public' and data_type = 'timestamp without time zone'`);
  expect(rows).toEqual([]);
});

function sorted(columns: readonly Column[]): string[] {
  return columns.map(({ table, column, type, nullable }) => `${table}.${column} ${type}${nullable ? '' : ' not null'}`).toSorted();
}
