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

describe('trials', () => {
  const advance = () => new MockActivityEnvironment().run(world.activities.advanceTrials);
  const change = (run: Run & { change: 'suspend' }) => finish(run, ['blockAccess', 'stopInstance', 'markChanged']);

  async function finish(run: Run, steps: readonly ('blockAccess' | 'stopInstance' | 'markChanged')[]): Promise<void> {
    for (const step of steps) await world.activities[step](run);
  }

  async function trial(endsIn: string): Promise<string> {
    const serviceId = await world.available('trial');
    await held.database.pool.query(`update postgres_service set trial_expires_at = now() + $2::interval where id = $1`, [serviceId, endsIn]);
    return serviceId;
  }

  async function tracesOf(serviceId: string) {
    const { rows: [row] } = await held.database.pool.query(`select status, status_reason as reason, trial_notice as notice,
      (select count(*)::int from audit_entry where target_id = $1 and action = 'advancePostgresLifecycle') as audited,
      (select coalesce(array_agg(m.facts->>'days' order by m.created_at, m.id), '{}') from account_mail m where m.org_id = s.org_id and m.kind = 'postgres_trial' and m.status = 'pending') as mails from postgres_service s where id = $1`, [serviceId]);
    return row;
  }

  async function openRun(serviceId: string): Promise<Run> {
    const { rows: [row] } = await held.database.pool.query(`select o.id as "operationId", s.generation from operation o join postgres_service s on s.id = o.resource_id where s.id = $1 and o.state = 'pending'`, [serviceId]);
    return { serviceId, ...row };
  }

  test.each([['8 days', null], ['6 days', 7], ['2 days', 3], ['20 hours', 1]])('%s before the end owners are told once, by mail and audit: %j', async (endsIn, notice) => {
    const serviceId = await trial(endsIn);
    await advance();
    await advance();
    expect(await tracesOf(serviceId)).toEqual({ status: 'available', reason: null, notice, audited: notice === null ? 0 : 1, mails: notice === null ? [] : [String(notice)] });
  });

  test('each of the three notices comes in its time', async () => {
    const serviceId = await trial('6 days');
    await advance();
    for (const endsIn of ['3 days', '1 day']) {
      await held.database.pool.query(`update postgres_service set trial_expires_at = now() + $2::interval where id = $1`, [serviceId, endsIn]);
      await advance();
    }
    expect(await tracesOf(serviceId)).toMatchObject({ notice: 1, audited: 3, mails: ['7', '3', '1'] });
  });

  test('at its end it is suspended, seven days later deleted, protected or not', async () => {
    const serviceId = await trial('-1 second');
    await held.database.pool.query('update postgres_service set deletion_protection = true where id = $1', [serviceId]);
    await advance();
    await advance();
    const run = await openRun(serviceId);
    await change({ ...run, change: 'suspend' });
    expect(await tracesOf(serviceId)).toMatchObject({ status: 'suspended', reason: 'trial_expired', mails: ['0'] });
    await advance();
    expect((await tracesOf(serviceId)).status).toBe('suspended');
    await held.database.pool.query(`update postgres_service set suspended_at = now() - interval '7 days' where id = $1`, [serviceId]);
    await advance();
    await advance();
    expect(await world.stateOf(serviceId)).toMatchObject({ status: 'deleting', counted: 0, openSpans: 0 });
  });

  test('what its customer had suspended is suspended for its end; a change of plan ends the trial and starts it again', async () => {
    const serviceId = await world.available('trial');
    await change({ ...await world.change(serviceId, 'suspend'), change: 'suspend' });
    await held.database.pool.query(`update postgres_service set trial_expires_at = now() - interval '1 second' where id = $1`, [serviceId]);
    await advance();
    await advance();
    expect(await tracesOf(serviceId)).toMatchObject({ status: 'suspended', reason: 'trial_expired', audited: 1, mails: ['0'] });
    const plan = await world.change(serviceId, 'plan', { plan: 'starter' });
    for (const step of ['applyLimits', 'markChanged'] as const) await world.activities[step](plan);
    const resume = await openRun(serviceId);
    for (const step of ['ensureInstance', 'unblockAccess', 'verifyAccess', 'markChanged'] as const) await world.activities[step](resume);
    expect(await world.stateOf(serviceId)).toMatchObject({ status: 'available', accessOpen: true, operations: [{}, {}, { kind: 'postgres.change_plan', state: 'succeeded' }, { kind: 'postgres.resume', state: 'succeeded' }] });
    const { rows: [row] } = await held.database.pool.query('select plan, trial_expires_at, (select plan from usage_span where resource_id = s.id and upper_inf(span)) as paid from postgres_service s where id = $1', [serviceId]);
    expect(row).toEqual({ plan: 'starter', trial_expires_at: null, paid: 'starter' });
    await advance();
    expect((await tracesOf(serviceId)).status).toBe('available');
  });
});

describe('overlaps', () => {
  const end = () => new MockActivityEnvironment().run(world.activities.endOverlaps);

  async function overlapping(): Promise<{ serviceId: string; logins: () => { name: string; validUntil: string | null; verifier: string }[] }> {
    const serviceId = await world.available();
    const run = await world.change(serviceId, 'rotate', { rotate: { mode: 'overlap', overlapSeconds: 60 } });
    for (const step of ['ensureAccess', 'ensureAccess', 'markChanged', 'markChanged'] as const) await world.activities[step](run);
    return { serviceId, logins: () => world.backend.instances.get(serviceId)?.logins ?? [] };
  }
  const passed = (serviceId: string) => held.database.pool.query(`update postgres_credential set valid_until = now() - interval '1 second' where service_id = $1 and state = 'previous'`, [serviceId]);
  const statesOf = async (serviceId: string) => (await held.database.pool.query('select state, secret_sealed is not null as sealed from postgres_credential where service_id = $1 order by version', [serviceId])).rows;

  test('both logins are good until its end, then the new one alone, and no secret of the former is left', async () => {
    const { serviceId, logins } = await overlapping();
    expect(logins().map(({ name, validUntil }) => [name.slice(-2), validUntil])).toEqual([['_2', null], ['_1', expect.any(String)]]);
    await end();
    expect(await statesOf(serviceId)).toEqual([{ state: 'previous', sealed: true }, { state: 'current', sealed: true }]);
    await passed(serviceId);
    await end();
    await end();
    expect(await statesOf(serviceId)).toEqual([{ state: 'destroyed', sealed: false }, { state: 'current', sealed: true }]);
    expect(logins().map(({ name, validUntil }) => [name.slice(-2), validUntil])).toEqual([['_2', null]]);
  });

  test('a password its customer has changed meanwhile is not overwritten', async () => {
    const { serviceId, logins } = await overlapping();
    const instance = world.backend.instances.get(serviceId);
    if (instance) instance.logins = instance.logins.map((login) => (login.name.endsWith('_2') ? { ...login, verifier: 'their own' } : login));
    await passed(serviceId);
    await end();
    expect(logins()).toMatchObject([{ verifier: 'their own' }]);
  });

  test('a rotation at once ends an overlap', async () => {
    const { serviceId, logins } = await overlapping();
    const run = await world.change(serviceId, 'rotate');
    const before = logins();
    for (const step of ['ensureAccess', 'markChanged'] as const) await world.activities[step](run);
    expect(logins()).toMatchObject([{ name: before[0]?.name, verifier: expect.not.stringContaining(before[0]?.verifier ?? '') }]);
    expect((await statesOf(serviceId)).map(({ state }) => state)).toEqual(['destroyed', 'destroyed', 'current']);
  });
});
