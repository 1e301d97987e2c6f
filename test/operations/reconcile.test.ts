import { newId } from '../../src/core/ids';
import { execute, rows } from '../../src/db/client';
import type { Alert } from '../../src/operations/alerts';
import { attendOverdue, reconcile, type OverdueWork, type ReconcileRule } from '../../src/operations/reconcile';
import { openOperation, settleOperation, startStep } from '../../src/operations/store';
import { postgresReconcileRule } from '../../src/postgres/reconcile';
import { acceptOperation, silent, temporalOf } from '../support/accepted-work';
import { withDatabase } from '../support/database';
import { createPostgresWorld, type PostgresWorld } from '../support/postgres-world';
import { withTemporal } from '../support/temporal';

const db = withDatabase();
const server = withTemporal();

afterEach(() => execute(db.database.prisma, 'delete from operation'));

/** As if it had been accepted `minutes` ago and started then. */
const age = (id: string, minutes: number) => execute(db.database.prisma,
  `update operation set created_at = now() - $2::int * interval '1 minute', dispatched_at = now() where id = $1`, id, minutes);
const handleOf = (workflowId: string | null) => server.environment.client.workflow.getHandle(workflowId ?? '');
const statusOf = (workflowId: string | null) => handleOf(workflowId).describe().then(({ status }) => status.name, () => 'missing');

async function runReconcile(rules: readonly ReconcileRule[] = []) {
  const alerts: Alert[] = [];
  const temporal = temporalOf(server);
  try {
    const found = await reconcile({ database: db.database, temporal, log: silent, rules, alerts: { raise: (_tx, alert) => void alerts.push(alert) } });
    return { ...found, alerts };
  } finally {
    await temporal.close();
  }
}

test('open work whose run is missing is started again', async () => {
  const operation = await acceptOperation(db.database);
  await age(operation.id, 3);
  expect(await runReconcile()).toMatchObject({ restarted: 1 });
  expect(await statusOf(operation.workflowId)).toBe('RUNNING');
  expect(await rows(db.database.prisma, 'select attempts from operation where id = $1', operation.id)).toEqual([{ attempts: 1 }]);
});

test('running work whose run was terminated is started again', async () => {
  const operation = await acceptOperation(db.database);
  await startStep(db.database, operation.id, 'ensurePlacement');
  await age(operation.id, 3);
  await runReconcile();
  await handleOf(operation.workflowId).terminate('by the test');
  expect(await runReconcile()).toMatchObject({ restarted: 1 });
  expect(await statusOf(operation.workflowId)).toBe('RUNNING');
});

test('work whose run is under way, young work and settled work are left alone', async () => {
  const [running, young, settled] = [await acceptOperation(db.database), await acceptOperation(db.database), await acceptOperation(db.database)];
  await age(running.id, 3);
  await runReconcile();
  await age(settled.id, 3);
  await settleOperation(db.database.prisma, settled.id, 'succeeded');
  expect(await runReconcile()).toMatchObject({ restarted: 0, overdue: 0 });
  expect(await statusOf(young.workflowId)).toBe('missing');
  expect(await statusOf(settled.workflowId)).toBe('missing');
});

test('work open for an hour is raised as an alert, once', async () => {
  const operation = await acceptOperation(db.database);
  await age(operation.id, 61);
  const { alerts } = await runReconcile();
  expect(alerts).toEqual([expect.objectContaining({ action: 'overdueWork', by: 'operation', orgId: operation.orgId, target: { type: 'operation', id: operation.id } })]);
  expect((await runReconcile()).alerts).toEqual([]);
});

test('a missed deadline of a product is raised once; a new deadline that is missed too, again', async () => {
  const work: OverdueWork = { orgId: newId('org'), projectId: null, target: { type: 'postgresService', id: newId('pg') }, status: 'provisioning', deadlineAt: new Date(Date.now() - 1_000) };
  const rule = (deadlineAt: Date): ReconcileRule => ({ name: 'postgres-service', findOverdue: async () => [{ ...work, deadlineAt }] });
  expect((await runReconcile([rule(work.deadlineAt)])).alerts).toHaveLength(1);
  expect((await runReconcile([rule(work.deadlineAt)])).alerts).toHaveLength(0);
  expect((await runReconcile([rule(new Date())])).alerts).toHaveLength(1);
});

test('a transitional row that lost its operation gets a new one, and that is started', async () => {
  const resourceId = newId('pg');
  const rule: ReconcileRule = {
    name: 'postgres-service',
    findOverdue: async () => [],
    reopen: async (tx) => [await openOperation(tx, {
      orgId: newId('org'), projectId: null, kind: 'postgres.delete', resourceId, summary: 'Delete it', requestId: null,
      start: { workflow: 'deletePostgres', workflowId: `postgres-delete/${resourceId}`, queue: 'postgres', payload: { serviceId: resourceId } },
    })],
  };
  expect(await runReconcile([rule])).toMatchObject({ restarted: 1 });
  expect(await statusOf(`postgres-delete/${resourceId}`)).toBe('RUNNING');
});

test('one start that is refused does not keep the others from theirs', async () => {
  const refused = await acceptOperation(db.database);
  const good = await acceptOperation(db.database);
  await execute(db.database.prisma, `update operation set summary = repeat('x', 3000000) where id = $1`, refused.id);
  for (const { id } of [refused, good]) await age(id, 3);
  expect(await runReconcile()).toMatchObject({ restarted: 1 });
  expect(await statusOf(good.workflowId)).toBe('RUNNING');
});

const intents: readonly [string, (world: PostgresWorld) => Promise<string>][] = [
  ['provisioning', async (world) => (await world.create()).serviceId],
  ['updating', async (world) => (await world.change(await world.available(), 'rotate')).serviceId],
  ['provisioning again', async (world) => (await world.undelete(await world.deleted())).serviceId],
  ['deleting', async (world) => (await world.remove(await world.available())).serviceId],
];

test.each(intents)('a Postgres service that is %s past its deadline without a run is raised once and has one again', async (_, begin) => {
  const serviceId = await begin(await createPostgresWorld(db.database));
  await execute(db.database.prisma, `update postgres_service set deadline_at = now() - interval '1 second' where id = $1`, serviceId);
  const alerts: Alert[] = [];
  const temporal = temporalOf(server);
  const attend = () => attendOverdue({ database: db.database, temporal, log: silent, alerts: { raise: (_tx, alert) => void alerts.push(alert) } }, postgresReconcileRule);
  try {
    expect((await attend()).restarted).toBeGreaterThanOrEqual(1);
    const [operation] = await rows<{ workflowId: string }>(db.database.prisma, `select workflow_id as "workflowId" from operation where resource_id = $1 and state = 'pending'`, serviceId);
    expect(await statusOf(operation?.workflowId ?? null)).toBe('RUNNING');
    expect(await attend()).toEqual({ restarted: 0, overdue: 0 });
    expect(alerts).toEqual([expect.objectContaining({ action: 'overdueWork', by: 'postgres-service', target: { type: 'postgresService', id: serviceId } })]);
  } finally {
    await temporal.close();
    await execute(db.database.prisma, 'update postgres_service set deadline_at = now() + interval \'1 hour\' where deadline_at is not null');
  }
});
