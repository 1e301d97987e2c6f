import { join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { withTemporal } from '../support/temporal';
import { torture, type World } from '../support/torture';
import { withWorkflowLab, type Activities } from '../support/workflow-lab';
import type { Progress } from '../../workflows/job';

const server = withTemporal();
const lab = withWorkflowLab(server, { workflowsPath: join(__dirname, 'fixtures/sample-job.ts') });

/** A world of facts: activities make them true or untrue. */
function sampleWorld(extra: Activities = {}) {
  const facts = new Set<string>();
  const order: string[] = [];
  const make = (name: string, change: () => unknown) => async () => {
    order.push(name);
    change();
  };
  const activities: Activities = {
    placeIt: make('placeIt', () => facts.add('placed')),
    buildIt: make('buildIt', () => facts.add('built')),
    openIt: make('openIt', () => facts.add('open')),
    markIt: make('markIt', () => facts.add('available')),
    unplaceIt: make('unplaceIt', () => facts.delete('placed')),
    destroyIt: make('destroyIt', () => { facts.delete('built'); facts.delete('open'); }),
    markItFailed: async ({ code }: { code: string }) => void facts.add(`failed:${code}`),
    ...extra,
  };
  return { facts, order, activities, input: { operationId: 'op_sample' } };
}

const superseded = async () => {
  throw ApplicationFailure.nonRetryable('newer', 'superseded');
};

test('whatever happens at any step, the job ends available or leaves nothing behind but the failure', async () => {
  const steps = await torture(lab, {
    workflow: 'sampleJob',
    withoutEnd: ['markIt'],
    begin: async (): Promise<World> => {
      const { facts, activities, input } = sampleWorld();
      return {
        input, activities,
        verify: async ({ end }) => {
          if (end === 'completed') expect(facts).toEqual(new Set(['placed', 'built', 'open', 'available']));
          else if (facts.has('available')) expect(end).toBe('cancelled');
          else expect([...facts]).toEqual([expect.stringMatching(/^failed:(backend_error|internal_error)$/)]);
        },
      };
    },
  });
  expect(steps).toEqual(['placeIt', 'buildIt', 'openIt', 'markIt']);
}, 120_000);

test('undos run in reverse, also that of the step that failed', async () => {
  const { activities, input, order } = sampleWorld({ buildIt: async () => { throw ApplicationFailure.nonRetryable('full', 'no_capacity'); } });
  const { end, code } = await lab.run({ workflow: 'sampleJob', input, activities });
  expect({ end, code, order }).toEqual({ end: 'failed', code: 'no_capacity', order: ['placeIt', 'destroyIt', 'unplaceIt'] });
});

test('an undo that is refused is reported, and the other undos still run', async () => {
  const reports: unknown[] = [];
  const { activities, input, facts } = sampleWorld({
    openIt: async () => { throw ApplicationFailure.nonRetryable('no', 'verification_failed'); },
    destroyIt: async () => { throw ApplicationFailure.nonRetryable('no', 'backend_error'); },
    reportFailedUndo: async (report: unknown) => void reports.push(report),
  });
  const { end } = await lab.run({ workflow: 'sampleJob', input, activities });
  expect(end).toBe('failed');
  expect(reports).toEqual([{ operationId: 'op_sample', step: 'destroyIt', code: 'backend_error' }]);
  expect(facts).toEqual(new Set(['built', 'failed:verification_failed']));
});

test('a superseded step ends the run without undoing: the newer intent cleans up', async () => {
  const { activities, input, order } = sampleWorld({ openIt: superseded });
  const { end, result, calls } = await lab.run({ workflow: 'sampleJob', input, activities });
  expect({ end, result, order }).toEqual({ end: 'completed', result: 'superseded', order: ['placeIt', 'buildIt'] });
  expect(calls).not.toContain('markItFailed');
});

test('a job superseded while it undoes stops there', async () => {
  const { activities, input } = sampleWorld({ openIt: async () => { throw ApplicationFailure.nonRetryable('no', 'backend_error'); }, destroyIt: superseded });
  const { end, result, calls } = await lab.run({ workflow: 'sampleJob', input, activities });
  expect({ end, result, last: calls.at(-1) }).toEqual({ end: 'completed', result: 'superseded', last: 'destroyIt' });
});

test('a step that does not end in time fails the job with deadline_exceeded', async () => {
  const { activities, input } = sampleWorld({ placeIt: async () => { throw ApplicationFailure.create({ type: 'backend_error', nextRetryDelay: '1h' }); } });
  const { end, code } = await lab.run({ workflow: 'sampleJob', input, activities });
  expect({ end, code }).toEqual({ end: 'failed', code: 'deadline_exceeded' });
});

test('the query progress and the current details say in words what is being done', async () => {
  const seen: Progress[] = [];
  const { activities, input } = sampleWorld();
  const { workflowId } = await lab.run({
    workflow: 'sampleJob', input, activities,
    interfere: async ({ name }, run) => {
      if (name === 'buildIt') seen.push(await server.environment.client.workflow.getHandle('lab/progress').query<Progress>('progress'));
      return run();
    },
    workflowId: 'lab/progress',
  });
  expect(seen).toEqual([{ doing: 'Building it', done: ['Placing it'], undoing: false }]);
  expect(await server.environment.client.workflow.getHandle(workflowId).query('progress')).toEqual({
    doing: 'Done', done: ['Placing it', 'Building it', 'Opening it', 'Marking it available'], undoing: false,
  });
  const metadata = await server.environment.client.workflow.getHandle(workflowId).query<{ currentDetails: string }>('__temporal_workflow_metadata');
  expect(metadata.currentDetails).toContain('- Building it: done');
});

