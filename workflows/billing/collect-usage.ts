import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing';
import { housekeeping } from '../policies';

const { collectMailUsage } = proxyActivities<BillingActivities>(housekeeping);

/** Schedule `billing-collect-usage`: the use of hours that have ended is stored. */
export async function collectUsage(): Promise<{ stored: number }> {
  setCurrentDetails('Collecting what mail has accepted');
  const { stored } = await collectMailUsage();
  setCurrentDetails(`Stored measurements: ${stored}`);
  return { stored };
}
