import { MockActivityEnvironment } from '@temporalio/testing';
import { planLimits } from '../../src/postgres/rules';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';

const held = withDatabase();
const warningBytes = Math.ceil(planLimits.starter.storageBytes * 0.8);
let world: PostgresWorld;

beforeEach(async () => {
  world = await createPostgresWorld(held.database);
});

const observe = () => new MockActivityEnvironment().run(world.activities.observeServices);

async function available(): Promise<string> {
  const run = await world.create();
  await world.activities.provisionFromPool(run);
  return run.serviceId;
}

async function shown(serviceId: string) {
  const { rows: [row] } = await held.database.pool.query(`select s.compute, s.used_bytes::float8 as used, s.measured_at is not null as measured, s.storage_state as storage, c.in_sync as "inSync",
    (select max_bytes::float8 from postgres_usage where service_id = s.id) as hour from postgres_service s join postgres_credential c on c.service_id = s.id where s.id = $1`, [serviceId]);
  return row;
}

test('shows what the server says, twice the same, and keeps the largest size of the hour', async () => {
  const serviceId = await available();
  world.backend.usedBytes = 3_000;
  await observe();
  await observe();
  expect(await shown(serviceId)).toEqual({ compute: 'running', used: 3_000, measured: true, storage: 'ok', inSync: true, hour: 3_000 });
  world.backend.usedBytes = warningBytes;
  await observe();
  expect((await shown(serviceId)).storage).toBe('warning');
  world.backend.usedBytes = 1_000;
  await observe();
  expect(await shown(serviceId)).toMatchObject({ used: 1_000, storage: 'ok', hour: warningBytes });
});

test('an idle server is idle and not waked, a changed password is out of sync', async () => {
  const serviceId = await available();
  const instance = world.backend.instances.get(serviceId);
  if (!instance) throw new Error('no instance');
  instance.logins = instance.logins.map((login) => ({ ...login, verifier: 'changed' }));
  await observe();
  expect(await shown(serviceId)).toMatchObject({ compute: 'running', inSync: false });
  instance.running = false;
  await observe();
  expect(await shown(serviceId)).toMatchObject({ compute: 'idle', inSync: false });
  expect(instance.running).toBe(false);
});

test('a server that does not answer keeps what was seen last and does not keep the others waiting', async () => {
  const [first, second] = [await available(), await available()];
  world.backend.instances.delete(first);
  world.backend.usedBytes = 5;
  await observe();
  expect((await shown(first)).used).toBeNull();
  expect((await shown(second)).used).toBe(5);
});

test('a service that is being deleted is not written to', async () => {
  const serviceId = await available();
  await world.remove(serviceId);
  await observe();
  expect(await shown(serviceId)).toMatchObject({ used: null, hour: null });
});
