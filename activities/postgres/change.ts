import { AppError } from '../../src/core/errors';
import { inTransaction } from '../../src/db/transaction';
import { planLimits } from '../../src/postgres/rules';
import { markChanged, markChangeFailed, markUndeleteFailed, type ProvisionFailure } from '../../src/postgres/service';
import { accessModeOf } from '../../src/postgres/state';
import { endBackups } from '../../src/postgres/store/backups';
import { resizeReservation } from '../../src/postgres/store/hosts';
import { closeAccess, enterPhase, lockRun, openAccess, setInstanceRef, setInstanceRunning, setStopped, type Run } from '../../src/postgres/store/runs';
import { onBackend, ownedBy, placed, refOf, requireRun, undoRefOf, type PostgresActivityDeps } from './work';

/** What changes of a service do, and their undo (contract postgres.md §5.2). Every one is safe twice and gives way to a newer intent. */
export function createChangeActivities(deps: PostgresActivityDeps) {
  return {
    applyLimits: (run: Run) => applyLimits(deps, run),
    stopInstance: (run: Run) => stopInstance(deps, run),
    unblockAccess: (run: Run) => unblockAccess(deps, run),
    revertLimits: (run: Run) => revertLimits(deps, run),
    revertMode: (run: Run) => revertMode(deps, run),
    reviveInstance: (run: Run) => reviveInstance(deps, run),
    markChanged: (run: Run) => markChanged(deps, run),
    /** Settles the change and its operation as undone, or as cancelled by an operator. */
    markChangeFailed: ({ failure, ...run }: Run & { failure: ProvisionFailure }) => markChangeFailed(deps, run, failure),
    markUndeleteFailed: ({ failure, ...run }: Run & { failure: ProvisionFailure }) => markUndeleteFailed(deps, run, failure),
  };
}

/** Room for the larger of both plans is reserved, and the host has the limits of the new one. Errors: `no_capacity`. */
async function applyLimits(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, null)));
  if (!service.pendingPlan) throw new AppError('backend_error', 'There is no plan to change to.');
  const limits = planLimits[service.pendingPlan];
  await reserveBytes(deps, run, Math.max(limits.storageBytes, planLimits[service.plan].storageBytes));
  await onBackend(deps, run, () => deps.postgresBackend.setLimits({ ...refOf(service), limits }));
}

async function revertLimits(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(await requireRun(deps, run, ['updating']));
  await onBackend(deps, run, () => deps.postgresBackend.setLimits(undoRefOf(service)));
  await reserveBytes(deps, run, planLimits[service.plan].storageBytes);
}

async function reserveBytes(deps: PostgresActivityDeps, run: Run, bytes: number): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    ownedBy(await lockRun(tx, run, ['updating']));
    if (!await resizeReservation(tx, run.serviceId, bytes)) throw new AppError('no_capacity', 'The host has no room for the larger plan.');
  });
}

/** Nothing runs, and nothing starts it but `ensureInstance`. */
async function stopInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, null)));
  await onBackend(deps, run, () => deps.postgresBackend.setAccessMode({ ...refOf(service), mode: 'blocked', stop: true }));
  ownedBy(await setStopped(deps.db.prisma, run));
}

/** The service is as open as its storage allows. */
async function unblockAccess(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, null)));
  const mode = accessModeOf({ ...service, accessOpen: true });
  await onBackend(deps, run, () => deps.postgresBackend.setAccessMode({ ...refOf(service), mode, stop: false }));
  ownedBy(await openAccess(deps.db.prisma, run));
}

/** Undo of a suspension or a resumption: running and open as before, or stopped and closed as before. */
async function revertMode(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(await requireRun(deps, run, ['updating']));
  const ref = undoRefOf(service);
  if (service.statusBefore === 'available') {
    const mode = accessModeOf({ ...service, accessOpen: true });
    const made = await onBackend(deps, run, () => deps.postgresBackend.ensureInstance(ref));
    await onBackend(deps, run, () => deps.postgresBackend.setAccessMode({ ...ref, mode, stop: false }));
    ownedBy(await setInstanceRunning(deps.db.prisma, run, made));
    ownedBy(await openAccess(deps.db.prisma, run));
  } else {
    ownedBy(await closeAccess(deps.db.prisma, run));
    await onBackend(deps, run, () => deps.postgresBackend.setAccessMode({ ...ref, mode: 'blocked', stop: true }));
    ownedBy(await setStopped(deps.db.prisma, run));
  }
}

/** The data a deleted service had is its instance again, and runs; nobody gets in yet. Errors: `restore_unavailable`. */
async function reviveInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'restoring')));
  await onBackend(deps, run, () => deps.postgresBackend.restore({ ...refOf(service), source: { kind: 'retained' } }));
  const { instanceRef } = await onBackend(deps, run, () => deps.postgresBackend.place(refOf(service)));
  ownedBy(await setInstanceRef(deps.db.prisma, run, instanceRef));
  await inTransaction(deps.db, (tx) => endBackups(tx, run.serviceId, ['final']));
  const revived = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'starting')));
  const made = await onBackend(deps, run, () => deps.postgresBackend.ensureInstance(refOf(revived)));
  ownedBy(await setInstanceRunning(deps.db.prisma, run, made));
}
