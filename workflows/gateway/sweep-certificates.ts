import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { GatewayActivities } from '../../activities/gateway';
import { retaining } from '../policies';

const { listDueCertificates } = proxyActivities<GatewayActivities>(retaining);

/** Schedule `gateway-cert-sweep`: certificates are renewed in time, and none outlives the name it serves. */
export async function sweepCertificates(): Promise<{ expired: number; opened: number; retired: number }> {
  setCurrentDetails('Looking for certificates to renew, to expire and to retire');
  const swept = await listDueCertificates();
  setCurrentDetails(`Ordered ${swept.opened}, expired ${swept.expired}, retired ${swept.retired}`);
  return swept;
}
