import { proxyActivities } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { runJob, type JobEnd } from '../job';
import { marking, within, withinBeating, withoutEnd } from '../policies';
import type { PostgresRun } from './provision-postgres';

/** `seconds`: how long all of it may take, decided with its size when it was accepted. */
export type RestoreRun = PostgresRun & { source: 'retained'; seconds: number };

const { markAvailable, markUndeleteFailed } = proxyActivities<PostgresActivities>(marking);
const { retainInstance } = proxyActivities<PostgresActivities>({ ...withoutEnd, heartbeatTimeout: '15s' });
const { destroyCredentials } = proxyActivities<PostgresActivities>({ ...withoutEnd, startToCloseTimeout: '10s' });

/** A deleted service is available with the data it had and a new password, or deleted again with its data retained. */
export async function restorePostgres(run: RestoreRun): Promise<JobEnd> {
  const endsAtMs = Date.now() + run.seconds * 1_000;
  const left = (secondsMax: number) => Math.max(1, Math.min(secondsMax, Math.ceil((endsAtMs - Date.now()) / 1_000)));

  return runJob(run, async (job) => {
    job.undo('retainInstance', () => retainInstance(run));
    job.undo('destroyCredentials', () => destroyCredentials(run));
    const { reviveInstance } = proxyActivities<PostgresActivities>({ ...withinBeating(left(run.seconds)), startToCloseTimeout: '60s' });
    await job.step('Bringing the data back', () => reviveInstance(run));
    const { ensureAccess, verifyAccess } = proxyActivities<PostgresActivities>({ ...within(left(60)), startToCloseTimeout: '15s' });
    await job.step('Giving the customer access', () => ensureAccess(run));
    await job.step('Logging in as the customer', () => verifyAccess(run));
    await job.step('Opening the service', () => markAvailable(run));
  }, (failure) => markUndeleteFailed({ ...run, failure }));
}
