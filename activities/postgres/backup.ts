import { heartbeat } from '@temporalio/activity';
import { AppError } from '../../src/core/errors';
import { Superseded, TryLater } from '../../src/core/job-errors';
import { markBackupComplete, markBackupExpired, markBackupFailed, startDueBackups, backupDaysOf, type BackupFailure, type BackupRun } from '../../src/postgres/service';
import { listExpiring } from '../../src/postgres/store/backup-schedule';
import { findBackup, setDropped, type Taken } from '../../src/postgres/store/backups';
import { loadService, type ServiceRow } from '../../src/postgres/store/services';
import { isPlaced, refOf, type PostgresActivityDeps } from './work';

const pageMax = 100;

/** Base backups: taken, counted, and taken away after their time (contract postgres.md §5.3). */
export function createBackupActivities(deps: PostgresActivityDeps) {
  return {
    ensureBackup: (run: BackupRun) => ensureBackup(deps, run),
    markBackupComplete: ({ taken, ...run }: BackupRun & { taken: Taken }) => markBackupComplete(deps, run, taken),
    /** Undo of taking one: nothing of it is left. */
    dropBackup: (run: BackupRun) => beating(() => deps.postgresBackend.dropBackup(run.serviceId, run.backupId)),
    markBackupFailed: ({ failure, ...run }: BackupRun & { failure: BackupFailure }) => markBackupFailed(deps, run, failure),
    startDueBackups: () => startDueBackups(deps, () => heartbeat()),
    expireBackups: () => expireBackups(deps),
  };
}

/**
 * The copy is there, whole. A backup runs beside other intents: it goes on under the service's present generation, whatever that has become, and
 * ends only when the service does not serve any more. Errors: Superseded; TryLater.
 */
async function ensureBackup(deps: PostgresActivityDeps, run: BackupRun): Promise<Taken> {
  const service = await requireServing(deps, run);
  try {
    return await beating(() => deps.postgresBackend.snapshot({ ...refOf(service), backupId: run.backupId }));
  } catch (error) {
    await requireServing(deps, run);
    if (error instanceof AppError && error.code === 'restore_unavailable') throw error;
    throw new TryLater('The backup could not be taken.', { cause: error });
  }
}

async function requireServing(deps: PostgresActivityDeps, { serviceId, backupId }: BackupRun): Promise<ServiceRow & { hostId: string }> {
  const [service, backup] = await Promise.all([loadService(deps.db.prisma, serviceId), findBackup(deps.db.prisma, serviceId, backupId)]);
  if (backup?.status === 'complete') throw new Superseded();
  if (!service || backup?.status !== 'running' || !isPlaced(service) || (service.status !== 'available' && service.status !== 'updating')) {
    throw new AppError('backend_error', 'The service does not serve any more.');
  }
  return service;
}

/** What is past its time is gone from the host and from the window. One whose host does not answer is left to the next run. */
async function expireBackups(deps: PostgresActivityDeps): Promise<{ expired: number; left: number }> {
  const found = { expired: 0, left: 0 };
  for (const backup of await listExpiring(deps.db.prisma, backupDaysOf, pageMax)) {
    heartbeat();
    try {
      if (!await markBackupExpired(deps, backup)) continue;
      await deps.postgresBackend.dropBackup(backup.serviceId, backup.id);
      await setDropped(deps.db.prisma, backup.id);
      found.expired += 1;
    } catch (error) {
      found.left += 1;
      deps.log.warn({ err: error, serviceId: backup.serviceId, backupId: backup.id }, 'an expired backup could not be dropped yet');
    }
  }
  return found;
}

export async function beating<T>(call: () => Promise<T>): Promise<T> {
  const beat = setInterval(() => heartbeat(), 2_500);
  try {
    return await call();
  } finally {
    clearInterval(beat);
  }
}
