import { isCancellation, proxyActivities } from '@temporalio/workflow';
import type { IdentityActivities, OrgRun } from '../../activities/identity';
import { failureOf, runJob, type JobEnd } from '../job';
import { marking, polling, within, withoutEnd } from '../policies';

const { requestProjectDeletions } = proxyActivities<IdentityActivities>(withoutEnd);
const { awaitProjectsGone } = proxyActivities<IdentityActivities>(polling);
const { closeOrganizationBilling } = proxyActivities<IdentityActivities>(within(60));
const { recordBillingFailure, markOrganizationDeleted } = proxyActivities<IdentityActivities>(marking);

/** Its projects go, each as by its own deletion, billing ends, then the organisation goes. Forward only. */
export async function deleteOrganization(run: OrgRun): Promise<JobEnd> {
  return runJob(run, async (job) => {
    await job.step('Asking its projects to go', () => requestProjectDeletions(run));
    await job.step('Waiting until they are gone', () => awaitProjectsGone(run));
    await job.step('Ending its billing', () => endBilling(run));
    await job.step('Marking the organisation deleted', () => markOrganizationDeleted(run));
  });
}

/** Deletion never waits for billing: what it could not do is written down. */
async function endBilling(run: OrgRun): Promise<void> {
  try {
    await closeOrganizationBilling(run);
  } catch (error) {
    if (isCancellation(error)) throw error;
    await recordBillingFailure({ ...run, code: failureOf(error).code });
  }
}
