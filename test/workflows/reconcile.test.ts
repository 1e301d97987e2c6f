import { withTemporal } from '../support/temporal';
import { torture } from '../support/torture';
import { withWorkflowLab } from '../support/workflow-lab';

const lab = withWorkflowLab(withTemporal());

test('stuck work is looked for before expired rows are dropped, and what is refused fails the run: the next one sees all again', async () => {
  const steps = await torture(lab, {
    workflow: 'reconcile',
    begin: async () => {
      const done: string[] = [];
      return {
        input: undefined,
        activities: {
          restartStuckWork: async () => { done.push('restarted'); return { restarted: 2, overdue: 1 }; },
          dropExpiredRows: async () => void done.push('dropped'),
        },
        verify: async ({ end, result }) => {
          if (end === 'completed') expect({ result, order: [...new Set(done)] }).toEqual({ result: { restarted: 2, overdue: 1 }, order: ['restarted', 'dropped'] });
          else expect(end).toMatch(/^(failed|cancelled)$/);
        },
      };
    },
  });
  expect(steps).toEqual(['restartStuckWork', 'dropExpiredRows']);
}, 60_000);
