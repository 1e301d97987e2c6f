import { MockActivityEnvironment } from '@temporalio/testing';
import { createSystemActivities } from '../../activities/system';
import { newId } from '../../src/core/ids';
import { execute, rows } from '../../src/db/client';
import { appendAudit } from '../../src/identity/service';
import { createAlerts } from '../../src/operations/alerts';
import { acceptOperation, silent, temporalOf, testMetrics } from '../support/accepted-work';
import { withDatabase } from '../support/database';
import { createTenant } from '../support/tenant';
import { withTemporal } from '../support/temporal';

const db = withDatabase();
const server = withTemporal();

function openActivities() {
  const metrics = testMetrics();
  const temporal = temporalOf(server);
  const activities = createSystemActivities({
    db: db.database, temporal, log: silent, reconcileRules: [], alerts: createAlerts({ appendAudit, metrics, log: silent }),
  });
  return { activities, metrics, temporal };
}

test('rows are dropped after their time and not before: kept answers 24 h, limits once they are full again', async () => {
  const { prisma } = db.database;
  await execute(prisma, `insert into idempotency_key (principal, operation, key, fingerprint, created_at) values
    ('u', 'o', 'old', 'f', now() - interval '26 hours'), ('u', 'o', 'young', 'f', now() - interval '24 hours')`);
  await execute(prisma, `insert into rate_limit (key, arrival_at) values ('past', now() - interval '1 hour'), ('ahead', now() + interval '1 hour')`);
  await execute(prisma, `insert into overdue_alert (rule, target_id, deadline_at, alerted_at) values
    ('r', 'old', now(), now() - interval '41 days'), ('r', 'young', now(), now())`);
  const { activities, temporal } = openActivities();
  for (const _time of ['first', 'second']) {
    await new MockActivityEnvironment().run(activities.dropExpiredRows);
    expect(await rows(prisma, 'select key from idempotency_key')).toEqual([{ key: 'young' }]);
    expect(await rows(prisma, 'select key from rate_limit')).toEqual([{ key: 'ahead' }]);
    expect(await rows(prisma, 'select target_id as id from overdue_alert')).toEqual([{ id: 'young' }]);
  }
  await temporal.close();
});

test('more rows than one page holds are all dropped', async () => {
  const { prisma } = db.database;
  await execute(prisma, `insert into rate_limit (key, arrival_at) select 'page-' || n, now() - interval '1 hour' from generate_series(1, 12000) n`);
  const { activities, temporal } = openActivities();
  await new MockActivityEnvironment().run(activities.dropExpiredRows);
  expect(await rows(prisma, `select count(*)::int as count from rate_limit where key like 'page-%'`)).toEqual([{ count: 0 }]);
  await temporal.close();
});

test('an undo that was refused is counted and stands in the audit log of its organisation', async () => {
  const { orgId, projectId } = await createTenant(db.database, 'test-secret-test-secret-test-secret');
  const operation = await acceptOperation(db.database, { orgId, projectId });
  const { activities, metrics, temporal } = openActivities();
  await new MockActivityEnvironment().run(activities.reportFailedUndo, { operationId: operation.id, step: 'destroyInstance', code: 'backend_error' });
  expect((await metrics.failedUndo.get()).values).toEqual([expect.objectContaining({ value: 1, labels: expect.objectContaining({ step: 'destroyInstance' }) })]);
  expect(await rows(db.database.prisma, `select actor_kind as actor, action, outcome, target_type as type, target_id as id from audit_entry where chain = $1`, orgId))
    .toEqual([{ actor: 'system', action: 'failedUndo', outcome: 'done', type: 'operation', id: operation.id }]);
  await temporal.close();
});

test('overdue work is counted and stands in the audit log of its organisation, once', async () => {
  const { orgId, projectId } = await createTenant(db.database, 'test-secret-test-secret-test-secret');
  const operation = await acceptOperation(db.database, { orgId, projectId, resourceId: newId('pg') });
  await execute(db.database.prisma, `update operation set created_at = now() - interval '2 hours' where id = $1`, operation.id);
  const { activities, metrics, temporal } = openActivities();
  for (const _time of ['first', 'second']) await new MockActivityEnvironment().run(activities.restartStuckWork);
  expect((await metrics.overdueWork.get()).values).toEqual([expect.objectContaining({ value: 1, labels: expect.objectContaining({ rule: 'operation' }) })]);
  expect(await rows(db.database.prisma, `select action, target_id as id from audit_entry where chain = $1`, orgId)).toEqual([{ action: 'overdueWork', id: operation.id }]);
  await temporal.close();
});
