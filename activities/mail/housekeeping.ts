import { heartbeat } from '@temporalio/activity';
import type { Config } from '../../src/config';
import type { Database } from '../../src/db/client';
import { evaluateReputation, purgeExpiredMail, type ReputationRules } from '../../src/mail/service';

export type MailHousekeepingDeps = { db: Database; config: ReputationRules & Pick<Config, 'MAIL_CONTENT_RETENTION_DAYS'> };
export type MailHousekeepingActivities = ReturnType<typeof createMailHousekeepingActivities>;

/** What mail does for itself, on the queue `mail`. */
export function createMailHousekeepingActivities(deps: MailHousekeepingDeps) {
  return {
    /** Senders whose mail bounces or annoys too much are warned or suspended. */
    evaluateReputation: (): Promise<{ warned: number; suspended: number }> => evaluateReputation(deps, () => heartbeat()),
    /** What was kept for its time is gone. */
    purgeExpiredMail: (): Promise<{ purged: number }> => purgeExpiredMail(deps, () => heartbeat()),
  };
}
