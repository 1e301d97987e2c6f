import { closeSubscription, openSubscription, release, reserve } from '../billing/service';
import { systemCause, type Cause, type ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { Superseded } from '../core/job-errors';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { getOperation, openOperation, settleOperation } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { settleBackups } from './backups';
import { invalidState, noService, quotaResource } from './faults';
import type { ProvisionFailure, WorkDeps } from './provisioning';
import { lifetimes } from './retention';
import { namesOf, workWeights } from './rules';
import type { Accepted } from './service';
import { failureReason } from './state';
import { beginAgain, setDeletedAgain } from './store/changes';
import { findBackup } from './store/backups';
import { insertPending } from './store/credentials';
import { findRestoreSource } from './store/restores';
import { lockRun, type Run } from './store/runs';
import { lockService, provisionSeconds, type ServiceRow } from './store/services';

type Request = { caller: ProjectCaller; serviceId: string; cause: Cause };

/**
 * A failed service is provisioning again, from the same backup if it began with one, counted and subscribed like a new one; a trial begins anew with it.
 * Errors: `not_found`; `invalid_state` unless failed; 402 as for a creation.
 */
export async function retryService(tx: Tx, request: Request): Promise<Accepted> {
  const service = await requireProjectOf(tx, request);
  if (service.status === 'deleted') throw noService();
  if (service.status !== 'failed') throw invalidState(service, `Only a failed service can be tried again; this one is ${service.status}.`);
  const { trialDays } = lifetimes[service.plan];
  const from = await findRestoreSource(tx, service.id);
  if (!from) return begin(tx, service, { ...request, kind: 'postgres.provision', runSeconds: provisionSeconds, trialDays });
  const backup = await findBackup(tx, from.sourceServiceId, from.backupId);
  return begin(tx, service, { ...request, kind: 'postgres.restore', runSeconds: revivalSeconds(backup?.sizeBytes ?? null), trialDays });
}

/**
 * A deleted service is provisioning with the data it had, under a new password; its trial ends when it would have.
 * Errors: `not_found`; `invalid_state` when it is not deleted or its time to come back has passed; 402 as for a creation.
 */
export async function undeleteService(tx: Tx, request: Request): Promise<Accepted> {
  const service = await requireProjectOf(tx, request);
  if (service.status !== 'deleted') throw invalidState(service, `Only a deleted service can be brought back; this one is ${service.status}.`);
  if (service.recoverableUntil === null || service.recoverableUntil <= new Date() || service.purge || service.hostId === null) {
    throw invalidState(service, 'The data of this service cannot be brought back any more.');
  }
  const runSeconds = revivalSeconds(service.usedBytes);
  return begin(tx, service, { ...request, kind: 'postgres.undelete', runSeconds, trialDays: null });
}

/** How long bringing back so many bytes may take (contract postgres.md §2, Deadlines). */
export function revivalSeconds(bytes: number | null): number {
  return 600 + Math.ceil((bytes ?? 0) / 10_000_000);
}

type Begin = Request & { kind: 'postgres.provision' | 'postgres.undelete' | 'postgres.restore'; runSeconds: number; trialDays: number | null };

const words: Readonly<Record<Begin['kind'], string>> = { 'postgres.provision': 'Provision', 'postgres.undelete': 'Bring back', 'postgres.restore': 'Restore' };

async function begin(tx: Tx, service: ServiceRow, { caller, cause, kind, ...wish }: Begin): Promise<Accepted> {
  const { id, orgId, projectId, plan, status } = service;
  const owner = { orgId, projectId, product: 'postgres' as const };
  await reserve(tx, { ...owner, plan, resource: quotaResource, n: 1 });
  if (!await beginAgain(tx, service, status === 'failed' ? 'failed' : 'deleted', wish)) {
    throw invalidState(service, 'The data of this service cannot be brought back any more.');
  }
  await insertPending(tx, id, { login: namesOf(id, service.isolation).logins[0], overlapSeconds: null, endSessions: false });
  await openSubscription(tx, { ...owner, resourceId: id, plan });
  const payload = { serviceId: id, generation: service.generation + 1 };
  const operation = await openOperation(tx, {
    orgId, projectId, kind, resourceId: id, summary: `${words[kind]} Postgres "${service.displayName}" (${plan})`, requestId: cause.requestId,
    start: kind === 'postgres.provision'
      ? { workflow: 'provisionPostgres', workflowId: workflowIds.provisionPostgres(id), queue: 'postgres', payload, weight: workWeights[plan] }
      : { workflow: 'restorePostgres', workflowId: workflowIds.restorePostgres, queue: 'postgres', payload: { ...payload, source: kind === 'postgres.restore' ? 'backup' : 'retained', seconds: wish.runSeconds }, weight: workWeights[plan] },
  });
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'postgresService', id }, changes: [{ field: 'status', from: status, to: 'provisioning' }] });
  const begun = await lockService(tx, caller.project.id, id);
  if (!begun) throw noService();
  return { service: begun, operation };
}

/** provisioning → deleted again: what was to come back is retained as before and costs nothing. Safe twice. Errors: Superseded. */
export async function markUndeleteFailed({ db }: WorkDeps, run: Run, failure: ProvisionFailure): Promise<void> {
  await inTransaction(db, async (tx) => {
    const service = await lockRun(tx, run, ['provisioning']);
    if (!service || !await setDeletedAgain(tx, run, lifetimes[service.plan].undeleteHours)) {
      const state = (await getOperation(tx, run.operationId))?.state;
      if (state === 'failed' || (state === 'cancelled' && failure.cancelled)) return;
      throw new Superseded();
    }
    const { id, orgId, projectId, plan } = service;
    await settleBackups(tx, id, true);
    if (failure.cancelled) await settleOperation(tx, run.operationId, 'cancelled');
    else await settleOperation(tx, run.operationId, 'failed', { code: failureReason(failure.code), message: 'The service could not be brought back. Its data is kept as it was; try again before recoverableUntil.' });
    await release(tx, { orgId, projectId, product: 'postgres', plan, resource: quotaResource, n: 1 });
    await closeSubscription(tx, id, new Date());
    appendAudit(tx, {
      orgId, projectId, cause: systemCause('restorePostgres'), outcome: 'done', target: { type: 'postgresService', id }, changes: [{ field: 'status', from: 'provisioning', to: 'deleted' }],
    });
  });
}

async function requireProjectOf(tx: Tx, { caller: { project }, serviceId }: Request): Promise<ServiceRow> {
  const service = await lockService(tx, project.id, serviceId);
  if (!service) throw noService();
  if (project.status !== 'active') throw new AppError('invalid_state', 'The project is being deleted.', { status: project.status });
  return service;
}
