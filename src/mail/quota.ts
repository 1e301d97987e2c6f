import { findPlanWithUse } from '../billing/service';
import { AppError } from '../core/errors';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { recordNotice } from './notices';
import { markQuotaNoted, readPeriod } from './store/quota';
import { ensureUsage } from './usage';

/** The service's counter of the running period exists. */
export async function openUsagePeriod(database: Database, { serviceId, orgId, at }: { serviceId: string; orgId: string; at: Date }): Promise<void> {
  await ensureUsage(database.prisma, { id: serviceId, orgId }, at);
}

/** Why `n` more recipients are refused: 402 `quota_exceeded` or `spend_limit_reached` with the facts of contract billing.md §4. */
export async function quotaRefusal(database: Database, serviceId: string, n: number): Promise<AppError> {
  const period = await readPeriod(database.prisma, serviceId);
  const used = period?.used ?? 0;
  const limit = period?.ceiling ?? 0;
  const resetAt = period?.periodEnd.toISOString() ?? null;
  if (period?.ceilingReason === 'spend_limit') {
    return new AppError('spend_limit_reached', 'The spend limit of the organisation leaves no room for these recipients. An owner can raise it.',
      { resource: 'mail.recipients', limit, used, resetAt, upgradeTo: null });
  }
  const upgradeTo = await findPlanWithUse(database.prisma, { product: 'mail', resourceId: serviceId, metric: 'mail.recipients', use: used + n });
  const advice = upgradeTo === null ? '' : ` The ${upgradeTo} plan has room.`;
  return new AppError('quota_exceeded', `The plan allows ${limit} recipients in this period, and ${used} are used.${advice}`, { resource: 'mail.recipients', limit, used, resetAt, upgradeTo });
}

/** Tells once a period that four fifths are used, and once that all is. */
export async function noteQuota(database: Database, serviceIds: readonly string[]): Promise<void> {
  await inTransaction(database, async (tx) => {
    for (const { serviceId, reached, used, ceiling, periodEnd } of await markQuotaNoted(tx, serviceIds)) {
      await recordNotice(tx, { mailServiceId: serviceId, type: reached ? 'quota.reached' : 'quota.warning', facts: { used, limit: ceiling, resetAt: periodEnd.toISOString() } });
    }
  });
}
