import { AppError } from '../../src/core/errors';
import { inTransaction } from '../../src/db/transaction';
import { planLimits } from '../../src/postgres/rules';
import { markAvailable, markProvisionFailed, type ProvisionFailure } from '../../src/postgres/service';
import { releaseHost, reserveHost } from '../../src/postgres/store/hosts';
import { enterPhase, lockRun, setInstanceRef, setInstanceRunning, type Run } from '../../src/postgres/store/runs';
import type { ServiceRow } from '../../src/postgres/store/services';
import { ensureAccess, verifyAccess } from './access';
import { isPlaced, onBackend, ownedBy, placed, refOf, type PostgresActivityDeps } from './work';

/** Longest a local provisioning waits for an instance; the ordinary steps go on from what it left. */
const fromPoolMs = 2_500;

/** What provisioning does, step by step (contract postgres.md §5.3). Every one is safe twice and gives way to a newer intent. */
export function createProvisionActivities(deps: PostgresActivityDeps) {
  return {
    provisionFromPool: (run: Run) => provisionFromPool(deps, run),
    ensurePlacement: (run: Run) => ensurePlacement(deps, run),
    ensureInstance: (run: Run) => ensureInstance(deps, run),
    markAvailable: (run: Run) => markAvailable(deps, run),
    /** Undo of placing: nothing is reserved. */
    releasePlacement: (run: Run) => releasePlacement(deps, run),
    /** Settles the service and its operation as failed, or as cancelled by an operator. */
    markProvisionFailed: ({ failure, ...run }: Run & { failure: ProvisionFailure }) => markProvisionFailed(deps, run, failure),
  };
}

/** All five steps in a row when an instance is ready; otherwise, or on any error, `cold`. */
async function provisionFromPool(deps: PostgresActivityDeps, run: Run): Promise<'available' | 'cold'> {
  try {
    await ensurePlacement(deps, run);
    if (!await withinMs(fromPoolMs, ensureInstance(deps, run))) return 'cold';
    await ensureAccess(deps, run);
    await verifyAccess(deps, run);
    await markAvailable(deps, run);
    return 'available';
  } catch (error) {
    deps.log.info({ err: error, serviceId: run.serviceId }, 'provisioning goes on step by step');
    return 'cold';
  }
}

/** Room is reserved on a host, and the host knows. Errors: `no_capacity` when no host of the region has room. */
async function ensurePlacement(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const full: string[] = [];
  for (;;) {
    const service = await reserve(deps, run, full);
    try {
      const { instanceRef } = await onBackend(deps, run, () => deps.postgresBackend.place(refOf(service)));
      ownedBy(await setInstanceRef(deps.db.prisma, run, instanceRef));
      return;
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'no_capacity') throw error;
      await releasePlacement(deps, run);
      full.push(service.hostId);
    }
  }
}

/** The run has begun and its service has a host, with the row locked so that a DELETE comes before or after, never between. */
function reserve(deps: PostgresActivityDeps, run: Run, except: readonly string[]): Promise<ServiceRow & { hostId: string }> {
  return inTransaction(deps.db, async (tx) => {
    const service = ownedBy(await enterPhase(tx, run, 'placing', 'together'));
    if (isPlaced(service)) return service;
    const { region, plan, isolation } = service;
    const wish = { serviceId: run.serviceId, region, backend: isolation === 'database' ? 'host_pool' : 'embedded', bytes: planLimits[plan].storageBytes, except };
    const hostId = await reserveHost(tx, wish);
    if (hostId === null) throw new AppError('no_capacity', 'No host of the region has room.');
    return { ...service, hostId };
  });
}

async function releasePlacement(deps: PostgresActivityDeps, run: Run): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    ownedBy(await lockRun(tx, run, ['provisioning', 'failed']));
    await releaseHost(tx, run.serviceId);
  });
}

/** An instance bound to this service runs. */
async function ensureInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'initializing')));
  const made = await onBackend(deps, run, () => deps.postgresBackend.ensureInstance(refOf(service)));
  ownedBy(await setInstanceRunning(deps.db.prisma, run, made));
}

/** True when it was done in time; what is not goes on in the background and is joined by the next attempt. */
async function withinMs(ms: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  work.catch(() => undefined);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
