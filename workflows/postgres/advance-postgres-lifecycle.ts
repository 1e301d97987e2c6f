import { patched, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { housekeeping } from '../policies';

const { advanceTrials, endOverlaps, attendOverdueServices, purgeExpiredServices } = proxyActivities<PostgresActivities>(housekeeping);

/** Schedule `postgres-lifecycle`: what time alone does to services. */
export async function advancePostgresLifecycle(): Promise<{ purged: number; left: number }> {
  const words: string[] = [];
  if (patched('lifecycle-complete')) {
    setCurrentDetails('Looking for overdue work, ended trials and ended passwords');
    const overdue = await attendOverdueServices();
    const trials = await advanceTrials();
    const { ended } = await endOverlaps();
    words.push(`Overdue: ${overdue.overdue}, started again: ${overdue.restarted}. Trials: ${trials.noticed} told, ${trials.suspended} suspended, ${trials.deleted} deleted. Overlaps ended: ${ended}.`);
  }
  setCurrentDetails('Purging deleted services whose time to come back has passed');
  const found = await purgeExpiredServices();
  setCurrentDetails([...words, `Purged: ${found.purged}. Left to the next run: ${found.left}.`].join('\n'));
  return found;
}
