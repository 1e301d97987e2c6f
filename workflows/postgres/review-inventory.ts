import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { housekeeping } from '../policies';

const { reviewInventory } = proxyActivities<PostgresActivities>(housekeeping);

/** Schedule `postgres-inventory`: an instance that no living row speaks of is stopped and kept, and somebody told. */
export async function reviewPostgresInventory(): Promise<{ strays: number; removed: number }> {
  setCurrentDetails('Comparing what hosts hold with what is here');
  const found = await reviewInventory();
  setCurrentDetails(`Without a living row: ${found.strays}. Taken out of service: ${found.removed}.`);
  return found;
}
