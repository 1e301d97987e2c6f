import { ApplicationFailure, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { IdentityActivities, MailRun } from '../../activities/identity';
import { failureOf } from '../job';
import { delivering, marking } from '../policies';

const { deliverAccountMail } = proxyActivities<IdentityActivities>(delivering);
const { markAccountMailSent, markAccountMailFailed } = proxyActivities<IdentityActivities>(marking);

/** Delivers one account mail, trying for a day, and wipes its link. The row is the outbox. */
export async function sendAccountMail({ mailId }: MailRun): Promise<void> {
  try {
    setCurrentDetails('Handing the mail over');
    await deliverAccountMail({ mailId });
  } catch (error) {
    const { code, message } = failureOf(error);
    await markAccountMailFailed({ mailId, code });
    throw ApplicationFailure.nonRetryable(message, code);
  }
  await markAccountMailSent({ mailId });
  setCurrentDetails('Sent');
}
