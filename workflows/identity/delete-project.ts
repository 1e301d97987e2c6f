import { proxyActivities } from '@temporalio/workflow';
import type { IdentityActivities, ProjectRun } from '../../activities/identity';
import { runJob, type JobEnd } from '../job';
import { marking, polling, withoutEnd } from '../policies';

const { requestProductDeletions } = proxyActivities<IdentityActivities>(withoutEnd);
const { awaitProductsGone } = proxyActivities<IdentityActivities>(polling);
const { markProjectDeleted } = proxyActivities<IdentityActivities>(marking);

/** Everything in the project goes, then the project. Forward only: it is tried without end and cannot fail. */
export async function deleteProject(run: ProjectRun): Promise<JobEnd> {
  return runJob(run, async (job) => {
    await job.step('Asking the products to delete what they hold', () => requestProductDeletions(run));
    await job.step('Waiting until it is gone', () => awaitProductsGone(run));
    await job.step('Marking the project deleted', () => markProjectDeleted(run));
  });
}
