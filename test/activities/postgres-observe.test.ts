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

describe('storage', () => {
  const limitBytes = planLimits.starter.storageBytes;
  const at = (percent: number) => {
    world.backend.usedBytes = Math.ceil((limitBytes * percent) / 100);
    return observe();
  };
  async function told(serviceId: string) {
    const { rows: [row] } = await held.database.pool.query(`select s.storage_state as state,
      (select coalesce(array_agg(c->>'to' order by seq), '{}') from audit_entry, jsonb_array_elements(changes) c where target_id = s.id and action = 'observePostgres' and c->>'field' = 'storage.state') as audited,
      (select count(*)::int from account_mail m where m.org_id = s.org_id and m.kind = 'postgres_storage') as mails from postgres_service s where id = $1`, [serviceId]);
    return { ...row, mode: world.backend.instances.get(serviceId)?.mode };
  }

  test('each change of state is audited, the server follows, and owners are told once at 90 %', async () => {
    const serviceId = await available();
    await at(79);
    expect(await told(serviceId)).toEqual({ state: 'ok', audited: [], mails: 0, mode: 'full' });
    await at(85);
    await at(91);
    expect(await told(serviceId)).toEqual({ state: 'warning', audited: ['warning'], mails: 1, mode: 'full' });
    await at(96);
    await at(100);
    expect(await told(serviceId)).toEqual({ state: 'restricted', audited: ['warning', 'read_only', 'restricted'], mails: 1, mode: 'restricted' });
    await at(91);
    expect(await told(serviceId)).toMatchObject({ state: 'restricted', mode: 'restricted' });
    await at(89);
    await at(92);
    expect(await told(serviceId)).toEqual({ state: 'warning', audited: ['warning', 'read_only', 'restricted', 'warning'], mails: 1, mode: 'full' });
    await at(50);
    await at(92);
    expect(await told(serviceId)).toMatchObject({ state: 'warning', mails: 2 });
  });

  test('the largest size of an hour that has ended is billed once', async () => {
    const serviceId = await available();
    world.backend.usedBytes = 1_610_612_736;
    await observe();
    const stored = async () => (await held.database.pool.query(`select key, quantity::text, metric from usage_event where resource_id = $1`, [serviceId])).rows;
    expect(await stored()).toEqual([]);
    const { rows: [{ hour }] } = await held.database.pool.query(`update postgres_usage set hour = hour - interval '1 hour' where service_id = $1 returning to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24') as hour`, [serviceId]);
    await observe();
    await observe();
    expect(await stored()).toEqual([{ key: `pgst:${serviceId}:${hour}`, quantity: '1.500000', metric: 'postgres.storage_gib_hours' }]);
  });
});

test('metrics are rates between two observations; what does not run does nothing', async () => {
  const serviceId = await available();
  const kept = async () => (await held.database.pool.query(`select metrics, totals from postgres_observation where service_id = $1`, [serviceId])).rows[0];
  const metrics = { connections: { active: 2, idle: 3, waiting: 1, limit: 20 }, transactions: 100, blocksHit: 90, blocksRead: 10, walBytes: 1_000, oldestTransactionSeconds: 1.5, blockedSessions: 1 };
  world.backend.metrics = metrics;
  await observe();
  expect(await kept()).toMatchObject({ metrics: { connections: { active: 2, idle: 3, waiting: 1 }, transactionsPerSecond: 0, cacheHitRatio: 0.9, walBytesPerSecond: 0, oldestTransactionSeconds: 1.5, blockedSessions: 1 }, totals: { transactions: 100 } });
  await held.database.pool.query(`update postgres_observation set measured_at = now() - interval '1000 seconds' where service_id = $1`, [serviceId]);
  world.backend.metrics = { ...metrics, transactions: 1_000_100, blocksHit: 190, walBytes: 5_001_000 };
  await observe();
  const { metrics: { transactionsPerSecond, walBytesPerSecond, cacheHitRatio } } = await kept();
  expect(transactionsPerSecond).toBeGreaterThan(500);
  expect(transactionsPerSecond).toBeLessThanOrEqual(1_000);
  expect(walBytesPerSecond / transactionsPerSecond).toBeCloseTo(5);
  expect(cacheHitRatio).toBe(1);
  world.backend.metrics = null;
  await observe();
  expect(await kept()).toMatchObject({ metrics: { transactionsPerSecond: 0, connections: { active: 0 } }, totals: null });
});
