import { MockActivityEnvironment } from '@temporalio/testing';
import { pino } from 'pino';
import { activityInterceptor } from '../../activities/steps';
import { inTransaction } from '../../src/db/transaction';
import { requestBackup, startDueBackups, type BackupRun } from '../../src/postgres/backups';
import { restoreService } from '../../src/postgres/restore';
import { steps } from '../../src/postgres/state';
import { recordArchived } from '../../src/postgres/store/backups';
import type { Run } from '../../src/postgres/store/runs';
import { withDatabase } from '../support/database';
import { callerOf, createPostgresWorld, type PostgresWorld } from '../support/postgres-world';
import { withTemporal } from '../support/temporal';
import { torture, type World } from '../support/torture';
import { withWorkflowLab } from '../support/workflow-lab';

const held = withDatabase();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: held.database, log: pino({ level: 'silent' }) }) });
const beside = <T>(activity: () => Promise<T>): Promise<T> => new MockActivityEnvironment().run(activity);
const cause = { actor: { kind: 'user', id: 'usr_test', displayName: 'A' }, action: 'test', requestId: null, ip: null } as const;

async function available(world: PostgresWorld): Promise<string> {
  const run = await world.create();
  await world.activities.provisionFromPool(run);
  return run.serviceId;
}

async function accepted(world: PostgresWorld, serviceId: string): Promise<BackupRun> {
  return inTransaction(world.database, async (tx) => {
    const { backup, operation } = await requestBackup(tx, { caller: callerOf(world.tenant, 'owner'), serviceId, cause });
    return { serviceId, backupId: backup.id, operationId: operation.id, generation: 1 };
  });
}

async function backedUp(world: PostgresWorld): Promise<BackupRun> {
  const run = await accepted(world, await available(world));
  await world.activities.markBackupComplete({ ...run, taken: await world.activities.ensureBackup(run) });
  return run;
}

function restoring(world: PostgresWorld, serviceId: string, body: object = {}): Promise<Run> {
  return inTransaction(world.database, async (tx) => {
    const { service, operation } = await restoreService(tx, { caller: callerOf(world.tenant, 'owner'), serviceId, body, cause });
    return { serviceId: service.id, operationId: operation.id, generation: 1 };
  });
}

async function backupsOf({ database }: PostgresWorld, serviceId: string) {
  const { rows } = await database.pool.query(`select b.status, b.kind, (select state from operation o where o.resource_id = b.service_id and o.kind = 'postgres.backup' order by created_at desc limit 1) as operation,
    s.earliest_restore_at is not null as "window" from postgres_backup b join postgres_service s on s.id = b.service_id where b.service_id = $1 order by b.started_at`, [serviceId]);
  return rows;
}

describe('backupPostgres', () => {
  test('whatever happens at any step, it is complete, or failed with nothing left of it; the service serves on', async () => {
    const called = await torture(lab, {
      workflow: 'backupPostgres',
      withoutEnd: ['markBackupComplete'],
      begin: async (): Promise<World> => {
        const world = await createPostgresWorld(held.database);
        const run = await accepted(world, await available(world));
        return {
          input: run, activities: world.activities,
          verify: async ({ end }) => {
            const [backup] = await backupsOf(world, run.serviceId);
            const there = world.backend.backups.has(`${run.serviceId}/${run.backupId}`);
            if (backup.status === 'complete') expect({ ...backup, there }).toEqual({ status: 'complete', kind: 'manual', operation: 'succeeded', window: true, there: true });
            else expect({ ...backup, there }).toEqual({ status: 'failed', kind: 'manual', operation: end === 'cancelled' ? 'cancelled' : 'failed', window: false, there: false });
            if (end === 'completed') expect(backup.status).toBe('complete');
            expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'available', accessOpen: true, instance: true });
          },
        };
      },
    });
    expect(called).toEqual(steps.backupPostgres);
  }, 240_000);

  test.each(steps.backupPostgres.flatMap((step) => [['before', step], ['after', step]] as const))('a DELETE %s the effect of %s wins', async (when, step) => {
    const world = await createPostgresWorld(held.database);
    const run = await accepted(world, await available(world));
    const removals: Promise<unknown>[] = [];
    await lab.run({
      workflow: 'backupPostgres', input: run, activities: world.activities,
      interfere: async ({ name }, activity) => {
        const result = when === 'after' ? await activity() : undefined;
        if (name === step && removals.length === 0) {
          const removal = await world.remove(run.serviceId);
          removals.push(lab.run({ workflow: 'deletePostgres', input: removal, activities: world.activities }));
          await removals[0];
        }
        return when === 'after' ? result : activity();
      },
    });
    expect(await Promise.all(removals)).toMatchObject([{ end: 'completed', result: 'done' }]);
    expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'deleted', instance: false, retained: true });
    const late = when === 'after' && step === 'markBackupComplete';
    if (!late) expect(world.cancelled).toContain(`postgres-backup/${run.backupId}`);
    expect((await world.stateOf(run.serviceId)).operations.map(({ kind, state }) => ({ kind, state }))).toContainEqual({ kind: 'postgres.backup', state: late ? 'succeeded' : 'cancelled' });
    expect((await backupsOf(world, run.serviceId)).map(({ status, kind }) => ({ status, kind }))).toContainEqual({ status: 'complete', kind: 'final' });
  }, 60_000);
});

describe('restorePostgres from a backup', () => {
  test('whatever happens at any step, it is available, or failed with nothing left; its source is as it was', async () => {
    const called = await torture(lab, {
      workflow: 'restorePostgres',
      withoutEnd: ['markAvailable'],
      begin: async (): Promise<World> => {
        const world = await createPostgresWorld(held.database);
        const source = await backedUp(world);
        const run = await restoring(world, source.serviceId);
        return {
          input: { ...run, source: 'backup', seconds: 60 }, activities: world.activities,
          verify: async ({ end }) => {
            const state = await world.stateOf(run.serviceId);
            if (state.status === 'available') {
              expect(state).toMatchObject({ placed: true, hasSecret: true, accessOpen: true, instance: true, openSpans: 1, counted: 2, operations: [{ kind: 'postgres.restore', state: 'succeeded' }] });
              expect(world.backend.instances.get(run.serviceId)?.systemId).toBe(world.backend.instances.get(source.serviceId)?.systemId);
            } else {
              expect(state).toMatchObject({
                status: 'failed', placed: false, credential: 'destroyed', hasSecret: false, host: { services: 1 }, instance: false, retained: false, accessOpen: false, openSpans: 0, counted: 1, phase: null,
                operations: [{ state: end === 'cancelled' ? 'cancelled' : 'failed' }],
              });
            }
            if (end === 'completed') expect(state.status).toBe('available');
            expect(await world.stateOf(source.serviceId)).toMatchObject({ status: 'available', accessOpen: true, instance: true });
          },
        };
      },
    });
    expect(called).toEqual(steps.restorePostgres);
  }, 240_000);

  test.each(steps.restorePostgres.flatMap((step) => [['before', step], ['after', step]] as const))('a DELETE %s the effect of %s wins: nothing of the new service is left, its source is as it was', async (when, step) => {
    const world = await createPostgresWorld(held.database);
    const source = await backedUp(world);
    const run = await restoring(world, source.serviceId);
    const removals: Promise<unknown>[] = [];
    await lab.run({
      workflow: 'restorePostgres', input: { ...run, source: 'backup', seconds: 60 }, activities: world.activities,
      interfere: async ({ name }, activity) => {
        const result = when === 'after' ? await activity() : undefined;
        if (name === step && removals.length === 0) removals.push(lab.run({ workflow: 'deletePostgres', input: await world.remove(run.serviceId), activities: world.activities }));
        return when === 'after' ? result : activity();
      },
    });
    expect(await Promise.all(removals)).toMatchObject([{ end: 'completed', result: 'done' }]);
    const retained = when === 'after' && step === 'markAvailable';
    expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'deleted', instance: false, retained, placed: retained, hasSecret: false, accessOpen: false, openSpans: 0, counted: 1, host: { services: retained ? 2 : 1 } });
    expect(await world.stateOf(source.serviceId)).toMatchObject({ status: 'available', accessOpen: true, instance: true });
  }, 60_000);

  test('a backup that is gone ends as restore_unavailable, and a retry begins with it again', async () => {
    const world = await createPostgresWorld(held.database);
    const source = await backedUp(world);
    const run = await restoring(world, source.serviceId, { backupId: source.backupId });
    world.backend.backups.clear();
    expect(await lab.run({ workflow: 'restorePostgres', input: { ...run, source: 'backup', seconds: 60 }, activities: world.activities })).toMatchObject({ end: 'failed', code: 'restore_unavailable' });
    expect(await world.stateOf(run.serviceId)).toMatchObject({ status: 'failed', statusReason: 'backend_error', operations: [{ errorCode: 'restore_unavailable' }] });
  }, 60_000);
});

test('the daily backup is accepted once, the first at once, the next only after something was written; each once its time has come goes', async () => {
  const world = await createPostgresWorld(held.database);
  const serviceId = await available(world);
  const others = new Set((await held.database.pool.query('select id from postgres_service where id <> $1', [serviceId])).rows.map(({ id }) => id));
  await held.database.pool.query(`update postgres_service set status = 'suspended', status_reason = 'user', suspended_at = now(), access_open = false where id = any($1) and status = 'available'`, [[...others]]);
  const due = () => startDueBackups({ db: held.database }, () => undefined);
  expect(await due()).toBe(1);
  expect(await due()).toBe(0);
  const { rows: [{ payload }] } = await held.database.pool.query(`select payload from operation where resource_id = $1 and kind = 'postgres.backup'`, [serviceId]);
  await world.activities.markBackupComplete({ ...payload, taken: await world.activities.ensureBackup(payload) });
  const age = (days: number) => held.database.pool.query(`update postgres_backup set started_at = started_at - $2::int * interval '1 day', completed_at = completed_at - $2::int * interval '1 day',
    restore_from = restore_from - $2::int * interval '1 day', expires_at = expires_at - $2::int * interval '1 day' where service_id = $1`, [serviceId, days]);
  expect(await due()).toBe(0);
  await age(2);
  expect(await due()).toBe(0);
  await recordArchived(held.database.prisma, serviceId, new Date().toISOString());
  expect(await due()).toBe(1);
  const { rows: [next] } = await held.database.pool.query(`select payload from operation where resource_id = $1 and kind = 'postgres.backup' and state in ('pending', 'running')`, [serviceId]);
  await world.activities.markBackupComplete({ ...next.payload, taken: await world.activities.ensureBackup(next.payload) });
  await age(2);
  expect(await beside(world.activities.expireBackups)).toEqual({ expired: 0, left: 0 });
  await age(2);
  const silent = jest.spyOn(world.backend, 'dropBackup').mockRejectedValueOnce(new Error('The host does not answer.'));
  expect(await beside(world.activities.expireBackups)).toEqual({ expired: 0, left: 1 });
  expect([...world.backend.backups.keys()]).toHaveLength(2);
  silent.mockRestore();
  expect(await beside(world.activities.expireBackups)).toEqual({ expired: 1, left: 0 });
  expect((await backupsOf(world, serviceId)).map(({ status }) => status)).toEqual(['expired', 'complete']);
  expect([...world.backend.backups.keys()]).toEqual([`${serviceId}/${next.payload.backupId}`]);
  expect(await beside(world.activities.expireBackups)).toEqual({ expired: 0, left: 0 });
}, 60_000);

test('a drill proves a backup or alerts; an instance without a row is retained after an hour and told', async () => {
  const world = await createPostgresWorld(held.database);
  const { serviceId, backupId } = await backedUp(world);
  await held.database.pool.query(`update postgres_backup set status = 'expired' where id <> $1 and status = 'complete'`, [backupId]);
  expect(await beside(world.activities.drillBackup)).toEqual({ backupId, verified: true, tables: 1 });
  const verified = async () => (await held.database.pool.query('select verified_at from postgres_backup where id = $1', [backupId])).rows[0].verified_at;
  const first = await verified();
  expect(first).not.toBeNull();
  world.backend.backups.clear();
  expect(await beside(world.activities.drillBackup)).toMatchObject({ verified: false });
  expect(await verified()).toEqual(first);
  expect(world.alerts).toEqual([expect.objectContaining({ action: 'failedDrill', target: { type: 'postgresBackup', id: backupId } })]);

  const { rows: [host] } = await held.database.pool.query('select host_id from postgres_service where id = $1', [serviceId]);
  await held.database.pool.query(`update postgres_host set state = 'down' where name <> $1`, [host.host_id]);
  expect(await beside(world.activities.reviewInventory)).toEqual({ strays: 0, removed: 0 });
  const stray = await available(world);
  await held.database.pool.query(`update postgres_service set host_id = null, instance_ref = null, reserved_bytes = 0 where id = $1`, [stray]);
  expect(await beside(world.activities.reviewInventory)).toEqual({ strays: 1, removed: 0 });
  expect(world.backend.instances.has(stray)).toBe(true);
  await held.database.pool.query(`update postgres_stray set first_seen_at = first_seen_at - interval '61 minutes'`);
  expect(await beside(world.activities.reviewInventory)).toEqual({ strays: 1, removed: 1 });
  expect({ instance: world.backend.instances.has(stray), retained: world.backend.retained.has(stray) }).toEqual({ instance: false, retained: true });
  expect(world.alerts.at(-1)).toMatchObject({ action: 'strayInstance', target: { type: 'postgresService', id: stray } });
  expect(await beside(world.activities.reviewInventory)).toEqual({ strays: 0, removed: 0 });
}, 60_000);
