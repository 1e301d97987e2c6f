import { heartbeat } from '@temporalio/activity';
import { cancelServiceMessages, markServiceRemoved, purgeServiceContent, removeServiceDomains, type DeletionDeps } from '../../src/mail/service';

export type MailServiceRun = { mailServiceId: string; operationId: string };

/** Steps of `deleteMailService`; each may be run again at any time. */
export function createMailDeletionActivities(given: DeletionDeps) {
  const deps = { ...given, beat: () => heartbeat() };
  return {
    async cancelServiceMessages({ mailServiceId }: MailServiceRun): Promise<void> {
      await cancelServiceMessages(deps, mailServiceId);
    },
    async removeServiceDomains({ mailServiceId }: MailServiceRun): Promise<void> {
      await removeServiceDomains(deps, mailServiceId);
    },
    async purgeServiceContent({ mailServiceId }: MailServiceRun): Promise<void> {
      await purgeServiceContent(deps, mailServiceId);
    },
    async markServiceRemoved({ mailServiceId }: MailServiceRun): Promise<void> {
      await markServiceRemoved(deps, mailServiceId);
    },
  };
}
