import { proxyActivities } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { runJob, type JobEnd } from '../job';
import { copying, marking, withoutEnd } from '../policies';
import type { PostgresRun } from './provision-postgres';

export type BackupPostgresRun = PostgresRun & { backupId: string };

const { ensureBackup } = proxyActivities<PostgresActivities>(copying);
const { markBackupComplete, markBackupFailed } = proxyActivities<PostgresActivities>(marking);
const { dropBackup } = proxyActivities<PostgresActivities>({ ...withoutEnd, heartbeatTimeout: '15s' });

/** A base backup that was accepted is complete, or failed with nothing left of it. It runs beside whatever else happens to the service. */
export async function backupPostgres(run: BackupPostgresRun): Promise<JobEnd> {
  return runJob(run, async (job) => {
    job.undo('dropBackup', () => dropBackup(run));
    const taken = await job.step('Copying the data', () => ensureBackup(run));
    await job.step('Counting the backup', () => markBackupComplete({ ...run, taken }));
  }, (failure) => markBackupFailed({ ...run, failure }));
}
