import { heartbeat } from '@temporalio/activity';
import { advanceTrials, markOverlapEnded, markPurged } from '../../src/postgres/service';
import { findCredentials } from '../../src/postgres/store/credentials';
import { listEndedOverlaps, listExpired } from '../../src/postgres/store/lifecycle';
import type { ServiceRow } from '../../src/postgres/store/services';
import { accessOf } from './access';
import { isPlaced, refOf, type PostgresActivityDeps } from './work';

const pageMax = 100;

/** What time alone does to services. */
export function createLifecycleActivities(deps: PostgresActivityDeps) {
  return {
    advanceTrials: () => advanceTrials(deps, () => heartbeat()),
    endOverlaps: () => endOverlaps(deps),
    attendOverdueServices: () => deps.attendOverdueServices(() => heartbeat()),
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

/** Former passwords whose time is over: NOLOGIN, their sessions ended. The server refuses them by itself from that second on. */
async function endOverlaps(deps: PostgresActivityDeps): Promise<{ ended: number }> {
  let ended = 0;
  for (const service of await listEndedOverlaps(deps.db.prisma, pageMax)) {
    heartbeat();
    if (await endOverlap(deps, service)) ended += 1;
  }
  return { ended };
}

/** A password its customer has changed stays: the server is given back what it has. One that sleeps and was seen so is left until it runs. */
async function endOverlap(deps: PostgresActivityDeps, service: ServiceRow): Promise<boolean> {
  try {
    const found = await findCredentials(deps.db.prisma, service.id);
    if (!isPlaced(service) || !found?.previous) return false;
    const { shown, previous } = found;
    const { verifiers } = await deps.postgresBackend.observe(refOf(service));
    const held = verifiers[shown.login];
    if (held === undefined && shown.inSync === false) return false;
    const { logins } = accessOf(deps, service, { shown, pending: null, previous: null });
    const kept = logins.map((login) => ({ ...login, verifier: held ?? login.verifier }));
    await deps.postgresBackend.ensureAccess({ ...refOf(service), logins: kept, endSessionsOf: [previous.login] });
    return await markOverlapEnded(deps, service, previous.version);
  } catch (error) {
    deps.log.warn({ err: error, serviceId: service.id }, 'an overlap could not be ended yet');
    return false;
  }
}
