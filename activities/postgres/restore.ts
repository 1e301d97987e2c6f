import { AppError } from '../../src/core/errors';
import { findRestoreSource } from '../../src/postgres/store/restores';
import { enterPhase, setInstanceRef, setInstanceRunning, type Run } from '../../src/postgres/store/runs';
import { onBackend, ownedBy, placed, refOf, type PostgresActivityDeps } from './work';

/** A new service from another's backup. */
export function createRestoreActivities(deps: PostgresActivityDeps) {
  return {
    restoreInstance: (run: Run) => restoreInstance(deps, run),
  };
}

/** The service's instance holds the data of that time, and runs; nobody gets in yet. Errors: `restore_unavailable`. */
async function restoreInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'restoring')));
  const from = await findRestoreSource(deps.db.prisma, run.serviceId);
  if (!from) throw new AppError('restore_unavailable', 'There is nothing to restore from.');
  await onBackend(deps, run, () => deps.postgresBackend.restore({
    ...refOf(service), source: { kind: 'backup', serviceId: from.sourceServiceId, backupId: from.backupId, targetTime: from.target?.toISOString() ?? null },
  }));
  const { instanceRef } = await onBackend(deps, run, () => deps.postgresBackend.place(refOf(service)));
  ownedBy(await setInstanceRef(deps.db.prisma, run, instanceRef));
  const filled = placed(ownedBy(await enterPhase(deps.db.prisma, run, 'starting')));
  ownedBy(await setInstanceRunning(deps.db.prisma, run, await onBackend(deps, run, () => deps.postgresBackend.ensureInstance(refOf(filled)))));
}
