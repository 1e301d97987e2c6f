import { proxyActivities } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { runJob, type Job, type JobEnd, type JobFailure } from '../job';
import { copyingWithin, marking, within, withinBeating, withoutEnd } from '../policies';
import type { PostgresRun } from './provision-postgres';

/** `source`: its own retained data, or another service's backup. `seconds`: how long all of it may take, decided with its size when it was accepted. */
export type RestoreRun = PostgresRun & { source: 'retained' | 'backup'; seconds: number };

const { markAvailable, markUndeleteFailed, markProvisionFailed } = proxyActivities<PostgresActivities>(marking);
const { retainInstance, destroyInstance } = proxyActivities<PostgresActivities>({ ...withoutEnd, heartbeatTimeout: '15s' });
const { destroyCredentials, releasePlacement } = proxyActivities<PostgresActivities>({ ...withoutEnd, startToCloseTimeout: '10s' });

/** A deleted service is available with the data it had, or deleted again with its data retained; a new one with another's data, or failed with nothing left of it. */
export async function restorePostgres(run: RestoreRun): Promise<JobEnd> {
  const endsAtMs = Date.now() + run.seconds * 1_000;
  const left: Left = (secondsMax) => Math.max(1, Math.min(secondsMax, Math.ceil((endsAtMs - Date.now()) / 1_000)));
  const retained = run.source === 'retained';

  return runJob(run, async (job) => {
    if (retained) await revive(job, run, left);
    else await refill(job, run, left);
    const { ensureAccess, verifyAccess } = proxyActivities<PostgresActivities>({ ...within(left(60)), startToCloseTimeout: '15s' });
    await job.step('Giving the customer access', () => ensureAccess(run));
    await job.step('Logging in as the customer', () => verifyAccess(run));
    await job.step('Opening the service', () => markAvailable(run));
  }, (failure: JobFailure) => (retained ? markUndeleteFailed({ ...run, failure }) : markProvisionFailed({ ...run, failure })));
}

type Left = (secondsMax: number) => number;

async function revive(job: Job, run: RestoreRun, left: Left): Promise<void> {
  job.undo('retainInstance', () => retainInstance(run));
  job.undo('destroyCredentials', () => destroyCredentials(run));
  const { reviveInstance } = proxyActivities<PostgresActivities>({ ...withinBeating(left(run.seconds)), startToCloseTimeout: '60s' });
  await job.step('Bringing the data back', () => reviveInstance(run));
}

async function refill(job: Job, run: RestoreRun, left: Left): Promise<void> {
  job.undo('releasePlacement', () => releasePlacement(run));
  job.undo('destroyInstance', () => destroyInstance(run));
  job.undo('destroyCredentials', () => destroyCredentials(run));
  const { ensurePlacement } = proxyActivities<PostgresActivities>({ ...within(left(30)), startToCloseTimeout: '5s' });
  await job.step('Finding a host with room', () => ensurePlacement(run));
  const { restoreInstance } = proxyActivities<PostgresActivities>(copyingWithin(left(run.seconds)));
  await job.step('Bringing back the data of that time', () => restoreInstance(run));
}
