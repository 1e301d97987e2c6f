import { ScheduleAlreadyRunning, ScheduleNotFoundError, ScheduleOverlapPolicy, type Client, type ScheduleHandle } from '@temporalio/client';
import { scheduleOptions } from './options';
import type { QueueInUse } from './queues';
import { searchAttributes } from './search-attributes';

/** Work the platform does by itself, again and again. */
export type ScheduleDefinition = {
  /** No slash; from `scheduleIds`. */
  id: string;
  workflow: string;
  queue: QueueInUse;
  product: string;
  every: string;
  /** How long after each full interval; none when absent. */
  offset?: string;
  /** In words, for Temporal's UI. */
  summary: string;
  /** Also once whenever a worker starts. */
  atStart?: boolean;
};

/**
 * The schedules exist. `correct` also gives those that exist the present definition, once per start of a worker; a paused one
 * stays paused: an operator did that.
 */
export async function ensureSchedules(client: Client, definitions: readonly ScheduleDefinition[], { correct }: { correct: boolean }): Promise<void> {
  for (const definition of definitions) {
    const handle = client.schedule.getHandle(definition.id);
    const made = !(await exists(handle)) && await create(client, definition);
    if (!made && correct) await handle.update((previous) => ({ ...optionsOf(definition), state: previous.state }));
    if (definition.atStart && (made || correct)) await handle.trigger(ScheduleOverlapPolicy.SKIP);
  }
}

async function exists(handle: ScheduleHandle): Promise<boolean> {
  return handle.describe().then(() => true, (error: unknown) => {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  });
}

/** False when another worker was faster. */
async function create(client: Client, definition: ScheduleDefinition): Promise<boolean> {
  try {
    await client.schedule.create({ scheduleId: definition.id, ...optionsOf(definition) });
    return true;
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) return false;
    throw error;
  }
}

function optionsOf({ workflow, queue, product, every, offset, summary, id }: ScheduleDefinition) {
  return {
    spec: { intervals: [{ every, ...(offset === undefined ? {} : { offset }) }] },
    action: {
      type: 'startWorkflow' as const, workflowType: workflow, workflowId: id, taskQueue: queue, args: [], staticSummary: summary,
      workflowRunTimeout: scheduleOptions.runTimeout,
      typedSearchAttributes: searchAttributes({ product }), priority: { priorityKey: 4 },
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: scheduleOptions.catchupWindow },
  };
}
