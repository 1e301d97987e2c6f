import { planAllowing } from '../billing/service';
import { systemCause, type Cause, type ProjectCaller } from '../core/caller';
import { AppError, type ErrorCode } from '../core/errors';
import { newId } from '../core/ids';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import { Superseded } from '../core/job-errors';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { getOperation, openOperation, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { invalidState, noService } from './faults';
import type { WorkDeps } from './provisioning';
import { lifetimes } from './retention';
import { plans, workWeights, type Plan } from './rules';
import type { PostgresDeps } from './service';
import type { BackupKind } from './state';
import { listDue } from './store/backup-schedule';
import { countBackups, endBackups, findBackup, insertBackup, insertFinal, listBackups, refreshWindow, setBackupComplete, setBackupFailed, setExpired, type BackupRow, type Taken } from './store/backups';
import { findService, lockAnyService, lockService, type ServiceRow } from './store/services';

/** Manual backups that are kept at a time (contract postgres.md §8). */
const manualMax = 5;
const resource = 'postgres.manual_backups';

export type BackupRun = { serviceId: string; backupId: string; operationId: string; generation: number };
export type AcceptedBackup = { backup: BackupRow; operation: OperationRow };
export type BackupFailure = { code: ErrorCode; message: string; cancelled: boolean };

/** Backups of a service, newest first. Errors: `not_found`, `service_suspended`, `invalid_cursor`. */
export async function pageBackups(deps: PostgresDeps, caller: ProjectCaller, serviceId: string, query: PageRequest): Promise<Page<BackupRow>> {
  const service = await findService(deps.db.prisma, caller.project.id, serviceId);
  if (!service || service.status === 'deleted') throw noService();
  requireNotSuspended(service);
  return readPage(deps.cursors, { list: 'postgres.backups', serviceId }, query, {
    limitDefault: unpagedMax,
    keyOf: (row) => [row.startedAt.toISOString(), row.id],
    fetch: (after, limit) => listBackups(deps.db.prisma, { serviceId, after, limit }),
  });
}

/** A backup is accepted. Errors: `not_found`; `service_suspended`; `invalid_state` unless available and with no other under way; `plan_limit_reached`. */
export async function requestBackup(tx: Tx, { caller, serviceId, cause }: { caller: ProjectCaller; serviceId: string; cause: Cause }): Promise<AcceptedBackup> {
  const service = await lockService(tx, caller.project.id, serviceId);
  if (!service || service.status === 'deleted') throw noService();
  requireNotSuspended(service);
  if (service.isolation === 'database') throw invalidState(service, 'This service lives on a shared server, which takes no backups of its own.');
  const { manual, running } = await countBackups(tx, serviceId);
  const limit = hasBackups(service.plan) ? manualMax : 0;
  if (manual >= limit) {
    throw new AppError('plan_limit_reached', limit === 0 ? 'The trial plan has no backups. Choose a paid plan.' : `A service keeps ${limit} manual backups. They go with time; the daily ones go on.`,
      { resource, limit, used: manual, upgradeTo: limit === 0 ? await planAllowing(tx, 'postgres.storage_bytes', service.usedBytes ?? 1) : null });
  }
  if (service.status !== 'available') throw invalidState(service, `A service that is ${service.status} cannot be backed up.`);
  if (running > 0) throw invalidState(service, 'A backup of the service is under way. Wait for its end.');
  return accept(tx, service, 'manual', cause);
}

/** Every service whose daily backup is due has one accepted. Returns how many; each is started by the relay. */
export async function startDueBackups({ db }: WorkDeps, beat: () => void): Promise<number> {
  const due = await listDue(db.prisma, plans.filter(hasBackups), 100);
  let accepted = 0;
  for (const { id } of due) {
    beat();
    accepted += await inTransaction(db, async (tx) => {
      const service = await lockAnyService(tx, id);
      if (service?.status !== 'available' || (await countBackups(tx, id)).running > 0) return 0;
      await accept(tx, service, 'scheduled', systemCause('backUpPostgres'));
      return 1;
    });
  }
  return accepted;
}

/** running → complete, with its operation. Safe twice. Errors: Superseded. */
export async function markBackupComplete({ db }: WorkDeps, run: BackupRun, taken: Taken): Promise<void> {
  await inTransaction(db, async (tx) => {
    const service = await requireBackedUp(tx, run);
    if (!await setBackupComplete(tx, run.backupId, taken, lifetimes[service.plan].backupDays)) {
      if ((await getOperation(tx, run.operationId))?.state === 'succeeded') return;
      throw new Superseded();
    }
    await refreshWindow(tx, service.id);
    await settleOperation(tx, run.operationId, 'succeeded');
    audit(tx, service, systemCause('backupPostgres'), [{ field: 'backup', from: 'running', to: 'complete' }]);
  });
}

/** running → failed; the service goes on as it was. Safe twice. */
export async function markBackupFailed({ db }: WorkDeps, run: BackupRun, failure: BackupFailure): Promise<void> {
  await inTransaction(db, async (tx) => {
    const service = await requireBackedUp(tx, run);
    await setBackupFailed(tx, run.backupId);
    if (failure.cancelled) await settleOperation(tx, run.operationId, 'cancelled');
    else await settleOperation(tx, run.operationId, 'failed', { code: failure.code === 'deadline_exceeded' ? failure.code : 'backend_error', message: 'The backup could not be taken. Earlier backups are as they were.' });
    audit(tx, service, systemCause('backupPostgres'), [{ field: 'backup', from: 'running', to: 'failed' }]);
  });
}

/** Nothing is restored from the backup any more. Safe twice. False while a service is being made of it: a restore is accepted behind the same lock. */
export async function markBackupExpired({ db }: WorkDeps, { id, serviceId }: Pick<BackupRow, 'id' | 'serviceId'>): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    await lockAnyService(tx, serviceId);
    if (!await setExpired(tx, id)) return false;
    await refreshWindow(tx, serviceId);
    return true;
  });
}

/** What a deletion has retained counts as the last backup; what a purge has removed is none any more. Part of the mark. */
export async function settleBackups(tx: Tx, serviceId: string, kept: boolean): Promise<void> {
  if (kept) await insertFinal(tx, newId('bak'), serviceId);
  else await endBackups(tx, serviceId, ['scheduled', 'manual', 'final']);
}

export function hasBackups(plan: Plan): boolean {
  return lifetimes[plan].backupDays > 0;
}

export function requireNotSuspended(service: ServiceRow): void {
  if (service.status === 'suspended') {
    throw new AppError('service_suspended', 'The service is suspended. Resume it, then repeat this request.', { statusReason: service.statusReason });
  }
}

async function accept(tx: Tx, service: ServiceRow, kind: BackupKind, cause: Cause): Promise<AcceptedBackup> {
  const { id: serviceId, orgId, projectId, generation, plan } = service;
  const backup = await insertBackup(tx, { id: newId('bak'), serviceId, kind });
  const operation = await openOperation(tx, {
    orgId, projectId, kind: 'postgres.backup', resourceId: serviceId, summary: `Back up Postgres "${service.displayName}" (${plan})`, requestId: cause.requestId,
    start: { workflow: 'backupPostgres', workflowId: workflowIds.backupPostgres(backup.id), queue: 'postgres', payload: { serviceId, generation, backupId: backup.id }, weight: workWeights[plan] },
  });
  audit(tx, service, cause, [{ field: 'backup', from: null, to: backup.id }]);
  return { backup, operation };
}

async function requireBackedUp(tx: Tx, { serviceId, backupId }: BackupRun): Promise<ServiceRow> {
  const service = await lockAnyService(tx, serviceId);
  if (!service || !await findBackup(tx, serviceId, backupId)) throw new Superseded();
  return service;
}

function audit(tx: Tx, { id, orgId, projectId }: ServiceRow, cause: Cause, changes: { field: string; from: unknown; to: unknown }[]): void {
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'postgresService', id }, changes });
}
