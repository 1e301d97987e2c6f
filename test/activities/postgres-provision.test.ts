import { ApplicationFailure } from '@temporalio/common';
import { AppError } from '../../src/core/errors';
import { Superseded, TryLater } from '../../src/core/job-errors';
import { planLimits, scramVerifier } from '../../src/postgres/rules';
import { secretAad } from '../../src/postgres/store/credentials';
import { registerHost } from '../../src/postgres/store/hosts';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';

const held = withDatabase();
let world: PostgresWorld;

beforeEach(async () => {
  world = await createPostgresWorld(held.database);
});

const steps = ['ensurePlacement', 'ensureInstance', 'ensureAccess', 'verifyAccess', 'markAvailable'] as const;
const failure = { code: 'no_capacity', message: 'full', cancelled: false } as const;
const nothing = {
  placed: false, credential: 'destroyed', hasSecret: false, host: { services: 0, reservedBytes: 0 }, instance: false, retained: false, accessOpen: false, openSpans: 0, counted: 0,
};

async function secretOf({ serviceId }: { serviceId: string }) {
  const { rows: [row] } = await held.database.pool.query('select login, version, secret_sealed as "secretSealed", verifier_sealed as "verifierSealed" from postgres_credential where service_id = $1', [serviceId]);
  return row;
}

test('each step twice leaves what once leaves', async () => {
  const run = await world.create();
  for (const step of steps) {
    await world.activities[step](run);
    const once = await world.stateOf(run.serviceId);
    const secret = await secretOf(run);
    if (step === 'markAvailable') await world.activities[step](run);
    else await expect(world.activities[step](run)).resolves.toBeUndefined();
    expect(await world.stateOf(run.serviceId)).toEqual(step === 'ensureInstance' ? { ...once, phase: 'starting' } : once);
    expect(await secretOf(run)).toEqual(secret);
  }
  expect(await world.stateOf(run.serviceId)).toEqual({
    status: 'available', statusReason: null, phase: null, accessOpen: true, placed: true, credential: 'current', hasSecret: true,
    operations: [{ kind: 'postgres.provision', state: 'succeeded', errorCode: null }], subscription: 'active', openSpans: 1, counted: 1,
    host: { services: 1, reservedBytes: planLimits.starter.storageBytes }, instance: true, retained: false,
  });
});

test('the first step sets the deadline, later ones keep it', async () => {
  const run = await world.create();
  await world.activities.ensurePlacement(run);
  const deadline = async () => (await held.database.pool.query(`select deadline_at, deadline_at - now() between interval '100 seconds' and interval '120 seconds' as near from postgres_service where id = $1`, [run.serviceId])).rows[0];
  const first = await deadline();
  expect(first.near).toBe(true);
  await world.activities.ensureInstance(run);
  expect((await deadline()).deadline_at).toEqual(first.deadline_at);
});

test('the server is sent the verifier of the password that is stored, and never the password', async () => {
  const run = await world.create();
  for (const step of steps.slice(0, 3)) await world.activities[step](run);
  const row = await secretOf(run);
  const password = world.secrets.open(row.secretSealed, secretAad({ serviceId: run.serviceId, ...row }));
  const [login] = world.backend.instances.get(run.serviceId)?.logins ?? [];
  const salt = Buffer.from(/\$4096:([^$]+)\$/.exec(login?.verifier ?? '')?.[1] ?? '', 'base64');
  expect(login).toEqual({ name: row.login, verifier: scramVerifier(password, salt), connectionLimit: 20, validUntil: null, enabled: true });
  expect(password).toMatch(/^[A-Za-z0-9_-]{32}$/);
});

test('the password is stored before the server hears of its verifier, and a repeat sends the same', async () => {
  const run = await world.create();
  await world.activities.ensurePlacement(run);
  await world.activities.ensureInstance(run);
  const stored: unknown[] = [];
  world.backend.before = async ({ method }) => {
    if (method !== 'ensureAccess') return;
    stored.push((await secretOf(run)).secretSealed);
    if (stored.length === 1) throw new Error('the host died');
  };
  await expect(world.activities.ensureAccess(run)).rejects.toThrow(TryLater);
  await world.activities.ensureAccess(run);
  expect(stored[0]).not.toBeNull();
  expect(stored[1]).toBe(stored[0]);
});

test('access is proven as the customer at the public address, unless the pool has proven it within a day', async () => {
  const run = await world.create();
  for (const step of steps.slice(0, 3)) await world.activities[step](run);
  await world.activities.verifyAccess(run);
  expect(world.customer.logins).toEqual([expect.objectContaining({ host: 'localhost', port: 6432, database: 'app', user: (await secretOf(run)).login, caCertificate: expect.stringContaining('CERTIFICATE') })]);
  world.backend.provenAt = new Date(Date.now() - 2 * 86_400_000).toISOString();
  await world.activities.verifyAccess(run);
  expect(world.customer.logins).toHaveLength(2);
  world.backend.provenAt = new Date().toISOString();
  await world.activities.verifyAccess(run);
  expect(world.customer.logins).toHaveLength(2);
  const instance = world.backend.instances.get(run.serviceId);
  instance?.logins.splice(0, 1, { ...instance.logins[0], name: 'other', verifier: 'x', connectionLimit: 1, validUntil: null, enabled: true });
  await world.activities.verifyAccess(run);
  expect(world.customer.logins).toHaveLength(3);
});

test('a login that is refused is tried again, under its own code', async () => {
  const run = await world.create();
  for (const step of steps.slice(0, 3)) await world.activities[step](run);
  world.customer.before = () => { throw new AppError('verification_failed', 'no'); };
  const error = await world.activities.verifyAccess(run).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ApplicationFailure);
  expect(error).toMatchObject({ type: 'verification_failed', nonRetryable: false });
});

test('eight placements at once all find the one host', async () => {
  const plans = ['trial', 'trial', 'starter', 'starter', 'starter', 'launch', 'launch', 'launch'] as const;
  const runs = await Promise.all(plans.map((plan) => world.create(plan)));
  await Promise.all(runs.map((run) => world.activities.ensurePlacement(run)));
  const { rows: [host] } = await held.database.pool.query('select services, reserved_bytes::float8 as bytes from postgres_host where region = $1', [world.region]);
  expect(host).toEqual({ services: 8, bytes: plans.reduce((sum, plan) => sum + planLimits[plan].storageBytes, 0) });
});

test('no room anywhere refuses for good and reserves nothing', async () => {
  const small = await createPostgresWorld(held.database, { capacityBytes: 1024 });
  const run = await small.create();
  await expect(small.activities.ensurePlacement(run)).rejects.toMatchObject({ code: 'no_capacity' });
  expect(await small.stateOf(run.serviceId)).toMatchObject({ placed: false, host: { services: 0, reservedBytes: 0 } });
});

test('a host that refuses is passed over for the next', async () => {
  await registerHost(held.database.prisma, { name: `second-${world.region}`, region: world.region, backend: 'embedded', capacityBytes: 10 ** 12, maxServices: 10 });
  const run = await world.create();
  let refusals = 0;
  world.backend.before = ({ method }) => {
    if (method === 'place' && refusals++ === 0) throw new AppError('no_capacity', 'full');
  };
  await world.activities.ensurePlacement(run);
  const { rows } = await held.database.pool.query('select services from postgres_host where region = $1 order by services', [world.region]);
  expect(rows).toEqual([{ services: 0 }, { services: 1 }]);
});

test.each(steps)('%s gives way to a newer intent without touching anything', async (step) => {
  const run = await world.create();
  for (const before of steps.slice(0, steps.indexOf(step))) await world.activities[before](run);
  await world.remove(run.serviceId);
  const state = await world.stateOf(run.serviceId);
  const calls = world.backend.calls.length;
  await expect(world.activities[step](run)).rejects.toThrow(Superseded);
  expect(await world.stateOf(run.serviceId)).toEqual(state);
  expect(world.backend.calls).toHaveLength(calls);
});

test('a call that is under way when the deletion is accepted meets the fence, not the database', async () => {
  const run = await world.create();
  await world.activities.ensurePlacement(run);
  world.backend.before = async ({ method }) => {
    if (method === 'ensureInstance') await world.activities.blockAccess(await world.remove(run.serviceId));
  };
  await expect(world.activities.ensureInstance(run)).rejects.toThrow(Superseded);
  expect(world.backend.instances.get(run.serviceId)?.running).toBe(false);
});

test('undone twice nothing is left, and a late call of the undone run brings nothing back', async () => {
  const run = await world.create();
  for (const step of steps.slice(0, 4)) await world.activities[step](run);
  for (let times = 0; times < 2; times++) {
    await world.activities.destroyCredentials(run);
    await world.activities.destroyInstance(run);
    await world.activities.releasePlacement(run);
    await world.activities.markProvisionFailed({ ...run, failure });
    expect(await world.stateOf(run.serviceId)).toMatchObject({
      ...nothing, status: 'failed', statusReason: 'no_capacity', phase: null, subscription: 'canceled', operations: [{ kind: 'postgres.provision', state: 'failed', errorCode: 'no_capacity' }],
    });
  }
  const late = { serviceId: run.serviceId, generation: run.generation, hostId: 'x', instanceRef: null, version: '18', names: { label: '', key: '', owner: '', logins: ['', ''] as const, restricted: '', database: '' }, limits: planLimits.starter };
  await expect(world.backend.ensureInstance(late)).rejects.toMatchObject({ code: 'stale_generation' });
});

test('what is available is never undone', async () => {
  const run = await world.create();
  for (const step of steps) await world.activities[step](run);
  const state = await world.stateOf(run.serviceId);
  for (const undo of ['destroyCredentials', 'destroyInstance', 'releasePlacement'] as const) await expect(world.activities[undo](run)).rejects.toThrow(Superseded);
  await expect(world.activities.markProvisionFailed({ ...run, failure })).rejects.toThrow(Superseded);
  expect(await world.stateOf(run.serviceId)).toEqual(state);
});

test('a fence that is ahead of our own generation ends the job instead of repeating it for ever', async () => {
  const run = await world.create();
  await world.activities.ensurePlacement(run);
  world.backend.fences.set(run.serviceId, 9);
  await expect(world.activities.ensureInstance(run)).rejects.toMatchObject({ code: 'backend_error' });
});

test('the fast path does all of it, or says cold and leaves the rest to the steps', async () => {
  const run = await world.create();
  expect(await world.activities.provisionFromPool(run)).toBe('available');
  expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'available', operations: [{ state: 'succeeded' }] });
  const other = await world.create();
  world.backend.before = ({ method, serviceId }) => {
    if (method === 'ensureAccess' && serviceId === other.serviceId) throw new Error('gone');
  };
  expect(await world.activities.provisionFromPool(other)).toBe('cold');
  world.backend.before = () => undefined;
  for (const step of steps) await world.activities[step](other);
  expect(await world.stateOf(other.serviceId)).toMatchObject({ status: 'available', host: { services: 2 } });
});
