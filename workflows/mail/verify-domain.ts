import { ActivityFailure, condition, continueAsNew, defineQuery, defineSignal, isCancellation, proxyActivities, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow';
import type { MailActivities } from '../../activities/mail';
import { domainChecking } from '../policies';

/** Somebody asks for a check now. */
export const recheck = defineSignal('recheck');
export type DomainState = { checks: number; status: string | null; nextCheckInMs: number | null };
export const state = defineQuery<DomainState>('state');

const { ensureDomainChecked } = proxyActivities<MailActivities>(domainChecking);
const afterFailureMs = 15 * 60_000;

/** Checks a pending sender domain at the times its row says, until it is verified, has failed or is deleted. */
export async function verifyDomain(run: { domainId: string; operationId: string }): Promise<{ status: string | null; checks: number }> {
  const seen: DomainState = { checks: 0, status: null, nextCheckInMs: null };
  let asks = 0;
  setHandler(state, () => seen);
  setHandler(recheck, () => {
    asks += 1;
  });
  for (;;) {
    const answered = asks;
    setCurrentDetails('Asking DNS for the records of the domain');
    const { status, delayMs } = await checked(run);
    Object.assign(seen, { checks: seen.checks + 1, status, nextCheckInMs: delayMs });
    if (delayMs === null && asks === answered) break;
    if (delayMs !== null) {
      setCurrentDetails(`${status ?? 'Not checked'}: the next check is planned in ${Math.round(delayMs / 1000)} s`);
      await condition(() => asks > answered, delayMs);
    }
    if (workflowInfo().continueAsNewSuggested) return continueAsNew<typeof verifyDomain>(run);
  }
  setCurrentDetails(seen.status === null ? 'The domain is deleted' : `The domain is ${seen.status}`);
  return { status: seen.status, checks: seen.checks };
}

/** Attempts that ran out say nothing about the domain: it is checked again later. */
async function checked(run: { domainId: string; operationId: string }): Promise<{ status: string | null; delayMs: number | null }> {
  try {
    return await ensureDomainChecked(run);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return { status: null, delayMs: afterFailureMs };
  }
}
