import { ApplicationFailure } from '@temporalio/common';
import { withTemporal } from '../support/temporal';
import { withWorkflowLab } from '../support/workflow-lab';

const server = withTemporal();
const lab = withWorkflowLab(server);
const input = { zoneId: 'zone_01kahq3v7ye5fr2m8d4xw0zt6c' };

test('verifyZone checks, waits as long as the row says, and ends with the zone; a failed attempt is tried again', async () => {
  let checks = 0;
  const ensureZoneChecked = async () => {
    checks += 1;
    if (checks === 2) throw ApplicationFailure.create({ type: 'backend_error', message: 'not now', nextRetryDelay: '10ms' });
    return checks < 4 ? { delayMs: 10, status: 'pending' } : { delayMs: null, status: null };
  };
  expect(await lab.run({ workflow: 'verifyZone', input, activities: { ensureZoneChecked } })).toMatchObject({ end: 'completed', result: { checks: 3 }, calls: Array(4).fill('ensureZoneChecked') });
}, 60_000);

test('a waiting verifyZone is woken by recheck, and one whose zone was restored meanwhile goes on', async () => {
  const workflowId = `lab/verify-${process.pid}`;
  const handle = () => server.environment.client.workflow.getHandle(workflowId);
  let checks = 0;
  const ensureZoneChecked = async () => {
    checks += 1;
    if (checks === 1) return { delayMs: 3_600_000, status: 'active' };
    if (checks === 2) await handle().signal('recheck');
    return { delayMs: null, status: null };
  };
  const running = lab.run({ workflow: 'verifyZone', input, activities: { ensureZoneChecked }, workflowId });
  for (let waiting = false; !waiting;) waiting = await handle().query<{ checks: number }>('state').then((state) => state.checks === 1, () => false);
  await handle().signal('recheck');
  expect(await running).toMatchObject({ end: 'completed', result: { checks: 3 } });
}, 60_000);

test('syncZone ends when the version is everywhere, goes on when asked meanwhile, and is given up with a mark', async () => {
  const workflowId = `lab/sync-${process.pid}`;
  let rounds = 0;
  const ensureZonePublished = async () => {
    rounds += 1;
    if (rounds === 1) await server.environment.client.workflow.getHandle(workflowId).signal('requested');
    return { version: 6 + rounds };
  };
  expect(await lab.run({ workflow: 'syncZone', input, activities: { ensureZonePublished }, workflowId })).toMatchObject({ end: 'completed', result: { published: 8, rounds: 2 } });
  const refused = async () => { throw ApplicationFailure.nonRetryable('no', 'backend_error'); };
  const given = await lab.run({ workflow: 'syncZone', input, activities: { ensureZonePublished: refused, markSyncFailed: async () => undefined } });
  expect(given).toMatchObject({ end: 'completed', result: { published: null }, calls: ['ensureZonePublished', 'markSyncFailed'] });
}, 60_000);
