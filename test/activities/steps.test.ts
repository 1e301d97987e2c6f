import { join } from 'node:path';
import { activityInterceptor } from '../../activities/steps';
import { AppError } from '../../src/core/errors';
import { Superseded, TryLater } from '../../src/core/job-errors';
import { getOperation, settleOperation } from '../../src/operations/store';
import { viewOperation } from '../../src/operations/view';
import { acceptOperation, silent } from '../support/accepted-work';
import { leaksInHistories } from '../support/canaries';
import { withDatabase } from '../support/database';
import { withTemporal } from '../support/temporal';
import { withWorkflowLab, type Activities } from '../support/workflow-lab';

const db = withDatabase();
const server = withTemporal();
const lab = withWorkflowLab(server, {
  interceptor: () => activityInterceptor({ database: db.database, log: silent }),
  workflowsPath: join(__dirname, '../workflows/fixtures/sample-job.ts'),
});

const nothing = async () => undefined;

async function runJob(activities: Activities = {}) {
  const { id } = await acceptOperation(db.database);
  const run = await lab.run({
    workflow: 'sampleJob', input: { operationId: id },
    activities: {
      placeIt: nothing, buildIt: nothing, openIt: nothing, unplaceIt: nothing, destroyIt: nothing,
      markIt: () => settleOperation(db.database.prisma, id, 'succeeded'),
      markItFailed: ({ code }: { code: string }) => settleOperation(db.database.prisma, id, 'failed', { code, message: 'It failed.' }),
      ...activities,
    },
  });
  const row = await getOperation(db.database.prisma, id);
  if (!row) throw new Error('The operation is gone.');
  const { steps, ...operation } = viewOperation(row);
  return { ...run, operation, steps: steps.map(({ name, state }) => `${name} ${state}`), closed: steps.every(({ finishedAt }) => finishedAt !== null) };
}

test('each step of a job is written on its operation, in order, and closed', async () => {
  const { operation, steps, closed } = await runJob();
  expect(operation).toMatchObject({ state: 'succeeded', error: null });
  expect(steps).toEqual(['placeIt succeeded', 'buildIt succeeded', 'openIt succeeded', 'markIt succeeded']);
  expect(closed).toBe(true);
});

test('a step that is tried again stays one step; its undo is a step of its own', async () => {
  let attempts = 0;
  const { operation, steps } = await runJob({
    buildIt: async () => {
      attempts += 1;
      if (attempts === 1) throw new TryLater('not yet');
    },
    openIt: async () => { throw new AppError('verification_failed', 'The proof failed.'); },
  });
  expect(operation).toMatchObject({ state: 'failed', error: { code: 'verification_failed' } });
  expect(steps).toEqual(['placeIt succeeded', 'buildIt succeeded', 'openIt failed', 'destroyIt succeeded', 'unplaceIt succeeded']);
});

test('our refusals end a job with their code at once; faults of the moment are tried again', async () => {
  let refusals = 0;
  const refused = await runJob({ placeIt: async () => { refusals += 1; throw new AppError('no_capacity', 'There is no room.'); } });
  expect({ end: refused.end, code: refused.code, refusals }).toEqual({ end: 'failed', code: 'no_capacity', refusals: 1 });
  let faults = 0;
  const repeated = await runJob({ placeIt: async () => { faults += 1; if (faults < 3) throw new Error('connection reset'); } });
  expect({ end: repeated.end, faults }).toEqual({ end: 'completed', faults: 3 });
});

test('a superseded step ends the run as superseded', async () => {
  expect(await runJob({ buildIt: async () => { throw new Superseded(); } })).toMatchObject({ end: 'completed', result: 'superseded' });
});

test('what drivers say never reaches the history or the operation', async () => {
  const canary = 'hunter2-very-secret-password';
  let attempts = 0;
  const leaky = await runJob({
    placeIt: async () => {
      attempts += 1;
      if (attempts === 1) throw Object.assign(new Error(`duplicate key value (password)=(${canary})`), { code: '23505', detail: canary, cause: new Error(canary) });
      throw new AppError('backend_error', 'The backend failed.', { detail: canary }, { cause: new Error(canary) });
    },
  });
  expect(leaky).toMatchObject({ end: 'failed', code: 'backend_error' });
  expect(JSON.stringify(leaky.operation)).not.toContain(canary);
  expect(leaksInHistories(new Map([['sampleJob', await lab.history(leaky.workflowId)]]), [canary])).toEqual([]);
});

test('the search for secrets in histories finds one in an input, as it is and in base64', async () => {
  const canary = 'hunter2-very-secret-password';
  for (const input of [{ operationId: canary }, { operationId: Buffer.from(`x${canary}y`).toString('base64') }]) {
    const { workflowId } = await lab.run({ workflow: 'sampleJob', input, activities: { placeIt: nothing, buildIt: nothing, openIt: nothing, markIt: nothing } });
    expect(leaksInHistories(new Map([['run', await lab.history(workflowId)]]), [canary])).not.toEqual([]);
  }
});
