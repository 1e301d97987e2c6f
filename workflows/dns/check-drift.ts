import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { DnsActivities } from '../../activities/dns';
import { housekeeping } from '../policies';

const { listDriftedZones, requestZoneSyncs } = proxyActivities<DnsActivities>(housekeeping);

/** Schedule `dns-drift`: every zone that is answered otherwise than it is here is published anew. */
export async function checkDrift(): Promise<{ drifted: number }> {
  let drifted = 0;
  for (let after: string | null = ''; after !== null;) {
    setCurrentDetails(`Comparing what is answered with the zones. Drifted so far: ${drifted}`);
    const page: Awaited<ReturnType<typeof listDriftedZones>> = await listDriftedZones({ after });
    if (page.drifted.length > 0) await requestZoneSyncs({ zoneIds: page.drifted });
    drifted += page.drifted.length;
    after = page.next;
  }
  setCurrentDetails(`Drifted: ${drifted}`);
  return { drifted };
}
