import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { GatewayActivities } from '../../activities/gateway';
import { retaining } from '../policies';

const { reportGatewayRequests } = proxyActivities<GatewayActivities>(retaining);

/** Schedule `gateway-usage`: billing knows the requests of every hour that is over. */
export async function reportGatewayUsage(): Promise<{ hours: number }> {
  setCurrentDetails('Counting the requests of the hours that are over');
  const { hours } = await reportGatewayRequests();
  setCurrentDetails(`Reported ${hours} hours`);
  return { hours };
}
