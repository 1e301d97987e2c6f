import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { GatewayActivities } from '../../activities/gateway';
import { retaining } from '../policies';

const { maintainGatewayTables } = proxyActivities<GatewayActivities>(retaining);

/** Schedule `gateway-maintain`: tables have room for the days to come, and nothing is kept past its time. */
export async function maintainGateway(): Promise<{ dropped: number; pruned: number }> {
  setCurrentDetails('Making partitions for the days to come, dropping those that are over');
  const done = await maintainGatewayTables();
  setCurrentDetails(`Dropped ${done.dropped} partitions, removed ${done.pruned} rows`);
  return done;
}
