import { MockActivityEnvironment } from '@temporalio/testing';
import fc from 'fast-check';
import { systemClock } from '../../src/core/clock';
import { Cursors } from '../../src/core/cursor';
import { AppError } from '../../src/core/errors';
import { Superseded } from '../../src/core/job-errors';
import { createLimiter } from '../../src/http/rate-limit';
import { maskedCredentials, revealCredentials } from '../../src/postgres/credentials';
import { planLimits } from '../../src/postgres/rules';
import { getService, type PostgresDeps } from '../../src/postgres/service';
import { changeRules, counted, revealable, steps, type Change, type Status } from '../../src/postgres/state';
import { findCredentials, secretAad } from '../../src/postgres/store/credentials';
import type { Run } from '../../src/postgres/store/runs';
import { withDatabase } from '../support/database';
import { testConfig } from '../support/postgres-api';
import { callerOf, createPostgresWorld, type PostgresWorld } from '../support/postgres-world';
import { rounds } from '../support/rounds';

const held = withDatabase();

type StepName = typeof steps.provisionPostgres[number] | typeof steps.changePostgres[Change][number] | typeof steps.undeletePostgres[number] | typeof steps.deletePostgres[number];
type UndoName = 'destroyCredentials' | 'destroyInstance' | 'releasePlacement' | 'retainInstance' | 'revertAccess' | 'revertLimits' | 'revertMode';
/** One accepted intent: its steps, what undoes them, and how far it has come. */
type Intent = { run: Run; steps: readonly StepName[]; undo: readonly UndoName[]; failed: 'markProvisionFailed' | 'markChangeFailed' | 'markUndeleteFailed' | null; done: number };
type Service = { id: string; intents: Intent[]; plan: string };

const names = [
  'create', 'create', 'advance', 'advance', 'advance', 'advance', 'finish', 'finish', 'repeat', 'late', 'undo', 'undo', 'reveal', 'remove', 'remove', 'purge', 'crash',
  'rotate', 'overlap', 'suspend', 'resume', 'plan', 'fill', 'endOverlaps', 'undelete', 'undelete', 'retry', 'expire', 'sleep', 'wake', 'read',
] as const;
type Action = { name: typeof names[number]; pick: number; step: number };
const action = fc.record<Action>({ name: fc.constantFrom(...names), pick: fc.nat({ max: 4 }), step: fc.nat({ max: 7 }) });

const undoOf: Readonly<Record<Change, UndoName>> = { rotate: 'revertAccess', plan: 'revertLimits', suspend: 'revertMode', resume: 'revertMode' };

/** On a busy machine as many sequences as a minute allows. */
test('any sequence of creating, changing, sleeping, waking, filling, deleting, bringing back, undoing and coming late keeps every promise', async () => {
  await fc.assert(fc.asyncProperty(fc.array(action, { minLength: 20, maxLength: 45, size: 'max' }), async (actions) => {
    const world = await createPostgresWorld(held.database);
    const services: Service[] = [];
    for (const next of actions) {
      await perform(world, services, next);
      await requireInvariants(world, services, next);
    }
  }), { numRuns: rounds(15, 100), interruptAfterTimeLimit: rounds(60_000, 600_000) });
}, rounds(240_000, 1_200_000));

async function perform(world: PostgresWorld, services: Service[], { name, pick, step }: Action): Promise<void> {
  if (name === 'create') return create(world, services);
  const service = services[pick % Math.max(1, services.length)];
  if (!service) return;
  const intent = service.intents.at(-1);
  switch (name) {
    case 'advance': return void (intent && await advance(world, intent));
    case 'finish': return void (intent && await finish(world, intent));
    case 'repeat': return void (intent && await call(world, intent, Math.max(0, intent.done - 1)));
    case 'late': return late(world, service, step);
    case 'undo': return void (intent && await undo(world, intent));
    case 'crash': return void (intent && await crash(world, intent));
    case 'reveal': return reveal(world, service);
    case 'remove': return remove(world, service, false);
    case 'purge': return remove(world, service, true);
    case 'undelete': return again(world, service, 'undelete');
    case 'retry': return again(world, service, 'retry');
    case 'fill': return fill(world, step);
    case 'endOverlaps': return expire(world, service);
    case 'expire': return trialsEnd(world, service);
    case 'sleep': return sleep(world, service, step % 2 === 0);
    case 'wake': return wake(world, service);
    case 'read': return read(world, service);
    case 'overlap': return change(world, service, 'rotate', { rotate: { mode: 'overlap' } });
    default: return change(world, service, name, { plan: 'launch' });
  }
}

async function create(world: PostgresWorld, services: Service[]): Promise<void> {
  const plan = services.length % 3 === 2 ? 'trial' : 'starter';
  const run = await world.create(plan).catch((error: unknown) => error);
  if (run instanceof AppError) expect(['plan_limit_reached', 'trial_already_used']).toContain(run.code);
  else if (isRun(run)) services.push({ id: run.serviceId, plan, intents: [provision(run)] });
  else throw run;
}

function provision(run: Run): Intent {
  return { run, steps: steps.provisionPostgres, undo: ['destroyCredentials', 'destroyInstance', 'releasePlacement'], failed: 'markProvisionFailed', done: 0 };
}

async function change(world: PostgresWorld, service: Service, kind: Change, wish: object): Promise<void> {
  const { status } = await world.stateOf(service.id);
  const run = await world.change(service.id, kind, wish).catch((error: unknown) => error);
  const from: readonly string[] = changeRules[kind].from;
  if (isRun(run)) {
    expect(from).toContain(status);
    service.intents.push({ run, steps: steps.changePostgres[kind], undo: [undoOf[kind]], failed: 'markChangeFailed', done: 0 });
  } else if (!(run instanceof AppError)) throw run;
  else if (from.includes(status)) expect(['validation_error', 'plan_limit_reached', 'payment_required']).toContain(run.code);
  else expect(['invalid_state', 'not_found', 'service_suspended']).toContain(run.code);
}

async function again(world: PostgresWorld, service: Service, kind: 'retry' | 'undelete'): Promise<void> {
  const run = await world[kind](service.id).catch((error: unknown) => error);
  if (isRun(run)) {
    service.intents.push(kind === 'retry' ? provision(run) : { run, steps: steps.undeletePostgres, undo: ['destroyCredentials', 'retainInstance'], failed: 'markUndeleteFailed', done: 0 });
  } else if (!(run instanceof AppError) || !['invalid_state', 'not_found', 'plan_limit_reached', 'trial_already_used'].includes(run.code)) throw run;
}

async function remove(world: PostgresWorld, service: Service, purge: boolean): Promise<void> {
  const run = await world.remove(service.id, { purge }).catch((error: unknown) => error);
  const last = service.intents.at(-1);
  if (isRun(run)) {
    if (last?.failed === null) expect(run).toEqual(last.run);
    else service.intents.push({ run, steps: steps.deletePostgres.filter((step) => step !== 'cancelOtherRuns'), undo: [], failed: null, done: 0 });
  } else if (!(run instanceof AppError && run.code === 'not_found') && !(run instanceof Error && run.message.includes('nothing to follow'))) throw run;
}

/** One step further. Of a deletion, the data is retained or destroyed as its first step says. */
async function advance(world: PostgresWorld, intent: Intent): Promise<void> {
  const result = await call(world, intent, intent.done);
  if (result === null) return;
  if (typeof result.value === 'object' && result.value !== null && 'retain' in result.value) {
    const skipped = result.value.retain ? 'destroyInstance' : 'retainInstance';
    intent.steps = intent.steps.filter((step) => step !== skipped);
  }
  intent.done += 1;
}

async function finish(world: PostgresWorld, intent: Intent): Promise<void> {
  for (let left = intent.steps.length; left > 0; left -= 1) await advance(world, intent);
}

async function late(world: PostgresWorld, { intents }: Service, step: number): Promise<void> {
  const intent = intents[step % intents.length];
  if (intent) await call(world, intent, step % intent.steps.length);
}

async function call({ activities }: PostgresWorld, intent: Intent, index: number): Promise<{ value: unknown } | null> {
  const step = intent.steps[index];
  return step ? tolerated(activities[step](intent.run)) : null;
}

async function undo({ activities }: PostgresWorld, { run, undo: names, failed }: Intent): Promise<void> {
  if (!failed) return;
  for (const name of names) if (!await tolerated(activities[name](run))) return;
  await tolerated(activities[failed]({ ...run, failure: { code: 'backend_error', message: 'undone', cancelled: false } }));
}

/** A call of the host takes effect and its answer is lost. */
async function crash(world: PostgresWorld, intent: Intent): Promise<void> {
  world.backend.after = () => { throw new Error('the answer was lost'); };
  await advance(world, intent).catch(() => undefined);
  world.backend.after = () => undefined;
}

async function fill(world: PostgresWorld, step: number): Promise<void> {
  world.backend.usedBytes = Math.ceil(planLimits.starter.storageBytes * ([0.1, 0.5, 0.81, 0.91, 0.96, 1, 1.2, 0.3][step] ?? 0));
  await new MockActivityEnvironment().run(world.activities.observeServices);
}

async function expire(world: PostgresWorld, { id }: Service): Promise<void> {
  await held.database.pool.query(`update postgres_credential set valid_until = now() - interval '1 second' where service_id = $1 and state = 'previous'`, [id]);
  await new MockActivityEnvironment().run(world.activities.endOverlaps);
}

/** The server is stopped by the idle rule, or has died: nothing but what runs changes, and it is seen or not. */
async function sleep(world: PostgresWorld, { id }: Service, seen: boolean): Promise<void> {
  const instance = world.backend.instances.get(id);
  if (!instance?.running || instance.mode === 'blocked') return;
  const { status } = await world.stateOf(id);
  instance.running = false;
  if (!seen) return;
  await new MockActivityEnvironment().run(world.activities.observeServices);
  const { rows: [row] } = await held.database.pool.query('select status, compute from postgres_service where id = $1', [id]);
  expect(row).toEqual({ status, compute: status === 'available' ? 'idle' : expect.any(String) });
}

/** Somebody connects: the gateway wakes what sleeps and is let in nowhere else. */
function wake(world: PostgresWorld, { id }: Service): void {
  const instance = world.backend.instances.get(id);
  if (instance && !instance.stopped && instance.mode !== 'blocked' && instance.logins.length > 0) instance.running = true;
}

async function read(world: PostgresWorld, { id }: Service): Promise<void> {
  const { status } = await world.stateOf(id);
  const deps = apiDeps(world);
  const caller = callerOf(world.tenant, 'viewer');
  const shown = await getService(deps, caller.project.id, id, { deleted: false }).catch((error: unknown) => error);
  if (status === 'deleted') expect(shown).toMatchObject({ code: 'not_found' });
  else expect(shown).toMatchObject({ id, status });
  const masked = await maskedCredentials(deps, caller, id).catch((error: unknown) => error);
  if (status === 'deleted' || status === 'deleting') expect(masked).toMatchObject({ code: status === 'deleted' ? 'not_found' : 'invalid_state' });
  else expect(masked).toMatchObject({ credentials: { password: '********', revealed: false, ready: ['available', 'updating', 'suspended'].includes(status) } });
}

function apiDeps(world: PostgresWorld): PostgresDeps {
  const config = testConfig('postgres://x/x', { RATE_REVEAL_PER_MINUTE: '10000' });
  return { db: held.database, clock: systemClock, cursors: new Cursors('x'), secrets: world.secrets, limiter: createLimiter(held.database), publicGateway: world.deps.publicGateway, config };
}

/** The trial ends; a run that this accepts is carried on like the others. */
async function trialsEnd(world: PostgresWorld, service: Service): Promise<void> {
  await held.database.pool.query('update postgres_service set trial_expires_at = now() where id = $1 and trial_expires_at is not null', [service.id]);
  await new MockActivityEnvironment().run(world.activities.advanceTrials);
  const { rows: [row] } = await held.database.pool.query(`select s.change, s.generation, o.id as "operationId" from postgres_service s join operation o on o.resource_id = s.id and o.state = 'pending' where s.id = $1`, [service.id]);
  if (row?.change === 'suspend' && service.intents.at(-1)?.run.generation !== row.generation) {
    service.intents.push({ run: { serviceId: service.id, operationId: row.operationId, generation: row.generation }, steps: steps.changePostgres.suspend, undo: ['revertMode'], failed: 'markChangeFailed', done: 0 });
  }
}

async function reveal(world: PostgresWorld, { id }: Service): Promise<void> {
  const { status } = await world.stateOf(id);
  const deps = apiDeps(world);
  const cause = { actor: { kind: 'user', id: 'usr_test', displayName: null }, action: 'x', requestId: null, ip: null } as const;
  const shown = await revealCredentials(deps, { caller: callerOf(world.tenant, 'owner'), serviceId: id, cause }).catch((error: unknown) => error);
  const open: readonly string[] = revealable;
  if (open.includes(status)) expect(shown).toMatchObject({ credentials: { revealed: true, password: expect.stringMatching(/^[\w-]{32}$/) } });
  else expect(shown).toMatchObject({ code: status === 'deleted' ? 'not_found' : 'invalid_state' });
}

const holds: Readonly<Record<string, RegExp>> = {
  provisioning: /^postgres\.(provision|undelete)$/, updating: /^postgres\.(rotate_credentials|change_plan|suspend|resume)$/, deleting: /^postgres\.delete$/,
  available: /^$/, suspended: /^$/, failed: /^$/, deleted: /^$/,
};

async function requireInvariants(world: PostgresWorld, services: readonly Service[], after: Action): Promise<void> {
  const states = await Promise.all(services.map(({ id }) => world.stateOf(id)));
  for (const [index, state] of states.entries()) {
    const { status } = state;
    const id = services[index]?.id ?? '';
    const { rows: [row] } = await held.database.pool.query(`select change, reserved_bytes::float8 as bytes, plan, available_at is not null as used, (select array_agg(state order by state) from postgres_credential c where service_id = s.id and state <> 'destroyed') as credentials,
      (select pending_plan from subscription where resource_id = s.id and status <> 'canceled') as pending from postgres_service s where id = $1`, [id]);
    const open = state.operations.filter((operation) => operation.state === 'pending' || operation.state === 'running').map(({ kind }) => kind);
    expect({ after: after.name, status, open: open.join() }).toEqual({ after: after.name, status, open: expect.stringMatching(holds[status] ?? /^none$/) });
    const paid = status === 'available' || status === 'updating' || status === 'suspended';
    expect({ status, spans: state.openSpans }).toEqual({ status, spans: paid ? 1 : 0 });
    expect({ status, change: row.change !== null, pending: row.pending !== null && row.change !== 'plan' }).toEqual({ status, change: status === 'updating', pending: false });
    if (state.accessOpen) expect(['provisioning', 'available', 'updating']).toContain(status);
    if (status === 'available') expect(state).toMatchObject({ accessOpen: true, instance: true, placed: true });
    if (status === 'suspended') expect(world.backend.instances.get(id)).toMatchObject({ running: false, mode: 'blocked' });
    if (status === 'available' || status === 'suspended') {
      expect(row.credentials.filter((one: string) => one === 'current')).toHaveLength(1);
      expect(row.credentials).not.toContain('pending');
      expect(row.bytes).toBe(Object.values(planLimits).find(({ plan }) => plan === row.plan)?.storageBytes);
    }
    if (status === 'available') await requireLogin(world, id);
    if (status === 'failed' || status === 'deleted') expect(state).toMatchObject({ hasSecret: false, instance: false, accessOpen: false });
    if (status === 'failed') expect(state).toMatchObject({ placed: false, retained: false });
    if (state.retained) expect(['deleting', 'deleted', 'provisioning']).toContain(status);
    if (state.instance) expect(state.placed).toBe(true);
  }
  const statuses: readonly Status[] = counted;
  const pending = (await held.database.pool.query(`select count(*)::int as count from subscription where project_id = $1 and pending_plan is not null and pending_plan <> plan and status <> 'canceled'`, [world.tenant.projectId])).rows[0].count;
  const expected = states.filter(({ status }) => statuses.some((candidate) => candidate === status)).length + pending;
  for (const state of states) expect({ after: after.name, counted: state.counted, services: state.host.services }).toEqual({ after: after.name, counted: expected, services: states.filter(({ placed }) => placed).length });
}

/** The password we would show is the one the server takes. */
async function requireLogin({ backend, secrets }: PostgresWorld, serviceId: string): Promise<void> {
  const shown = (await findCredentials(held.database.prisma, serviceId))?.shown;
  expect(shown?.secretSealed && secrets.open(shown.secretSealed, secretAad(shown))).toMatch(/^[\w-]{32}$/);
  const verifier = backend.instances.get(serviceId)?.logins.find(({ name }) => name === shown?.login)?.verifier;
  expect(verifier).toBe(shown?.verifierSealed && secrets.open(shown.verifierSealed, `${serviceId}|${shown.login}|verifier`));
}

/** Null when it gave way or could not be done yet. */
async function tolerated(work: Promise<unknown>): Promise<{ value: unknown } | null> {
  try {
    return { value: await work };
  } catch (error) {
    if (error instanceof Superseded || (error instanceof Error && ['AppError', 'TryLater', 'ApplicationFailure'].includes(error.name))) return null;
    throw error;
  }
}

function isRun(value: unknown): value is Run {
  return typeof value === 'object' && value !== null && 'operationId' in value && 'generation' in value;
}
