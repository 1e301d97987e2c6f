import { Superseded, TryLater } from '../../src/core/job-errors';
import type { Run } from '../../src/postgres/store/runs';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';

const held = withDatabase();
let world: PostgresWorld;

beforeEach(async () => {
  world = await createPostgresWorld(held.database);
});

async function available(): Promise<Run> {
  const run = await world.create();
  expect(await world.activities.provisionFromPool(run)).toBe('available');
  return run;
}

async function lifetimeOf({ serviceId }: Run): Promise<{ hours: number | null; deleted: boolean }> {
  const { rows: [row] } = await held.database.pool.query(`select (extract(epoch from recoverable_until - deleted_at) / 3600)::float8 as hours, deleted_at is not null as deleted
    from postgres_service where id = $1`, [serviceId]);
  return row;
}

test('each step twice leaves what once leaves; the data is retained and the keys are gone', async () => {
  const { serviceId } = await available();
  const run = await world.remove(serviceId);
  for (const step of ['blockAccess', 'cancelOtherRuns', 'retainInstance', 'destroyCredentials', 'markDeleted'] as const) {
    await world.activities[step](run);
    const once = await world.stateOf(serviceId);
    await world.activities[step](run);
    expect(await world.stateOf(serviceId)).toEqual(once);
  }
  expect(await world.stateOf(serviceId)).toMatchObject({
    status: 'deleted', placed: true, instance: false, retained: true, credential: 'destroyed', hasSecret: false, accessOpen: false, openSpans: 0, counted: 0, subscription: 'canceled',
    host: { services: 1 }, operations: [{ kind: 'postgres.provision', state: 'succeeded' }, { kind: 'postgres.delete', state: 'succeeded' }],
  });
  expect(await lifetimeOf(run)).toEqual({ hours: 168, deleted: true });
  expect(world.cancelled).toContain(`postgres-provision/${serviceId}`);
});

test('purged, nothing is left and its room is free', async () => {
  const { serviceId } = await available();
  const run = await world.remove(serviceId, { purge: true });
  expect(await world.activities.blockAccess(run)).toEqual({ retain: false });
  for (const step of ['destroyInstance', 'destroyInstance', 'destroyCredentials', 'markDeleted'] as const) await world.activities[step](run);
  expect(await world.stateOf(serviceId)).toMatchObject({ status: 'deleted', placed: false, instance: false, retained: false, host: { services: 0, reservedBytes: 0 } });
  expect(await lifetimeOf(run)).toEqual({ hours: null, deleted: true });
});

test('a purge asked for while its data is being retained ends the time to come back at once', async () => {
  const { serviceId } = await available();
  const run = await world.remove(serviceId);
  await world.activities.blockAccess(run);
  await world.activities.retainInstance(run);
  expect(await world.remove(serviceId, { purge: true })).toEqual(run);
  await world.activities.destroyCredentials(run);
  await world.activities.markDeleted(run);
  expect((await lifetimeOf(run)).hours).toBe(0);
});

test('what never was available has nothing to retain, and what was never placed has nothing to ask a host for', async () => {
  const placed = await world.create();
  await world.activities.ensurePlacement(placed);
  expect(await world.activities.blockAccess(await world.remove(placed.serviceId))).toEqual({ retain: false });
  const unplaced = await world.create();
  const run = await world.remove(unplaced.serviceId);
  const calls = world.backend.calls.length;
  expect(await world.activities.blockAccess(run)).toEqual({ retain: false });
  for (const step of ['cancelOtherRuns', 'destroyInstance', 'destroyCredentials', 'markDeleted'] as const) await world.activities[step](run);
  expect(world.backend.calls).toHaveLength(calls);
  expect((await world.stateOf(unplaced.serviceId)).status).toBe('deleted');
});

test('a host that is down is tried again, with nothing marked', async () => {
  const { serviceId } = await available();
  const run = await world.remove(serviceId);
  world.backend.before = () => { throw new Error('connection refused'); };
  await expect(world.activities.blockAccess(run)).rejects.toThrow(TryLater);
  await expect(world.activities.retainInstance(run)).rejects.toThrow(TryLater);
  expect((await world.stateOf(serviceId)).status).toBe('deleting');
});

test('a run of another generation does nothing', async () => {
  const { serviceId } = await available();
  const run = await world.remove(serviceId);
  const stale = { ...run, generation: 1 };
  for (const step of ['blockAccess', 'cancelOtherRuns', 'retainInstance', 'destroyInstance', 'destroyCredentials', 'markDeleted'] as const) {
    await expect(world.activities[step](stale)).rejects.toThrow(Superseded);
  }
  expect(await world.stateOf(serviceId)).toMatchObject({ status: 'deleting', instance: true, hasSecret: true });
});
