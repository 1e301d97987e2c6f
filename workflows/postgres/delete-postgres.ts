import { proxyActivities } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { runJob, type JobEnd } from '../job';
import { marking, withoutEnd } from '../policies';
import type { PostgresRun } from './provision-postgres';

const { markDeleted } = proxyActivities<PostgresActivities>(marking);
const { cancelOtherRuns, destroyCredentials } = proxyActivities<PostgresActivities>({ ...withoutEnd, startToCloseTimeout: '10s' });
const { blockAccess, retainInstance, destroyInstance } = proxyActivities<PostgresActivities>({ ...withoutEnd, heartbeatTimeout: '15s' });

/** Nobody gets in, then nothing runs, then no key is left. Forward only: it is tried without end and cannot fail. */
export async function deletePostgres(run: PostgresRun): Promise<JobEnd> {
  return runJob(run, async (job) => {
    const { retain } = await job.step('Cutting sessions and closing the door', () => blockAccess(run));
    await job.step('Ending other work on the service', () => cancelOtherRuns(run));
    if (retain) await job.step('Keeping the data for an undelete', () => retainInstance(run));
    else await job.step('Destroying the instance', () => destroyInstance(run));
    await job.step('Destroying the keys', () => destroyCredentials(run));
    await job.step('Marking it deleted', () => markDeleted(run));
  });
}
