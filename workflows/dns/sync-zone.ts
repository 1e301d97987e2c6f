import { ActivityFailure, defineQuery, defineSignal, isCancellation, proxyActivities, setCurrentDetails, setHandler, sleep, workflowInfo, continueAsNew } from '@temporalio/workflow';
import type { DnsActivities, ZoneRun } from '../../activities/dns';
import { marking, publishing } from '../policies';

/** Somebody asks for the present version to be everywhere. */
export const requested = defineSignal('requested');
export type SyncVersions = { published: number | null; rounds: number };
export const versions = defineQuery<SyncVersions>('versions');

const { ensureZonePublished } = proxyActivities<DnsActivities>(publishing);
const { markSyncFailed } = proxyActivities<DnsActivities>(marking);
/** What is asked for within this time is done once. */
const debounceMs = 250;

/** A zone's version is on every server; asked again meanwhile, its newer version is too. */
export async function syncZone(run: ZoneRun): Promise<SyncVersions> {
  const seen: SyncVersions = { published: null, rounds: 0 };
  let asks = 0;
  setHandler(versions, () => seen);
  setHandler(requested, () => {
    asks += 1;
  });
  for (;;) {
    await sleep(debounceMs);
    const answered = asks;
    setCurrentDetails('Waiting for every name server to have the zone');
    const published = await publish(run.zoneId);
    Object.assign(seen, { published, rounds: seen.rounds + 1 });
    if (asks === answered) break;
    if (workflowInfo().continueAsNewSuggested) return continueAsNew<typeof syncZone>({ zoneId: run.zoneId });
  }
  setCurrentDetails(seen.published === null ? 'The zone is gone, or was not taken in time' : `Version ${seen.published} is on every name server`);
  return seen;
}

/** Null: the zone is gone, or a server did not take it in time. */
async function publish(zoneId: string): Promise<number | null> {
  try {
    return (await ensureZonePublished({ zoneId })).version;
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    await markSyncFailed({ zoneId });
    return null;
  }
}
