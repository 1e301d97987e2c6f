import fc from 'fast-check';
import { systemClock } from '../../src/core/clock';
import { Cursors } from '../../src/core/cursor';
import { AppError } from '../../src/core/errors';
import { Superseded } from '../../src/core/job-errors';
import { createLimiter } from '../../src/http/rate-limit';
import { revealCredentials } from '../../src/postgres/credentials';
import { counted, revealable, steps, type Status } from '../../src/postgres/state';
import type { Run } from '../../src/postgres/store/runs';
import { withDatabase } from '../support/database';
import { testConfig } from '../support/postgres-api';
import { callerOf, createPostgresWorld, type PostgresWorld } from '../support/postgres-world';

const held = withDatabase();

type Service = { run: Run; done: number; removal: Run | null; removed: number; retain: boolean };
type Action = { name: 'create' | 'advance' | 'repeat' | 'late' | 'undo' | 'reveal' | 'remove' | 'purge' | 'crash'; pick: number; step: number };

const action = fc.record<Action>({
  name: fc.constantFrom('create', 'create', 'advance', 'advance', 'advance', 'advance', 'repeat', 'late', 'undo', 'undo', 'reveal', 'remove', 'remove', 'purge', 'crash'),
  pick: fc.nat(), step: fc.nat({ max: steps.provisionPostgres.length - 1 }),
});

test('any sequence of creating, working, repeating, coming late, undoing, revealing and deleting keeps every promise', async () => {
  await fc.assert(fc.asyncProperty(fc.array(action, { minLength: 20, maxLength: 40, size: 'max' }), async (actions) => {
    const world = await createPostgresWorld(held.database);
    const services: Service[] = [];
    for (const next of actions) {
      await perform(world, services, next);
      await requireInvariants(world, services);
    }
  }), { numRuns: 30 });
}, 240_000);

async function perform(world: PostgresWorld, services: Service[], { name, pick, step }: Action): Promise<void> {
  const service = services[pick % Math.max(1, services.length)];
  if (name === 'create') return create(world, services);
  if (!service) return;
  switch (name) {
    case 'advance': return advance(world, service);
    case 'repeat': return void await tolerated(world.activities[steps.provisionPostgres[Math.max(0, service.done - 1)] ?? 'ensurePlacement'](service.run));
    case 'late': return void await tolerated(world.activities[steps.provisionPostgres[step] ?? 'ensurePlacement'](service.run));
    case 'undo': return undo(world, service);
    case 'reveal': return reveal(world, service);
    case 'remove': return remove(world, service, false);
    case 'purge': return remove(world, service, true);
    case 'crash': return crash(world, service);
  }
}

async function create(world: PostgresWorld, services: Service[]): Promise<void> {
  const run = await world.create(services.length % 3 === 2 ? 'trial' : 'starter').catch((error: unknown) => error);
  if (run instanceof AppError) expect(['plan_limit_reached', 'trial_already_used']).toContain(run.code);
  else if (isRun(run)) services.push({ run, done: 0, removal: null, removed: 0, retain: false });
  else throw run;
}

/** One step further: of the deletion when there is one, else of provisioning. */
async function advance(world: PostgresWorld, service: Service): Promise<void> {
  const { removal } = service;
  if (!removal) {
    const step = steps.provisionPostgres[service.done];
    if (step && await tolerated(world.activities[step](service.run))) service.done += 1;
    return;
  }
  const order = ['blockAccess', service.retain ? 'retainInstance' : 'destroyInstance', 'destroyCredentials', 'markDeleted'] as const;
  const step = order[service.removed];
  if (!step) return;
  const result = await world.activities[step](removal);
  if (typeof result === 'object' && 'retain' in result) service.retain = result.retain;
  service.removed += 1;
}

async function undo({ activities }: PostgresWorld, { run }: Service): Promise<void> {
  for (const name of ['destroyCredentials', 'destroyInstance', 'releasePlacement'] as const) if (!await tolerated(activities[name](run))) return;
  await tolerated(activities.markProvisionFailed({ ...run, failure: { code: 'backend_error', message: 'undone', cancelled: false } }));
}

/** A call of the host takes effect and its answer is lost. */
async function crash(world: PostgresWorld, service: Service): Promise<void> {
  world.backend.after = () => { throw new Error('the answer was lost'); };
  await advance(world, service).catch(() => undefined);
  world.backend.after = () => undefined;
}

async function remove(world: PostgresWorld, service: Service, purge: boolean): Promise<void> {
  const removal = await world.remove(service.run.serviceId, { purge }).catch((error: unknown) => error);
  if (isRun(removal)) {
    if (service.removal) expect(removal).toEqual(service.removal);
    service.removal = removal;
  } else if (!(removal instanceof AppError && removal.code === 'not_found') && !(removal instanceof Error && removal.message.includes('nothing to follow'))) throw removal;
}

async function reveal(world: PostgresWorld, { run }: Service): Promise<void> {
  const { status } = await world.stateOf(run.serviceId);
  const config = testConfig('postgres://x/x', { RATE_REVEAL_PER_MINUTE: '10000' });
  const deps = { db: held.database, clock: systemClock, cursors: new Cursors('x'), secrets: world.secrets, limiter: createLimiter(held.database), publicGateway: world.deps.publicGateway, config };
  const cause = { actor: { kind: 'user', id: 'usr_test', displayName: null }, action: 'x', requestId: null, ip: null } as const;
  const shown = await revealCredentials(deps, { caller: callerOf(world.tenant, 'owner'), serviceId: run.serviceId, cause }).catch((error: unknown) => error);
  const open: readonly string[] = revealable;
  if (open.includes(status)) expect(shown).toMatchObject({ credentials: { revealed: true, password: expect.stringMatching(/^[\w-]{32}$/) } });
  else expect(shown).toMatchObject({ code: status === 'deleted' ? 'not_found' : 'invalid_state' });
}

async function requireInvariants(world: PostgresWorld, services: readonly Service[]): Promise<void> {
  const states = await Promise.all(services.map(({ run }) => world.stateOf(run.serviceId)));
  for (const state of states) {
    const open = state.operations.filter((operation) => operation.state === 'pending' || operation.state === 'running');
    const { status } = state;
    expect({ status, open: open.map(({ kind }) => kind) }).toEqual({ status, open: status === 'provisioning' ? ['postgres.provision'] : status === 'deleting' ? ['postgres.delete'] : [] });
    expect({ status, spans: state.openSpans }).toEqual({ status, spans: status === 'available' ? 1 : 0 });
    if (state.accessOpen) expect(['provisioning', 'available']).toContain(status);
    if (status === 'failed' || status === 'deleted') expect(state).toMatchObject({ hasSecret: false, instance: false, accessOpen: false });
    if (status === 'failed') expect(state).toMatchObject({ placed: false, retained: false });
    if (state.retained) expect(['deleting', 'deleted']).toContain(status);
    if (state.instance) expect(state.placed).toBe(true);
  }
  const statuses: readonly Status[] = counted;
  const expected = states.filter(({ status }) => statuses.some((candidate) => candidate === status)).length;
  for (const state of states) expect({ counted: state.counted, services: state.host.services }).toEqual({ counted: expected, services: states.filter(({ placed }) => placed).length });
}

/** True when it was done; false when it gave way or could not be done yet. */
async function tolerated(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof Superseded || (error instanceof Error && ['AppError', 'TryLater', 'ApplicationFailure'].includes(error.name))) return false;
    throw error;
  }
}

function isRun(value: unknown): value is Run {
  return typeof value === 'object' && value !== null && 'operationId' in value && 'generation' in value;
}
