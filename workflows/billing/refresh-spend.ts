import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing';
import { housekeeping } from '../policies';

const { refreshCeilings } = proxyActivities<BillingActivities>(housekeeping);

/** Schedule `billing-refresh-spend`: what may be used within spend limits is up to date. */
export async function refreshSpend(): Promise<{ limited: number }> {
  setCurrentDetails('Working out what may be used');
  const { limited } = await refreshCeilings();
  setCurrentDetails(`Organisations whose spend limit bounds mail: ${limited}`);
  return { limited };
}
