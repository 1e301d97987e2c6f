import { ApplicationFailure } from '@temporalio/common';
import { pino } from 'pino';
import { activityInterceptor } from '../../activities/steps';
import { steps } from '../../src/postgres/state';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';
import { withTemporal } from '../support/temporal';
import { torture, type World } from '../support/torture';
import { withWorkflowLab, type Activities } from '../support/workflow-lab';

const held = withDatabase();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: held.database, log: pino({ level: 'silent' }) }) });

const nothing = {
  placed: false, credential: 'destroyed', hasSecret: false, host: { services: 0, reservedBytes: 0 }, instance: false, retained: false, accessOpen: false, openSpans: 0, counted: 0, phase: null,
};
const open = { status: 'available', placed: true, hasSecret: true, accessOpen: true, instance: true, openSpans: 1, counted: 1, operations: [{ kind: 'postgres.provision', state: 'succeeded', errorCode: null }] };

/** Activities as the worker has them; `cold`: the pool is empty, so that every ordinary step runs. */
function activitiesOf(world: PostgresWorld, cold: boolean): Activities {
  return { ...world.activities, ...(cold ? { provisionFromPool: async () => 'cold' } : {}) };
}

describe('provisionPostgres', () => {
  test.each([['from the pool', false], ['step by step', true]])('%s: whatever happens at any step, it is available, or failed with nothing left', async (_, cold) => {
    const called = await torture(lab, {
      workflow: 'provisionPostgres',
      withoutEnd: ['markAvailable'],
      begin: async (): Promise<World> => {
        const world = await createPostgresWorld(held.database);
        const run = await world.create();
        return {
          input: run, activities: activitiesOf(world, cold),
          verify: async ({ end }) => {
            const state = await world.stateOf(run.serviceId);
            if (state.status === 'available') expect(state).toMatchObject(open);
            else expect(state).toMatchObject({ ...nothing, status: 'failed', operations: [{ state: end === 'cancelled' ? 'cancelled' : 'failed' }] });
            if (end === 'completed') expect(state.status).toBe('available');
          },
        };
      },
    });
    expect(called).toEqual(cold ? ['provisionFromPool', ...steps.provisionPostgres] : ['provisionFromPool']);
  }, 240_000);

  const moments = ['provisionFromPool', ...steps.provisionPostgres].flatMap((step) => [['before', step], ['after', step]] as const);

  test.each(moments)('a DELETE %s the effect of %s wins: deleted, and nothing left', async (when, step) => {
    const world = await createPostgresWorld(held.database);
    const run = await world.create();
    const removals: Promise<unknown>[] = [];
    const end = await lab.run({
      workflow: 'provisionPostgres', input: run, activities: activitiesOf(world, step !== 'provisionFromPool'),
      interfere: async ({ name }, activity) => {
        const result = when === 'after' ? await activity() : undefined;
        if (name === step && removals.length === 0) {
          const removal = await world.remove(run.serviceId);
          removals.push(lab.run({ workflow: 'deletePostgres', input: removal, activities: world.activities }));
        }
        return when === 'after' ? result : activity();
      },
    });
    const wasAvailable = when === 'after' && (step === 'markAvailable' || step === 'provisionFromPool');
    expect(end).toMatchObject({ end: 'completed', result: wasAvailable ? 'done' : 'superseded' });
    expect(await Promise.all(removals)).toMatchObject([{ end: 'completed', result: 'done' }]);
    const { retained, placed, host, ...state } = await world.stateOf(run.serviceId);
    expect({ retained, placed }).toEqual({ retained: wasAvailable, placed: wasAvailable });
    expect(host.services).toBe(wasAvailable ? 1 : 0);
    expect(state).toMatchObject({
      status: 'deleted', instance: false, hasSecret: false, accessOpen: false, openSpans: 0, counted: 0,
      operations: [{ kind: 'postgres.provision', state: wasAvailable ? 'succeeded' : 'cancelled' }, { kind: 'postgres.delete', state: 'succeeded' }],
    });
  }, 60_000);

  test('writes down its steps, in order, as the operation shows them', async () => {
    const world = await createPostgresWorld(held.database);
    const run = await world.create();
    await lab.run({ workflow: 'provisionPostgres', input: run, activities: activitiesOf(world, true) });
    const { rows: [row] } = await held.database.pool.query('select steps from operation where id = $1', [run.operationId]);
    const shown: { name: string; state: string; finishedAt: string | null }[] = row.steps;
    expect(shown.map(({ name }) => name)).toEqual(['provisionFromPool', ...steps.provisionPostgres]);
    expect(shown.every(({ state, finishedAt }) => state === 'succeeded' && finishedAt !== null)).toBe(true);
  }, 60_000);

  test('a backend that never answers ends as deadline_exceeded', async () => {
    const world = await createPostgresWorld(held.database);
    const run = await world.create();
    const later = async () => { throw ApplicationFailure.create({ type: 'backend_error', message: 'not now', nextRetryDelay: '1h' }); };
    const activities = { ...world.activities, provisionFromPool: async () => 'cold', ensurePlacement: later };
    expect(await lab.run({ workflow: 'provisionPostgres', input: run, activities })).toMatchObject({ end: 'failed', code: 'deadline_exceeded' });
    expect(await world.stateOf(run.serviceId)).toMatchObject({ ...nothing, status: 'failed', statusReason: 'deadline_exceeded' });
  }, 60_000);
});

describe('deletePostgres', () => {
  test.each([['retained', false], ['purged', true]])('%s: whatever happens at any step, it ends deleted', async (_, purge) => {
    const called = await torture(lab, {
      workflow: 'deletePostgres',
      withoutEnd: steps.deletePostgres,
      begin: async (): Promise<World> => {
        const world = await createPostgresWorld(held.database);
        const { serviceId } = await world.create();
        await world.activities.provisionFromPool({ serviceId, operationId: 'op_test', generation: 1 });
        const run = await world.remove(serviceId, { purge });
        return {
          input: run, activities: world.activities,
          verify: async ({ end }, { torment }) => {
            const state = await world.stateOf(serviceId);
            if (end === 'cancelled') expect({ torment, status: state.status, accessOpen: state.accessOpen }).toEqual({ torment: 'cancelled during it', status: 'deleting', accessOpen: false });
            else expect(state).toMatchObject({ status: 'deleted', instance: false, retained: !purge, placed: !purge, hasSecret: false, accessOpen: false, openSpans: 0, counted: 0 });
          },
        };
      },
    });
    const skipped = purge ? 'retainInstance' : 'destroyInstance';
    expect(called).toEqual(steps.deletePostgres.filter((name) => name !== skipped));
  }, 240_000);

  test('a deletion that was cancelled by an operator is taken up again by another run', async () => {
    const world = await createPostgresWorld(held.database);
    const { serviceId } = await world.create();
    const run = await world.remove(serviceId);
    const first = await lab.run({ workflow: 'deletePostgres', input: run, activities: world.activities, interfere: async ({ index }, activity, { cancel }) => {
      if (index === 0) await cancel();
      return activity();
    } });
    expect(first.end).toBe('cancelled');
    expect(await lab.run({ workflow: 'deletePostgres', input: run, activities: world.activities })).toMatchObject({ end: 'completed', result: 'done' });
    expect((await world.stateOf(serviceId)).status).toBe('deleted');
  }, 60_000);
});
