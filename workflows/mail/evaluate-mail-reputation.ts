import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { MailHousekeepingActivities } from '../../activities/mail/housekeeping';
import { housekeeping } from '../policies';

const { evaluateReputation } = proxyActivities<MailHousekeepingActivities>(housekeeping);

/** Schedule `mail-reputation`: senders whose mail bounces or annoys too much are warned or suspended. */
export async function evaluateMailReputation(): Promise<{ warned: number; suspended: number }> {
  setCurrentDetails('Weighing the mail of the last seven days');
  const found = await evaluateReputation();
  setCurrentDetails(`Warned: ${found.warned}. Suspended: ${found.suspended}.`);
  return found;
}
