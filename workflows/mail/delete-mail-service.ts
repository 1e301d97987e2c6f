import { proxyActivities } from '@temporalio/workflow';
import type { MailActivities } from '../../activities/mail';
import { runJob, type JobEnd } from '../job';
import { paging } from '../policies';

const { cancelServiceMessages, removeServiceDomains, purgeServiceContent, markServiceRemoved } = proxyActivities<MailActivities>(paging);

/** What has not been sent is cancelled, then nothing of the service is left but what was. Forward only: it is tried without end and cannot fail. */
export async function deleteMailService(run: { mailServiceId: string; operationId: string }): Promise<JobEnd> {
  return runJob(run, async (job) => {
    await job.step('Cancelling mail that waits', () => cancelServiceMessages(run));
    await job.step('Removing its domains', () => removeServiceDomains(run));
    await job.step('Removing bodies, suppressions and webhooks', () => purgeServiceContent(run));
    await job.step('Marking it removed', () => markServiceRemoved(run));
  });
}
