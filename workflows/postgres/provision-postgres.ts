import { isCancellation, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { runJob, type JobEnd } from '../job';
import { locallyWithin, marking, within, withinBeating, withoutEnd } from '../policies';

export type PostgresRun = { serviceId: string; operationId: string; generation: number };

const { provisionFromPool } = proxyLocalActivities<PostgresActivities>(locallyWithin(3));
const { markAvailable, markProvisionFailed } = proxyActivities<PostgresActivities>(marking);
const { destroyInstance } = proxyActivities<PostgresActivities>({ ...withoutEnd, heartbeatTimeout: '15s' });
const { releasePlacement, destroyCredentials } = proxyActivities<PostgresActivities>({ ...withoutEnd, startToCloseTimeout: '10s' });

/** Once begun, all of it must end within this time or it is undone (contract postgres.md §2, Deadlines). */
const deadlineSeconds = 120;

/** A service that was accepted becomes available, or failed with nothing left of it. Input: ids and the generation it speaks for. */
export async function provisionPostgres(run: PostgresRun): Promise<JobEnd> {
  const endsAtMs = Date.now() + deadlineSeconds * 1_000;
  const left = (secondsMax: number) => Math.max(1, Math.min(secondsMax, Math.ceil((endsAtMs - Date.now()) / 1_000)));

  return runJob(run, async (job) => {
    job.undo('releasePlacement', () => releasePlacement(run));
    job.undo('destroyInstance', () => destroyInstance(run));
    job.undo('destroyCredentials', () => destroyCredentials(run));
    if (await job.step('Taking a ready instance', () => fromPool(run)) === 'available') return;

    const { ensurePlacement } = proxyActivities<PostgresActivities>({ ...within(left(30)), startToCloseTimeout: '5s' });
    await job.step('Finding a host with room', () => ensurePlacement(run));
    const { ensureInstance } = proxyActivities<PostgresActivities>({ ...withinBeating(left(deadlineSeconds)), startToCloseTimeout: '60s' });
    await job.step('Making and starting the instance', () => ensureInstance(run));
    const { ensureAccess, verifyAccess } = proxyActivities<PostgresActivities>({ ...within(left(60)), startToCloseTimeout: '15s' });
    await job.step('Giving the customer access', () => ensureAccess(run));
    await job.step('Logging in as the customer', () => verifyAccess(run));
    await job.step('Opening the service', () => markAvailable(run));
  }, (failure) => markProvisionFailed({ ...run, failure }));
}

/** The fast path may fail in any way: the ordinary steps go on from what it left. */
async function fromPool(run: PostgresRun): Promise<'available' | 'cold'> {
  try {
    return await provisionFromPool(run);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return 'cold';
  }
}
