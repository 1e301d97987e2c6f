import { heartbeat } from '@temporalio/activity';
import { collectMailUsage, refreshAllCeilings } from '../src/billing/service';
import type { Database } from '../src/db/client';

export type BillingActivityDeps = { db: Database };
export type BillingActivities = ReturnType<typeof createBillingActivities>;

/** Activities on the queue `billing`. */
export function createBillingActivities({ db }: BillingActivityDeps) {
  return {
    /** What mail has accepted in hours that have ended is stored as usage. */
    collectMailUsage: (): Promise<{ stored: number }> => collectMailUsage(db, () => heartbeat()),
    /** What mail services may come to follows plans, overage and spend limits. */
    refreshCeilings: (): Promise<{ limited: number }> => refreshAllCeilings(db, () => heartbeat()),
  };
}
