import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { createPostgresActivities } from '../../../activities/postgres';
import { steps, type Change } from '../../../src/postgres/state';
import { findCredentials, secretAad } from '../../../src/postgres/store/credentials';
import type { Run } from '../../../src/postgres/store/runs';
import { MockActivityEnvironment } from '@temporalio/testing';
import { withDatabase } from '../../support/database';
import { HostSite } from '../../support/postgres-host';
import { createPostgresWorld, type PostgresWorld } from '../../support/postgres-world';
import { until } from '../../support/until';

/** Changes of a service through the real instance host, as a customer of its server sees them. */
const held = withDatabase();
let site: HostSite;
let world: PostgresWorld;
let activities: ReturnType<typeof createPostgresActivities>;

beforeAll(async () => {
  site = await HostSite.make();
  await site.start();
  world = await createPostgresWorld(held.database);
  const backend = site.backend();
  site.closeLater(async () => backend.close());
  activities = createPostgresActivities({ ...world.deps, postgresBackend: backend });
}, 60_000);
afterAll(() => site.remove());

async function portOf(serviceId: string): Promise<number> {
  const { rows: [row] } = await held.database.pool.query('select instance_ref as ref from postgres_service where id = $1', [serviceId]);
  const { slot } = JSON.parse(await readFile(join(site.dataDir, 'instances', row.ref, 'instance.json'), 'utf8'));
  return site.config.PG_PORT_BASE + Number(slot);
}

type Secret = { user: string; password: string };

async function secretOf(serviceId: string): Promise<Secret> {
  const shown = (await findCredentials(held.database.prisma, serviceId))?.shown;
  if (!shown?.secretSealed) throw new Error('There is no secret.');
  return { user: shown.login, password: world.secrets.open(shown.secretSealed, secretAad(shown)) };
}

/** An open session of the customer; `ended` once the server has cut it. */
async function session(serviceId: string, secret: Secret): Promise<{ client: pg.Client; ended: () => boolean }> {
  const client = new pg.Client({ host: '127.0.0.1', port: await portOf(serviceId), database: 'app', ...secret });
  let ended = false;
  client.on('error', () => { ended = true; });
  client.on('end', () => { ended = true; });
  await client.connect();
  return { client, ended: () => ended };
}

async function admits(serviceId: string, secret: Secret): Promise<boolean> {
  try {
    const { client } = await session(serviceId, secret);
    await client.end();
    return true;
  } catch {
    return false;
  }
}

type Step = typeof steps.changePostgres[Change][number] | typeof steps.undeletePostgres[number] | typeof steps.provisionPostgres[number] | typeof steps.deletePostgres[number];

async function perform(run: Run, names: readonly Step[]): Promise<void> {
  for (const name of names) await new MockActivityEnvironment().run<[Run], unknown, (input: Run) => Promise<unknown>>(activities[name], run);
}
const change = async (serviceId: string, kind: Change, wish = {}) => perform(await world.change(serviceId, kind, wish), steps.changePostgres[kind]);

async function available(): Promise<string> {
  const run = await world.create('trial');
  await perform(run, steps.provisionPostgres);
  return run.serviceId;
}

test('rotated at once: the former password dies with its sessions; with an overlap both are good until its end', async () => {
  const serviceId = await available();
  const first = await secretOf(serviceId);
  const { ended } = await session(serviceId, first);
  await change(serviceId, 'rotate');
  const second = await secretOf(serviceId);
  await until(ended, 'the session of the former password to be cut');
  expect(second.user).toBe(first.user);
  expect([await admits(serviceId, first), await admits(serviceId, second)]).toEqual([false, true]);

  const kept = await session(serviceId, second);
  await kept.client.query('create table orders (id int)');
  await change(serviceId, 'rotate', { rotate: { mode: 'overlap', overlapSeconds: 3_600 } });
  const third = await secretOf(serviceId);
  expect(third.user).not.toBe(second.user);
  expect([await admits(serviceId, second), await admits(serviceId, third), kept.ended()]).toEqual([true, true, false]);
  const other = await session(serviceId, third);
  await other.client.query('alter table orders add column name text');
  await other.client.end();

  await held.database.pool.query(`update postgres_credential set valid_until = now() - interval '1 second' where service_id = $1 and state = 'previous'`, [serviceId]);
  await new MockActivityEnvironment().run(activities.endOverlaps);
  await until(kept.ended, 'the session of the overlap to be cut');
  expect([await admits(serviceId, second), await admits(serviceId, third)]).toEqual([false, true]);
}, 120_000);

test('suspended nobody gets in and nothing runs; resumed, upgraded and deleted and brought back, every row is there', async () => {
  const serviceId = await available();
  const secret = await secretOf(serviceId);
  const writer = await session(serviceId, secret);
  await writer.client.query('create table orders as select generate_series(1, 1000) as id');
  await change(serviceId, 'suspend');
  await until(writer.ended, 'the session to be cut');
  expect(await admits(serviceId, secret)).toBe(false);
  await change(serviceId, 'resume');
  expect(await admits(serviceId, secret)).toBe(true);

  await change(serviceId, 'plan', { plan: 'starter' });
  const reader = await session(serviceId, secret);
  expect((await reader.client.query('select count(*)::int as rows, current_setting($1) as buffers from orders', ['shared_buffers'])).rows).toEqual([{ rows: 1_000, buffers: '32MB' }]);
  await reader.client.end();

  await perform(await world.remove(serviceId), ['blockAccess', 'retainInstance', 'destroyCredentials', 'markDeleted']);
  await perform(await world.undelete(serviceId), steps.undeletePostgres);
  const renewed = await secretOf(serviceId);
  expect([await admits(serviceId, secret), await admits(serviceId, renewed)]).toEqual([false, true]);
  const again = await session(serviceId, renewed);
  expect((await again.client.query('select count(*)::int as rows from orders')).rows).toEqual([{ rows: 1_000 }]);
  await again.client.end();
  await perform(await world.remove(serviceId, { purge: true }), ['blockAccess', 'destroyInstance', 'destroyCredentials', 'markDeleted']);
}, 120_000);
