import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { SystemActivities } from '../../activities/system';
import { housekeeping } from '../policies';

const { restartStuckWork, dropExpiredRows } = proxyActivities<SystemActivities>(housekeeping);

/** Schedule `system-reconcile`: accepted work without a run gets one, missed deadlines are raised, expired rows go. */
export async function reconcile(): Promise<{ restarted: number; overdue: number }> {
  setCurrentDetails('Looking for accepted work without a run');
  const found = await restartStuckWork();
  setCurrentDetails(`Started again: ${found.restarted}. New alerts: ${found.overdue}. Dropping expired rows`);
  await dropExpiredRows();
  setCurrentDetails(`Started again: ${found.restarted}. New alerts: ${found.overdue}.`);
  return found;
}
