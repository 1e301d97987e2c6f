import type { Config } from '../config';
import { systemCause } from '../core/caller';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { recordNotice } from './notices';
import { readReputations, takeWarning, type Reputation } from './store/reputation';
import { suspendService } from './suspension';

export type ReputationRules = Pick<Config, 'MAIL_REPUTATION_MIN_RECIPIENTS' | 'MAIL_BOUNCE_RATE_WARNING' | 'MAIL_BOUNCE_RATE_SUSPENSION' | 'MAIL_COMPLAINT_RATE_WARNING' | 'MAIL_COMPLAINT_RATE_SUSPENSION'>;

/** What the live mail of seven days says of a sender (contract mail.md §8). */
export function verdictOn({ attempted, hardBounced, complained }: Pick<Reputation, 'attempted' | 'hardBounced' | 'complained'>, rules: ReputationRules): 'good' | 'warn' | 'suspend' {
  if (attempted < rules.MAIL_REPUTATION_MIN_RECIPIENTS) return 'good';
  const bounces = hardBounced / attempted;
  const complaints = complained / attempted;
  if (bounces >= rules.MAIL_BOUNCE_RATE_SUSPENSION || complaints >= rules.MAIL_COMPLAINT_RATE_SUSPENSION) return 'suspend';
  return bounces >= rules.MAIL_BOUNCE_RATE_WARNING || complaints >= rules.MAIL_COMPLAINT_RATE_WARNING ? 'warn' : 'good';
}

/** Services that bounce or annoy too much are warned once a day, or suspended; answers how many of each. Safe at any time. */
export async function evaluateReputation(deps: { db: Database; config: ReputationRules }, beat: () => void = () => undefined): Promise<{ warned: number; suspended: number }> {
  const counts = { warned: 0, suspended: 0 };
  for (const reputation of await readReputations(deps.db.prisma, deps.config.MAIL_REPUTATION_MIN_RECIPIENTS)) {
    const { serviceId, attempted, hardBounced, complained } = reputation;
    const facts = { recipients: attempted, bounceRate: hardBounced / attempted, complaintRate: complained / attempted };
    const verdict = verdictOn(reputation, deps.config);
    await inTransaction(deps.db, async (tx) => {
      if (verdict === 'suspend' && await suspendService(tx, serviceId, 'reputation', systemCause('evaluateReputation'))) counts.suspended += 1;
      if (verdict !== 'warn' || !await takeWarning(tx, serviceId)) return;
      await recordNotice(tx, { mailServiceId: serviceId, type: 'service.warning', facts });
      counts.warned += 1;
    });
    beat();
  }
  return counts;
}
