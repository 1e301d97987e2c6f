import { heartbeat } from '@temporalio/activity';
import { isId } from '../../src/core/ids';
import { inTransaction } from '../../src/db/transaction';
import type { InventoryItem } from '../../src/postgres/ports';
import { namesOf, planLimits } from '../../src/postgres/rules';
import { findOwners, forgetStrays, listReporting, noteStray, type Owner } from '../../src/postgres/store/strays';
import type { PostgresActivityDeps } from './work';

/** What nobody owns is taken out of service after so long: a run may be about to own it. */
const patienceMinutes = 60;
/** No row will ever have it: nothing that comes late is accepted for such an instance. */
const lastGeneration = 2_147_483_647;

export type Reviewed = { strays: number; removed: number };

/** Instances without a living row (contract postgres.md §5.2, `postgres-inventory`). */
export function createInventoryActivities(deps: PostgresActivityDeps) {
  return {
    reviewInventory: () => reviewInventory(deps),
  };
}

async function reviewInventory(deps: PostgresActivityDeps): Promise<Reviewed> {
  const found = { strays: 0, removed: 0 };
  for (const hostId of await listReporting(deps.db.prisma, deps.postgresBackend.name)) {
    heartbeat();
    try {
      await reviewHost(deps, hostId, found);
    } catch (error) {
      deps.log.warn({ err: error, hostId }, 'the inventory of a host could not be reviewed');
    }
  }
  return found;
}

async function reviewHost(deps: PostgresActivityDeps, hostId: string, found: Reviewed): Promise<void> {
  const items = await deps.postgresBackend.inventory(hostId);
  const owners = new Map((await findOwners(deps.db.prisma, items.flatMap(({ serviceId }) => (serviceId === null ? [] : [serviceId])))).map((owner) => [owner.id, owner]));
  const strays = items.filter((item) => item.serviceId !== null && isStray(item, hostId, owners.get(item.serviceId)));
  for (const item of strays) {
    found.strays += 1;
    heartbeat();
    if (await noteStray(deps.db.prisma, { hostId, ...item }) >= patienceMinutes && await remove(deps, hostId, item, owners.get(item.serviceId ?? ''))) found.removed += 1;
  }
  await forgetStrays(deps.db.prisma, hostId, strays.map(({ instanceRef }) => instanceRef));
}

/** Retained data is some deleted row's until that is purged; an instance is some living row's, on this very host. */
function isStray({ retained }: InventoryItem, hostId: string, owner: Owner | undefined): boolean {
  if (!owner) return !retained;
  if (owner.purged) return true;
  return !retained && (owner.hostId !== hostId || owner.status === 'deleted' || owner.status === 'failed');
}

/** It stops and its data is kept, unless its row says that nothing is to be kept any more. */
async function remove(deps: PostgresActivityDeps, hostId: string, { serviceId, instanceRef }: InventoryItem, owner: Owner | undefined): Promise<boolean> {
  if (!isId('pg', serviceId)) return false;
  const retain = !owner?.purged;
  await deps.postgresBackend.destroy({
    serviceId, generation: owner ? owner.generation + 1 : lastGeneration, hostId, instanceRef, names: namesOf(serviceId), limits: planLimits[owner?.plan ?? 'trial'], retain,
  });
  await inTransaction(deps.db, async (tx) => deps.alerts.raise(tx, {
    action: 'strayInstance', by: 'postgres-inventory', orgId: owner?.orgId ?? null, projectId: owner?.projectId ?? null, target: { type: 'postgresService', id: serviceId },
    changes: [{ field: 'instance', from: instanceRef, to: retain ? 'retained' : null }],
  }));
  return true;
}
