import { ActivityFailure, condition, continueAsNew, defineQuery, defineSignal, isCancellation, proxyActivities, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow';
import type { DnsActivities, ZoneRun } from '../../activities/dns';
import { checking } from '../policies';

/** Somebody asks for a check now. */
export const recheck = defineSignal('recheck');
export type VerifyState = { checks: number; status: string | null; nextCheckInMs: number | null };
export const state = defineQuery<VerifyState>('state');

const { ensureZoneChecked } = proxyActivities<DnsActivities>(checking);
const afterFailureMs = 5 * 60_000;

/** Checks a zone again and again, at the times the zone's row says, for as long as the zone lives. */
export async function verifyZone(run: ZoneRun): Promise<{ checks: number }> {
  const seen: VerifyState = { checks: 0, status: null, nextCheckInMs: null };
  let asks = 0;
  setHandler(state, () => seen);
  setHandler(recheck, () => {
    asks += 1;
  });
  for (;;) {
    const answered = asks;
    setCurrentDetails('Asking DNS who answers for the domain');
    const { delayMs, status } = await checked(run.zoneId);
    Object.assign(seen, { checks: seen.checks + 1, status, nextCheckInMs: delayMs });
    if (delayMs === null && asks === answered) break;
    if (delayMs !== null) {
      setCurrentDetails(`${status ?? 'Not checked'}: the next check is planned in ${Math.round(delayMs / 1000)} s`);
      await condition(() => asks > answered, delayMs);
    }
    if (workflowInfo().continueAsNewSuggested) return continueAsNew<typeof verifyZone>({ zoneId: run.zoneId });
  }
  setCurrentDetails('The zone is deleted');
  return { checks: seen.checks };
}

/** Attempts that ran out say nothing about the zone: it is checked again later. */
async function checked(zoneId: string): Promise<{ delayMs: number | null; status: string | null }> {
  try {
    return await ensureZoneChecked({ zoneId });
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    return { delayMs: afterFailureMs, status: null };
  }
}
