import { MockActivityEnvironment } from '@temporalio/testing';
import type { Run } from '../../src/postgres/store/runs';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';

const held = withDatabase();
let world: PostgresWorld;

beforeEach(async () => {
  world = await createPostgresWorld(held.database);
});

const purge = () => new MockActivityEnvironment().run(world.activities.purgeExpiredServices);

/** Deleted, with its data retained, and its time to come back ending so many seconds from now. */
async function deletedService(endsInSeconds: number): Promise<Run> {
  const { serviceId } = await world.create();
  await world.activities.provisionFromPool({ serviceId, operationId: 'op_test', generation: 1 });
  const run = await world.remove(serviceId);
  for (const step of ['blockAccess', 'retainInstance', 'destroyCredentials', 'markDeleted'] as const) await world.activities[step](run);
  await held.database.pool.query(`update postgres_service set recoverable_until = now() + $2::int * interval '1 second' where id = $1`, [serviceId, endsInSeconds]);
  return run;
}

async function rowOf({ serviceId }: Run) {
  const { rows: [row] } = await held.database.pool.query(`select display_name as name, anonymised_at is not null as anonymised, plan, host_id as host from postgres_service where id = $1`, [serviceId]);
  return row;
}

test('data is kept until its time to come back has passed, then it is gone, its room is free and no name is left', async () => {
  const early = await deletedService(60);
  const late = await deletedService(0);
  expect(world.backend.retained.size).toBe(2);
  await purge();
  expect([...world.backend.retained.keys()]).toEqual([early.serviceId]);
  expect(await rowOf(late)).toEqual({ name: null, anonymised: true, plan: 'starter', host: null });
  expect(await rowOf(early)).toMatchObject({ name: 'orders', anonymised: false });
  const { rows: [host] } = await held.database.pool.query('select services, reserved_bytes > 0 as reserved from postgres_host where region = $1', [world.region]);
  expect(host).toEqual({ services: 1, reserved: true });
  const { rows } = await held.database.pool.query(`select action from audit_entry where target_id = $1 order by seq desc limit 1`, [late.serviceId]);
  expect(rows).toEqual([{ action: 'advancePostgresLifecycle' }]);
});

test('twice is once, and a host that is down keeps nothing but its own waiting', async () => {
  const first = await deletedService(0);
  const second = await deletedService(0);
  world.backend.before = ({ method, serviceId }) => {
    if (method === 'destroy' && serviceId === first.serviceId) throw new Error('connection refused');
  };
  await purge();
  expect([(await rowOf(first)).anonymised, (await rowOf(second)).anonymised]).toEqual([false, true]);
  world.backend.before = () => undefined;
  await purge();
  await purge();
  expect((await rowOf(first)).anonymised).toBe(true);
  const { rows: [row] } = await held.database.pool.query(`select count(*)::int as entries from audit_entry where target_id = $1 and action = 'advancePostgresLifecycle'`, [first.serviceId]);
  expect(row.entries).toBe(1);
});
