import { randomBytes } from 'node:crypto';
import { Secrets } from '../../src/core/secrets';
import { ensureInstallationCa } from '../../src/db/installation-ca';
import { resealAll, sealedPlaces } from '../../src/db/reseal';
import { findCredentials, secretAad, verifierAad } from '../../src/postgres/store/credentials';
import { withDatabase } from '../support/database';
import { masterKey } from '../support/postgres-api';
import { createPostgresWorld } from '../support/postgres-world';

const held = withDatabase();

test('after a reseal the new master key alone opens everything, twice is once, and the old one opens nothing', async () => {
  const world = await createPostgresWorld(held.database);
  const former = world.secrets;
  const serviceId = await world.available();
  const { key } = await ensureInstallationCa(held.database.prisma, former);
  await held.database.pool.query(`insert into postgres_host (name, region, backend, capacity_bytes, max_services, dsn_sealed, public_host, public_port, sslmode) values ('far', 'far', 'host_pool', 1, 1, $1, 'far.test', 5432, 'require')`, [former.seal('the dsn', 'far|dsn')]);
  const renewed = randomBytes(32).toString('base64');
  const both = new Secrets([renewed, masterKey]);
  expect(await resealAll(held.database.prisma, both)).toBe(4);
  expect(await resealAll(held.database.prisma, both)).toBe(0);
  const alone = new Secrets([renewed]);
  const shown = (await findCredentials(held.database.prisma, serviceId))?.shown;
  if (!shown?.secretSealed || !shown.verifierSealed) throw new Error('There is no credential.');
  expect(alone.open(shown.secretSealed, secretAad(shown))).toMatch(/^[\w-]{32}$/);
  expect(alone.open(shown.verifierSealed, verifierAad(serviceId, shown.login))).toMatch(/^SCRAM-SHA-256/);
  expect((await ensureInstallationCa(held.database.prisma, alone)).key).toBe(key);
  const { rows: [{ dsn }] } = await held.database.pool.query(`select dsn_sealed as dsn from postgres_host where name = 'far'`);
  expect(alone.open(dsn, 'far|dsn')).toBe('the dsn');
  expect(() => former.open(dsn, 'far|dsn')).toThrow('is not configured');
});

test('a master key that was forgotten stops it, and nothing is lost', async () => {
  const stranger = new Secrets([randomBytes(32).toString('base64')]);
  await expect(resealAll(held.database.prisma, stranger)).rejects.toThrow('is not configured');
});

/** Nothing is sealed into these yet. */
const unused = ['gateway_acme_account.key_sealed', 'gateway_certificate.next_key_sealed'];

test('every column that is called sealed has its place, and every place exists', async () => {
  const { rows } = await held.database.pool.query<{ name: string }>(`select table_name || '.' || column_name as name from information_schema.columns where table_schema = 'public'`);
  const columns = rows.map(({ name }) => name);
  const places = sealedPlaces.map(({ table, column }) => `${table}.${column}`);
  expect(places.filter((name) => !columns.includes(name))).toEqual([]);
  expect(columns.filter((name) => name.includes('sealed') && !places.includes(name) && !unused.includes(name))).toEqual([]);
});
