import { AppError } from '../../src/core/errors';
import { inTransaction } from '../../src/db/transaction';
import { planLimits, storageBytesOf } from '../../src/postgres/rules';
import { markAvailable, markProvisionFailed, type ProvisionFailure } from '../../src/postgres/service';
import { releaseHost, reserveHost } from '../../src/postgres/store/hosts';
import { enterPhase, enterPlacing, lockRun, openClaimed, setInstanceRef, setInstanceRunning, type Claimed, type Run } from '../../src/postgres/store/runs';
import type { ServiceRow } from '../../src/postgres/store/services';
import { accessOf, ensureSecret, isFresh, verifyAccess } from './access';
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
    const service = await enterPlaced(deps, run);
    const secret = ensureSecret(deps, run); // its CPU time is spent while the host works
    const made = await withinMs(fromPoolMs, claim(deps, run, service), secret);
    if (!made) return 'cold';
    const { provenAt } = await onBackend(deps, run, async () => deps.postgresBackend.ensureAccess({ ...refOf(service), ...accessOf(deps, service, await secret) }));
    if (isFresh(provenAt)) await markAvailable(deps, run, made);
    else await openAndVerify(deps, run, made);
    return 'available';
  } catch (error) {
    deps.log.info({ err: error, serviceId: run.serviceId }, 'provisioning goes on step by step');
    return 'cold';
  }
}

/** A host at once where one is free; else as an ordinary placement waits for it. */
async function enterPlaced(deps: PostgresActivityDeps, run: Run): Promise<ServiceRow & { hostId: string }> {
  const service = ownedBy(await enterPlacing(deps.db.prisma, run, storageBytesOf));
  return isPlaced(service) ? service : reserve(deps, run, []);
}

async function openAndVerify(deps: PostgresActivityDeps, run: Run, made: Claimed): Promise<void> {
  ownedBy(await openClaimed(deps.db.prisma, run, made));
  await verifyAccess(deps, run);
  await markAvailable(deps, run);
}

async function claim(deps: PostgresActivityDeps, run: Run, service: ServiceRow & { hostId: string }) {
  const { instanceRef } = await onBackend(deps, run, () => deps.postgresBackend.place(refOf(service)));
  return { instanceRef, ...await onBackend(deps, run, () => deps.postgresBackend.ensureInstance(refOf({ ...service, instanceRef }))) };
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

/** What it answers in time, else null: what is not done goes on in the background and is joined by the next attempt. `beside`: work nobody may be left to await. */
async function withinMs<T>(ms: number, work: Promise<T>, beside: Promise<unknown>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  for (const unheard of [work, beside]) unheard.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
