import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { housekeeping } from '../policies';

const { startDueBackups, expireBackups } = proxyActivities<PostgresActivities>(housekeeping);

/** Schedule `postgres-backups`: what is due is accepted, what is past its time goes. */
export async function keepPostgresBackups(): Promise<{ started: number; expired: number; left: number }> {
  setCurrentDetails('Accepting the backups that are due');
  const started = await startDueBackups();
  setCurrentDetails('Dropping the backups that are past their time');
  const dropped = await expireBackups();
  setCurrentDetails(`Accepted: ${started}. Dropped: ${dropped.expired}. Left to the next run: ${dropped.left}.`);
  return { started, ...dropped };
}
