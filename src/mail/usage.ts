import { allowance, periodAt } from '../billing/service';
import type { Db } from '../db/client';
import { insertUsage, readUsage, setCeiling, type UsageRow } from './store/usage';

const metric = 'mail.recipients';

/**
 * The counter of the billing period that holds the instant exists; made with the ceiling of the service's plan and
 * subscription (contract billing.md §4, Overage). Answers it as it is. Safe at any time and several times at once.
 */
export async function ensureUsage(db: Db, service: { id: string; orgId: string }, at: Date): Promise<UsageRow> {
  const [present] = await readUsage(db, [service.id], at);
  if (present) return present;
  const { start, end } = await periodAt(db, service.orgId, at);
  await insertUsage(db, { mailServiceId: service.id, periodStart: start, periodEnd: end, ...await ceilingOf(db, service.id) });
  const [made] = await readUsage(db, [service.id], at);
  if (!made) throw new Error('The usage row was not written.');
  return made;
}

/** What the service may use follows its subscription as it is now: after a change of plan or of overage. */
export async function refreshCeiling(db: Db, serviceId: string): Promise<void> {
  await setCeiling(db, serviceId, await ceilingOf(db, serviceId));
}

/** Without overage what is included, with it any number. A service whose subscription has ended gets nothing more. */
async function ceilingOf(db: Db, serviceId: string): Promise<{ included: number; ceiling: number | null }> {
  const { included, overage } = await allowance(db, serviceId, metric) ?? { included: 0, overage: false };
  return { included, ceiling: overage ? null : included };
}
