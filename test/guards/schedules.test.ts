import { schedules } from '../../src/deps';
import { scheduleIds } from '../../src/temporal/ids';
import { queuesInUse } from '../../src/temporal/queues';
import * as workflows from '../../workflows';

test('every schedule starts a workflow that is exported, on a queue that is served, under a public id without a slash', () => {
  for (const { id, workflow, queue } of schedules) {
    expect(Object.keys(workflows)).toContain(workflow);
    expect(queuesInUse).toContain(queue);
    expect(Object.values(scheduleIds)).toContain(id);
    expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/);
  }
  expect(new Set(schedules.map(({ id }) => id)).size).toBe(schedules.length);
  expect(schedules.map(({ id }) => id).toSorted()).toEqual(Object.values(scheduleIds).toSorted());
});
