import { pino } from 'pino';
import { activityInterceptor } from '../../activities/steps';
import { ApplicationFailure } from '@temporalio/common';
import { planLimits } from '../../src/postgres/rules';
import { changes, steps, type Change } from '../../src/postgres/state';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';
import { withTemporal } from '../support/temporal';
import { torture, type World } from '../support/torture';
import { withWorkflowLab } from '../support/workflow-lab';

const held = withDatabase();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: held.database, log: pino({ level: 'silent' }) }) });

/** A service that a change can be asked of: suspended where it is to be resumed. */
async function ready(world: PostgresWorld, change: Change): Promise<string> {
  const serviceId = await world.available();
  if (change === 'resume') {
    const run = await world.change(serviceId, 'suspend');
    for (const step of steps.changePostgres.suspend) await world.activities[step](run);
  }
  return serviceId;
}

/** What a change or its undo must leave as it was, or have changed: row, credentials, bill, reservation and server. */
async function factsOf({ database, backend }: PostgresWorld, serviceId: string) {
  const { rows: [row] } = await database.pool.query(`
    select s.status, s.status_reason as reason, s.plan, s.access_open as open, s.compute, s.reserved_bytes::float8 as bytes, h.reserved_bytes::float8 as "hostBytes", s.suspended_at is not null as suspended,
      s.change is null and s.pending_plan is null and s.run_seconds is null and s.deadline_at is null as settled,
      (select jsonb_object_agg(state, version) from postgres_credential where service_id = s.id and state <> 'destroyed') as credentials,
      (select count(*)::int from postgres_credential where service_id = s.id and state = 'destroyed' and secret_sealed is not null) as leaked,
      (select jsonb_build_object('plan', plan, 'pending', pending_plan) from subscription where resource_id = s.id and status <> 'canceled') as bill,
      (select count(*)::int from usage_span where resource_id = s.id and upper_inf(span)) as spans,
      (select jsonb_object_agg(resource, used) from quota_counter where scope_id = s.project_id and used > 0 and resource like 'postgres.%') as counted
    from postgres_service s join postgres_host h on h.name = s.host_id where s.id = $1`, [serviceId]);
  const instance = backend.instances.get(serviceId);
  return { ...row, server: instance && { plan: instance.plan, running: instance.running, mode: instance.mode, logins: instance.logins } };
}
type Facts = Awaited<ReturnType<typeof factsOf>>;

function expected(change: Change, before: Facts): object {
  const { launch } = planLimits;
  switch (change) {
    case 'rotate': return { ...before, credentials: { current: 2 }, server: { ...before.server, logins: [{ ...before.server?.logins[0], verifier: expect.not.stringContaining(before.server?.logins[0]?.verifier ?? 'nothing') }] } };
    case 'plan': return { ...before, plan: 'launch', bytes: launch.storageBytes, hostBytes: launch.storageBytes, bill: { plan: 'launch', pending: null }, counted: { 'postgres.services.launch': 1 }, server: { ...before.server, plan: 'launch' } };
    case 'suspend': return { ...before, status: 'suspended', reason: 'user', open: false, suspended: true, compute: 'stopped', server: { ...before.server, running: false, mode: 'blocked' } };
    case 'resume': return { ...before, status: 'available', reason: null, open: true, suspended: false, compute: 'running', server: { ...before.server, running: true, mode: 'full' } };
  }
}

describe.each(changes)('changePostgres: %s', (change) => {
  test('whatever happens at any step, it is done, or everything is as before', async () => {
    const called = await torture(lab, {
      workflow: 'changePostgres',
      withoutEnd: ['markChanged'],
      begin: async (): Promise<World> => {
        const world = await createPostgresWorld(held.database);
        const serviceId = await ready(world, change);
        const before = await factsOf(world, serviceId);
        const run = await world.change(serviceId, change);
        return {
          input: run, activities: world.activities,
          verify: async ({ end }) => {
            const after = await factsOf(world, serviceId);
            const { operations } = await world.stateOf(serviceId);
            expect({ settled: after.settled, leaked: after.leaked, spans: after.spans }).toEqual({ settled: true, leaked: 0, spans: 1 });
            if (operations.at(-1)?.state === 'succeeded') expect(after).toEqual(expected(change, before));
            else expect({ after, state: operations.at(-1)?.state }).toEqual({ after: before, state: end === 'cancelled' ? 'cancelled' : 'failed' });
            if (end === 'completed') expect(operations.at(-1)?.state).toBe('succeeded');
          },
        };
      },
    });
    expect(called).toEqual(steps.changePostgres[change]);
  }, 240_000);

  test.each(steps.changePostgres[change].flatMap((step) => [['before', step], ['after', step]] as const))('a DELETE %s the effect of %s wins', async (when, step) => {
    const world = await createPostgresWorld(held.database);
    const serviceId = await ready(world, change);
    const run = await world.change(serviceId, change);
    const removals: Promise<unknown>[] = [];
    await lab.run({
      workflow: 'changePostgres', input: run, activities: world.activities,
      interfere: async ({ name }, activity) => {
        const result = when === 'after' ? await activity() : undefined;
        if (name === step && removals.length === 0) removals.push(lab.run({ workflow: 'deletePostgres', input: await world.remove(serviceId), activities: world.activities }));
        return when === 'after' ? result : activity();
      },
    });
    expect(await Promise.all(removals)).toMatchObject([{ end: 'completed', result: 'done' }]);
    expect(await world.stateOf(serviceId)).toMatchObject({ status: 'deleted', instance: false, retained: true, hasSecret: false, accessOpen: false, openSpans: 0, counted: 0 });
  }, 60_000);

  test('taken up again after its run was lost, it comes to the same end', async () => {
    const world = await createPostgresWorld(held.database);
    const serviceId = await ready(world, change);
    const before = await factsOf(world, serviceId);
    const run = await world.change(serviceId, change);
    for (const step of steps.changePostgres[change].slice(0, -1)) await world.activities[step](run);
    expect(await lab.run({ workflow: 'changePostgres', input: run, activities: world.activities })).toMatchObject({ end: 'completed', result: 'done' });
    expect(await factsOf(world, serviceId)).toEqual(expected(change, before));
  }, 60_000);

  test('a backend that never answers is undone as deadline_exceeded', async () => {
    const world = await createPostgresWorld(held.database);
    const serviceId = await ready(world, change);
    const before = await factsOf(world, serviceId);
    const run = await world.change(serviceId, change);
    const [first = 'markChanged'] = steps.changePostgres[change];
    const later = async () => { throw ApplicationFailure.create({ type: 'backend_error', message: 'not now', nextRetryDelay: '1h' }); };
    expect(await lab.run({ workflow: 'changePostgres', input: run, activities: { ...world.activities, [first]: later } })).toMatchObject({ end: 'failed', code: 'deadline_exceeded' });
    expect(await factsOf(world, serviceId)).toEqual(before);
  }, 60_000);
});

test('a plan the host has no room for is refused by the host and costs nothing', async () => {
  const world = await createPostgresWorld(held.database, { capacityBytes: planLimits.starter.storageBytes });
  const serviceId = await world.available();
  const before = await factsOf(world, serviceId);
  const run = await world.change(serviceId, 'plan', { plan: 'growth' });
  expect(await lab.run({ workflow: 'changePostgres', input: run, activities: world.activities })).toMatchObject({ end: 'failed', code: 'no_capacity' });
  expect(await factsOf(world, serviceId)).toEqual(before);
}, 60_000);

test('a deleted service comes back with its data and a new password, or is deleted as before; its trial goes on', async () => {
  const called = await torture(lab, {
    workflow: 'restorePostgres',
    withoutEnd: ['markAvailable'],
    begin: async (): Promise<World> => {
      const world = await createPostgresWorld(held.database);
      const serviceId = await world.deleted('trial');
      const kept = world.backend.retained.get(serviceId);
      const { rows: [before] } = await held.database.pool.query('select deleted_at, recoverable_until, trial_expires_at from postgres_service where id = $1', [serviceId]);
      const run = await world.undelete(serviceId);
      return {
        input: run, activities: world.activities,
        verify: async ({ end }) => {
          const state = await world.stateOf(serviceId);
          const { rows: [after] } = await held.database.pool.query('select deleted_at, recoverable_until, trial_expires_at from postgres_service where id = $1', [serviceId]);
          if (state.status === 'available') {
            expect(state).toMatchObject({ placed: true, credential: 'current', accessOpen: true, instance: true, retained: false, openSpans: 1, counted: 1, host: { services: 1 } });
            expect(world.backend.instances.get(serviceId)).toMatchObject({ systemId: kept?.systemId, running: true, mode: 'full' });
            expect(after).toEqual({ deleted_at: null, recoverable_until: null, trial_expires_at: before.trial_expires_at });
          } else {
            expect(state).toMatchObject({ status: 'deleted', placed: true, hasSecret: false, accessOpen: false, instance: false, retained: true, openSpans: 0, counted: 0 });
            expect(world.backend.retained.get(serviceId)).toEqual(kept);
            expect({ ...after, state: state.operations.at(-1)?.state }).toEqual({ ...before, state: end === 'cancelled' ? 'cancelled' : 'failed' });
            expect((await world.undelete(serviceId)).generation).toBeGreaterThan(run.generation);
          }
          if (end === 'completed') expect(state.status).toBe('available');
        },
      };
    },
  });
  expect(called).toEqual(steps.undeletePostgres);
}, 240_000);

test.each(steps.undeletePostgres.flatMap((step) => [['before', step], ['after', step]] as const))('a DELETE %s the effect of %s of an undelete wins, and the data is retained again', async (when, step) => {
  const world = await createPostgresWorld(held.database);
  const serviceId = await world.deleted();
  const run = await world.undelete(serviceId);
  const removals: Promise<unknown>[] = [];
  await lab.run({
    workflow: 'restorePostgres', input: run, activities: world.activities,
    interfere: async ({ name }, activity) => {
      const result = when === 'after' ? await activity() : undefined;
      if (name === step && removals.length === 0) removals.push(lab.run({ workflow: 'deletePostgres', input: await world.remove(serviceId), activities: world.activities }));
      return when === 'after' ? result : activity();
    },
  });
  expect(await Promise.all(removals)).toMatchObject([{ end: 'completed', result: 'done' }]);
  expect(await world.stateOf(serviceId)).toMatchObject({ status: 'deleted', instance: false, retained: true, hasSecret: false, accessOpen: false, openSpans: 0, counted: 0 });
}, 60_000);

test('what time does to services is done whatever happens at any step, at the latest by the next run', async () => {
  const called = await torture(lab, {
    workflow: 'advancePostgresLifecycle',
    begin: async (): Promise<World> => {
      const world = await createPostgresWorld(held.database);
      const [trial, overlapping, expired] = [await world.available('trial'), await world.available(), await world.deleted()];
      const rotation = await world.change(overlapping, 'rotate', { rotate: { mode: 'overlap', overlapSeconds: 60 } });
      for (const step of steps.changePostgres.rotate) await world.activities[step](rotation);
      const ago = `now() - interval '1 second'`;
      await held.database.pool.query(`update postgres_service set trial_expires_at = case id when $1 then ${ago} end, recoverable_until = case id when $2 then ${ago} end where id = any($3)`, [trial, expired, [trial, expired]]);
      await held.database.pool.query(`update postgres_credential set valid_until = ${ago} where service_id = $1 and state = 'previous'`, [overlapping]);
      return {
        input: undefined, activities: world.activities,
        verify: async () => {
          await lab.run({ workflow: 'advancePostgresLifecycle', input: undefined, activities: world.activities });
          const { rows } = await held.database.pool.query(`select status, change, anonymised_at is not null as anonymised, (select count(*)::int from operation o where o.resource_id = s.id and o.kind = 'postgres.suspend') as suspensions,
            (select count(*)::int from audit_entry a where a.target_id = s.id and a.action = 'advancePostgresLifecycle') as audited, (select count(*)::int from postgres_credential c where c.service_id = s.id and c.secret_sealed is not null) as secrets
            from postgres_service s where id = any($1) order by array_position($1, s.id::text)`, [[trial, overlapping, expired]]);
          expect(rows).toEqual([
            { status: 'updating', change: 'suspend', anonymised: false, suspensions: 1, audited: 1, secrets: 1 },
            { status: 'available', change: null, anonymised: false, suspensions: 0, audited: 1, secrets: 1 },
            { status: 'deleted', change: null, anonymised: true, suspensions: 0, audited: 1, secrets: 0 },
          ]);
          expect(world.backend.retained.has(expired)).toBe(false);
          expect(world.backend.instances.get(overlapping)?.logins).toMatchObject([{ validUntil: null }]);
        },
      };
    },
  });
  expect(called).toEqual(['attendOverdueServices', 'advanceTrials', 'endOverlaps', 'purgeExpiredServices']);
}, 240_000);

test('a retry after a failure provisions like a creation', async () => {
  const world = await createPostgresWorld(held.database);
  const run = await world.create();
  const refuse = async () => { throw ApplicationFailure.nonRetryable('no', 'backend_error'); };
  await lab.run({ workflow: 'provisionPostgres', input: run, activities: { ...world.activities, provisionFromPool: async () => 'cold', ensureInstance: refuse } });
  expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'failed', counted: 0 });
  const again = await world.retry(run.serviceId);
  expect(await lab.run({ workflow: 'provisionPostgres', input: again, activities: { ...world.activities, provisionFromPool: async () => 'cold' } })).toMatchObject({ end: 'completed', result: 'done' });
  expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'available', credential: 'current', openSpans: 1, counted: 1, subscription: 'active' });
}, 60_000);
