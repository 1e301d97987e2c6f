import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { IdentityActivities } from '../../activities/identity';
import { housekeeping } from '../policies';

const { verifyAuditChains } = proxyActivities<IdentityActivities>(housekeeping);

/** Schedule `identity-verify-audit`: what the chains have gained since they were last found whole. */
export async function verifyAudit(): Promise<{ broken: number }> {
  const result = await verifyAuditChains();
  setCurrentDetails(result.broken === 0 ? 'Every chain is whole' : `**${result.broken} chains are not as they were written**`);
  return result;
}
