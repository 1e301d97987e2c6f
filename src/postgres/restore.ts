import { openSubscription, planAllowing, reserve } from '../billing/service';
import type { Cause, ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { newId } from '../core/ids';
import type { Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { openOperation } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { requireNotSuspended } from './backups';
import { invalidState, noService, quotaResource } from './faults';
import { revivalSeconds } from './revival';
import { lifetimes } from './retention';
import { namesOf, planLimits, workWeights, type Plan } from './rules';
import type { RestoreService } from './schemas/backups';
import type { Accepted } from './service';
import { backupBefore, findBackup, type BackupRow } from './store/backups';
import { setRestoreSource } from './store/restores';
import { insertService, lockService, type ServiceRow } from './store/services';
import { restoreTimes } from './view';

const nameMax = 80;

/**
 * A new service is provisioning from another's data as it was at a time; the other is not touched.
 * Errors: `not_found`; `service_suspended`; `invalid_state`; `validation_error` with `earliest`, `latest`; 402 as for a creation, and for a plan the data does not fit.
 */
export async function restoreService(
  tx: Tx, { caller, serviceId, body, cause }: { caller: ProjectCaller; serviceId: string; body: RestoreService; cause: Cause },
): Promise<Accepted> {
  const { org, project } = caller;
  const source = await lockService(tx, project.id, serviceId);
  if (!source || source.status === 'deleted') throw noService();
  requireNotSuspended(source);
  if (project.status !== 'active') throw new AppError('invalid_state', 'The project is being deleted.', { status: project.status });
  if (source.isolation === 'database') throw invalidState(source, 'This service lives on a shared server, which cannot restore a single one.');
  if (source.status !== 'available' && source.status !== 'updating') throw invalidState(source, `A service that is ${source.status} cannot be restored from.`);
  const { backup, target } = await chooseSource(tx, source, body);
  const plan = body.plan ?? source.plan;
  await requireFit(tx, source, backup, plan);
  const owner = { orgId: org.id, projectId: project.id };
  await reserve(tx, { ...owner, product: 'postgres', plan, resource: quotaResource, n: 1 });
  const id = newId('pg');
  const runSeconds = revivalSeconds(backup.sizeBytes);
  const displayName = body.displayName ?? `${source.displayName.slice(0, nameMax - ' (restored)'.length)} (restored)`;
  const service = await insertService(tx, {
    id, ...owner, displayName, plan, region: source.region, version: source.version, isolation: source.isolation, names: namesOf(id, source.isolation),
    allowedCidrs: source.allowedCidrs, deletionProtection: false, trialDays: lifetimes[plan].trialDays, source: { serviceId, runSeconds },
  });
  await setRestoreSource(tx, id, { backupId: backup.id, target });
  await openSubscription(tx, { ...owner, product: 'postgres', resourceId: id, plan });
  const operation = await openOperation(tx, {
    ...owner, kind: 'postgres.restore', resourceId: id, summary: `Restore Postgres "${source.displayName}" as "${displayName}" (${plan})`, requestId: cause.requestId,
    start: { workflow: 'restorePostgres', workflowId: workflowIds.restorePostgres, queue: 'postgres', payload: { serviceId: id, generation: 1, source: 'backup', seconds: runSeconds }, weight: workWeights[plan] },
  });
  appendAudit(tx, {
    ...owner, cause, outcome: 'done', target: { type: 'postgresService', id },
    changes: [{ field: 'sourceServiceId', from: null, to: serviceId }, { field: 'targetTime', from: null, to: target?.toISOString() ?? null }, { field: 'plan', from: null, to: plan }, { field: 'status', from: null, to: 'provisioning' }],
  });
  return { service: { ...service, operationId: operation.id }, operation };
}

type Chosen = { backup: BackupRow; /** Null: as the backup is. */ target: Date | null };

async function chooseSource(tx: Tx, source: ServiceRow, body: RestoreService): Promise<Chosen> {
  const { earliestRestoreTime: earliest, latestRestoreTime: latest } = restoreTimes(source);
  const refuse = (path: string, message: string) => new AppError('validation_error', message, { issues: [{ path, message }], earliest, latest });
  if (body.backupId !== undefined) {
    const backup = await findBackup(tx, source.id, body.backupId);
    if (backup?.status !== 'complete' || backup.kind === 'final') throw refuse('backupId', 'There is no complete backup of this service with this id.');
    return { backup, target: null };
  }
  if (earliest === null || latest === null) throw refuse('targetTime', 'The service has no complete backup yet.');
  const target = new Date(body.targetTime ?? latest);
  if (target < new Date(earliest) || target > new Date(latest)) throw refuse('targetTime', `The service can be restored to any time from ${earliest} to ${latest}.`);
  const backup = await backupBefore(tx, source.id, target);
  if (!backup) throw refuse('targetTime', 'There is no backup from before this time.');
  return { backup, target };
}

/** The data of that time is about as large as its backup; that of the present says how large it may have become. */
async function requireFit(tx: Tx, source: ServiceRow, backup: BackupRow, plan: Plan): Promise<void> {
  const { storageBytes } = planLimits[plan];
  const used = Math.max(backup.sizeBytes ?? 0, source.plan === plan ? 0 : source.usedBytes ?? 0);
  if (used < storageBytes) return;
  const resource = 'postgres.storage_bytes';
  throw new AppError('plan_limit_reached', `The data takes ${used} bytes and the ${plan} plan allows ${storageBytes}. Choose a larger plan.`,
    { resource, limit: storageBytes, used, upgradeTo: await planAllowing(tx, resource, used) });
}
