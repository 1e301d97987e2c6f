import { createAccessActivities } from './access';
import { createBackupActivities } from './backup';
import { createChangeActivities } from './change';
import { createDeleteActivities } from './delete';
import { createDrillActivities } from './drill';
import { createInventoryActivities } from './inventory';
import { createLifecycleActivities } from './lifecycle';
import { createObserveActivities } from './observe';
import { createProvisionActivities } from './provision';
import { createRestoreActivities } from './restore';
import type { PostgresActivityDeps } from './work';

export type { PostgresActivityDeps } from './work';
export type PostgresActivities = ReturnType<typeof createPostgresActivities>;

/** Activities on the queue `postgres`; their names are the steps of the operations. */
export function createPostgresActivities(deps: PostgresActivityDeps) {
  return {
    ...createProvisionActivities(deps), ...createAccessActivities(deps), ...createChangeActivities(deps), ...createDeleteActivities(deps),
    ...createLifecycleActivities(deps), ...createObserveActivities(deps), ...createBackupActivities(deps), ...createRestoreActivities(deps), ...createDrillActivities(deps),
    ...createInventoryActivities(deps),
  };
}
