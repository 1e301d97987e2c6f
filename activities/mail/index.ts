import { createMailDeletionActivities } from './deletion';
import { createDeliveryActivities } from './delivery';
import { createMailDomainActivities } from './domains';
import { createMailHousekeepingActivities } from './housekeeping';

export type MailActivityDeps = Parameters<typeof createMailDeletionActivities>[0] & Parameters<typeof createMailDomainActivities>[0] & Parameters<typeof createDeliveryActivities>[0]
  & Parameters<typeof createMailHousekeepingActivities>[0];
export type MailActivities = ReturnType<typeof createMailActivities>;

/** Activities on the queues `mail` and `mail-delivery`. */
export function createMailActivities(deps: MailActivityDeps) {
  return { ...createMailDomainActivities(deps), ...createMailDeletionActivities(deps), ...createDeliveryActivities(deps), ...createMailHousekeepingActivities(deps) };
}
