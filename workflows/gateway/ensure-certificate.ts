import { proxyActivities } from '@temporalio/workflow';
import type { GatewayActivities } from '../../activities/gateway';
import { runJob, type JobEnd } from '../job';
import { caaChecking, certificateStep, marking, ordering } from '../policies';

export type CertificateRun = { certificateId: string; generation: number; operationId: string };

const { loadCertificateOrder, markIssuing, markValid } = proxyActivities<GatewayActivities>(certificateStep);
const { checkCaa } = proxyActivities<GatewayActivities>(caaChecking);
const { obtainCertificate } = proxyActivities<GatewayActivities>(ordering);
const { removeChallenge, markFailed, markRetired } = proxyActivities<GatewayActivities>(marking);

/** A name the gateway serves has a certificate that is good; a name it no longer serves has none. Input: ids and the generation it speaks for. */
export async function ensureCertificate(run: CertificateRun): Promise<JobEnd> {
  return runJob(run, async (job) => {
    const { served } = await job.step('Looking whether the name is served', () => loadCertificateOrder(run));
    if (!served) return job.step('Retiring the certificate', () => markRetired(run));
    await job.step('Beginning the order', () => markIssuing(run));
    await job.step('Asking DNS which authorities are allowed', () => checkCaa(run));
    job.undo('removeChallenge', () => removeChallenge(run));
    await job.step('Ordering the certificate', () => obtainCertificate(run));
    await job.step('Putting it into service', () => markValid(run));
    await job.step('Taking the proofs away', () => removeChallenge(run));
  }, (failure) => markFailed({ ...run, failure }));
}
