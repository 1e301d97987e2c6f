import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { copying } from '../policies';

const { drillBackup } = proxyActivities<PostgresActivities>(copying);

/** Schedule `postgres-restore-drill`: one backup, any, becomes a database again and is read in full. */
export async function drillPostgresBackup(): Promise<{ backupId: string | null; verified: boolean; tables: number }> {
  setCurrentDetails('Restoring one backup and reading every table of it');
  const end = await drillBackup();
  setCurrentDetails(end.backupId === null ? 'There is no backup yet.' : `${end.backupId}: ${end.verified ? `good, ${end.tables} tables` : 'NOT good'}.`);
  return end;
}
