import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { DnsActivities, ZoneRun } from '../../activities/dns';
import { purging } from '../policies';

const { ensureZoneRemoved, markZonePurged } = proxyActivities<DnsActivities>(purging);

/** A zone whose time to be restored is over: nothing of it is answered or kept but the row that names it. */
export async function purgeZone(run: ZoneRun): Promise<void> {
  setCurrentDetails('Removing records and change sets of a deleted zone');
  await ensureZoneRemoved(run);
  await markZonePurged(run);
  setCurrentDetails('The zone is purged');
}
