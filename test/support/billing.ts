import { newId, type Id } from '../../src/core/ids';
import { openSubscription, reserve, startPlanTime } from '../../src/billing/service';
import type { SubscriptionRow } from '../../src/billing/store/subscriptions';
import type { Database } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';

export type BilledTenant = { orgId: Id<'org'>; projectId: Id<'prj'> };

/** An organisation as billing knows it: its account and its dns subscription. */
export async function newTenant(database: Database): Promise<BilledTenant> {
  const orgId = newId('org');
  await openDns(database, orgId);
  return { orgId, projectId: newId('prj') };
}

/** What makes an organisation does this in the same transaction. */
export function openDns(database: Database, orgId: string, plan = 'launch'): Promise<SubscriptionRow> {
  return inTransaction(database, (tx) => openSubscription(tx, { orgId, projectId: null, product: 'dns', resourceId: orgId, plan }));
}

/** What a product does when it makes a Postgres service. Errors: those of `reserve`. */
export function openPostgres(database: Database, { orgId, projectId }: BilledTenant, plan: string, resourceId: string = newId('pg')): Promise<SubscriptionRow> {
  return inTransaction(database, async (tx) => {
    await reserve(tx, { orgId, projectId, product: 'postgres', plan, resource: 'postgres.services', n: 1 });
    return openSubscription(tx, { orgId, projectId, product: 'postgres', resourceId, plan });
  });
}

/** … and when it is first usable. */
export function makeUsable(database: Database, resourceId: string, at: Date): Promise<boolean> {
  return inTransaction(database, (tx) => startPlanTime(tx, resourceId, at));
}
