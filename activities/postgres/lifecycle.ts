import { heartbeat } from '@temporalio/activity';
import { markPurged } from '../../src/postgres/service';
import { listExpired } from '../../src/postgres/store/lifecycle';
import type { ServiceRow } from '../../src/postgres/store/services';
import { isPlaced, refOf, type PostgresActivityDeps } from './work';

const pageMax = 100;

/** What time alone does to services. */
export function createLifecycleActivities(deps: PostgresActivityDeps) {
  return {
    purgeExpiredServices: () => purgeExpiredServices(deps),
  };
}

/**
 * Deleted services whose time to come back has passed hold nothing any more, on no disk. One whose host does not answer is
 * left to the next run and does not keep the others waiting. Returns how many are done.
 */
async function purgeExpiredServices(deps: PostgresActivityDeps): Promise<{ purged: number; left: number }> {
  const expired = await listExpired(deps.db.prisma, pageMax);
  let purged = 0;
  for (const service of expired) {
    heartbeat();
    if (await purge(deps, service)) purged += 1;
  }
  return { purged, left: expired.length - purged };
}

async function purge(deps: PostgresActivityDeps, service: ServiceRow): Promise<boolean> {
  try {
    if (isPlaced(service)) await deps.postgresBackend.destroy({ ...refOf(service), retain: false });
    return await markPurged(deps, service);
  } catch (error) {
    deps.log.warn({ err: error, serviceId: service.id }, 'a deleted service could not be purged yet');
    return false;
  }
}
