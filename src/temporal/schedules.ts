import { ScheduleAlreadyRunning, ScheduleOverlapPolicy, type Client } from '@temporalio/client';
import { scheduleOptions } from './options';
import type { Queue } from './queues';
import { searchAttributes } from './search-attributes';

/** Work the platform does by itself, again and again. */
export type ScheduleDefinition = {
  /** No slash; from `scheduleIds`. */
  id: string;
  workflow: string;
  queue: Queue;
  product: string;
  every: string;
  /** In words, for Temporal's UI. */
  summary: string;
  /** Also once whenever a worker starts. */
  atStart?: boolean;
};

/** The schedules exist as defined, whoever made them and however they were. A paused one stays paused: an operator did that. */
export async function ensureSchedules(client: Client, definitions: readonly ScheduleDefinition[]): Promise<void> {
  for (const definition of definitions) {
    const handle = client.schedule.getHandle(definition.id);
    try {
      await client.schedule.create({ scheduleId: definition.id, ...optionsOf(definition) });
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw error;
      await handle.update((previous) => ({ ...optionsOf(definition), state: previous.state }));
    }
    if (definition.atStart) await handle.trigger(ScheduleOverlapPolicy.SKIP);
  }
}

function optionsOf({ workflow, queue, product, every, summary, id }: ScheduleDefinition) {
  return {
    spec: { intervals: [{ every }] },
    action: {
      type: 'startWorkflow' as const, workflowType: workflow, workflowId: id, taskQueue: queue, args: [], staticSummary: summary,
      typedSearchAttributes: searchAttributes({ product }), priority: { priorityKey: 4 },
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, ...scheduleOptions },
  };
}
