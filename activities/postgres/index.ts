import { createAccessActivities } from './access';
import { createChangeActivities } from './change';
import { createDeleteActivities } from './delete';
import { createLifecycleActivities } from './lifecycle';
import { createObserveActivities } from './observe';
import { createProvisionActivities } from './provision';
import type { PostgresActivityDeps } from './work';

export type { PostgresActivityDeps } from './work';
export type PostgresActivities = ReturnType<typeof createPostgresActivities>;

/** Activities on the queue `postgres`; their names are the steps of the operations. */
export function createPostgresActivities(deps: PostgresActivityDeps) {
  return {
    ...createProvisionActivities(deps), ...createAccessActivities(deps), ...createChangeActivities(deps), ...createDeleteActivities(deps),
    ...createLifecycleActivities(deps), ...createObserveActivities(deps),
  };
}
