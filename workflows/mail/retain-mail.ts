import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { MailHousekeepingActivities } from '../../activities/mail/housekeeping';
import { housekeeping } from '../policies';

const { purgeExpiredMail } = proxyActivities<MailHousekeepingActivities>(housekeeping);

/** Schedule `mail-retention`: bodies, messages and what belongs to them are gone after their time. */
export async function retainMail(): Promise<{ purged: number }> {
  setCurrentDetails('Removing what is past its time');
  const done = await purgeExpiredMail();
  setCurrentDetails(`Removed: ${done.purged}`);
  return done;
}
