import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { DnsActivities } from '../../activities/dns';
import { retaining } from '../policies';

const { purgeDnsHistory } = proxyActivities<DnsActivities>(retaining);

/** Schedule `dns-retention`: deleted records and change sets go after their time. */
export async function retainDns(): Promise<{ records: number; changeSets: number; trimmedZones: number }> {
  setCurrentDetails('Removing deleted records and change sets that are too old');
  const gone = await purgeDnsHistory();
  setCurrentDetails(`Removed ${gone.records} records and ${gone.changeSets} change sets; ${gone.trimmedZones} zones had too many deleted records`);
  return gone;
}
