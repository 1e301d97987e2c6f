import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { IdentityActivities } from '../../activities/identity';
import { housekeeping } from '../policies';

const { expireIdentityRows } = proxyActivities<IdentityActivities>(housekeeping);

/** Schedule `identity-expire-identity`: ended sessions, tokens and reservations go, ended invitations say so. */
export async function expireIdentity(): Promise<{ changed: number }> {
  const result = await expireIdentityRows();
  setCurrentDetails(`${result.changed} rows`);
  return result;
}
