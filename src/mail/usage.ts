import { allowance, periodAt } from '../billing/service';
import type { Db } from '../db/client';
import { insertUsage, readUsage, type UsageRow } from './store/usage';

const metric = 'mail.recipients';

/**
 * The counter of the billing period that holds the instant exists; made with what the plan includes as its ceiling, which billing
 * raises for who pays for more (contract billing.md §4, Overage). Answers it as it is. Safe at any time and several times at once.
 */
export async function ensureUsage(db: Db, service: { id: string; orgId: string }, at: Date): Promise<UsageRow> {
  const [present] = await readUsage(db, [service.id], at);
  if (present) return present;
  const { start, end } = await periodAt(db, service.orgId, at);
  const { included, overage } = await allowance(db, service.id, metric) ?? { included: 0, overage: false };
  await insertUsage(db, { mailServiceId: service.id, periodStart: start, periodEnd: end, included, paysForMore: overage });
  const [made] = await readUsage(db, [service.id], at);
  if (!made) throw new Error('The usage row was not written.');
  return made;
}
