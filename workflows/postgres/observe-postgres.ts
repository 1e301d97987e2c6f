import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { PostgresActivities } from '../../activities/postgres';
import { housekeeping } from '../policies';

const { observeServices } = proxyActivities<PostgresActivities>(housekeeping);

/** Schedule `postgres-observe`: what each server says of itself is shown. */
export async function observePostgres(): Promise<{ seen: number; silent: number }> {
  setCurrentDetails('Asking every server for its size and state');
  const found = await observeServices();
  setCurrentDetails(`Seen: ${found.seen}. Without an answer: ${found.silent}.`);
  return found;
}
