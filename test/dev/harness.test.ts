import { missingMigrations } from '../../src/db/migrate';
import { withDatabase } from '../support/database';
import { withTemporal } from '../support/temporal';

describe('the test harness', () => {
  const migrated = withDatabase();
  const empty = withDatabase({ empty: true });
  const temporal = withTemporal();

  test('gives a database with every migration', async () => {
    expect(await missingMigrations(migrated.database.pool, 'prisma/migrations')).toEqual([]);
  });

  test('gives an empty database on request', async () => {
    expect(await missingMigrations(empty.database.pool, 'prisma/migrations')).not.toEqual([]);
  });

  test('shares nothing between two databases', async () => {
    await migrated.database.pool.query('create table only_here ()');
    const { rows } = await empty.database.pool.query(`select to_regclass('only_here') as found`);
    expect(rows).toEqual([{ found: null }]);
  });

  test('gives a Temporal namespace that knows our search attributes', async () => {
    const { client } = temporal.environment;
    const described = await client.connection.operatorService.listSearchAttributes({ namespace: temporal.namespace });
    expect(Object.keys(described.customAttributes ?? {})).toEqual(expect.arrayContaining(['OrgId', 'ProjectId', 'ResourceId', 'Product', 'Operation']));
  });
});
