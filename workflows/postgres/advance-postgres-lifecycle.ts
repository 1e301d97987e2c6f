import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { housekeeping } from '../policies';

const { purgeExpiredServices } = proxyActivities<PostgresActivities>(housekeeping);

/** Schedule `postgres-lifecycle`: deleted services whose time to come back has passed are purged. */
export async function advancePostgresLifecycle(): Promise<{ purged: number; left: number }> {
  setCurrentDetails('Purging deleted services whose time to come back has passed');
  const found = await purgeExpiredServices();
  setCurrentDetails(`Purged: ${found.purged}. Left to the next run: ${found.left}.`);
  return found;
}
