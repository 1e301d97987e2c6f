import { closeSubscription, release } from '../billing/service';
import { systemCause, type Cause, type ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { Superseded } from '../core/job-errors';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { findOpenOperation, openOperation, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { settleBackups } from './backups';
import { noService, quotaResource } from './faults';
import { workWeights } from './rules';
import type { WorkDeps } from './provisioning';
import { lifetimes } from './retention';
import { counted, holdingKinds, type Status } from './state';
import { lockRun, setDeleted, type Run } from './store/runs';
import { askPurge, beginDeletion, findService, lockLiving, lockService, type ServiceRow } from './store/services';

export type Deletion = { service: ServiceRow; operation: OperationRow | null };

/**
 * The service is deleting and nobody gets in any more; asked again, the same operation. `purge`: nothing is retained, also
 * of what was deleted before. Errors: `not_found`, `deletion_protected`.
 */
export async function deleteService(
  tx: Tx, request: { caller: ProjectCaller; serviceId: string; purge: boolean; cause: Cause },
): Promise<Deletion> {
  const { caller: { project }, serviceId, purge, cause } = request;
  const service = await lockService(tx, project.id, serviceId);
  if (!service || (service.status === 'deleted' && !purge)) throw noService();
  if (service.status === 'deleting' || service.status === 'deleted') {
    if (purge && await askPurge(tx, serviceId)) audit(tx, service, cause, [{ field: 'purge', from: false, to: true }]);
    return reread(tx, service, await findOpenOperation(tx, serviceId, ['postgres.delete']));
  }
  if (service.deletionProtection) {
    throw new AppError('deletion_protected', 'The service is protected from deletion. Switch deletionProtection off first.');
  }
  return reread(tx, service, await acceptDeletion(tx, service, purge, cause));
}

/** Every service of the project is deleting: its deletion cascades, whatever protects one (contract postgres.md §4.4). */
export async function requestDeletion(tx: Tx, projectId: string): Promise<void> {
  for (const service of await lockLiving(tx, projectId)) await acceptDeletion(tx, service, false, systemCause('deleteProject'));
}

/** deleting → deleted: nothing reachable, keys destroyed. Safe twice. Errors: Superseded. */
export async function markDeleted(deps: WorkDeps, run: Run): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const service = await lockRun(tx, run, ['deleting', 'deleted']);
    if (!service) throw new Superseded();
    if (service.status === 'deleted') return;
    await setDeleted(tx, run, lifetimes[service.plan].undeleteHours);
    await settleBackups(tx, service.id, service.hostId !== null && !service.purge);
    await settleOperation(tx, run.operationId, 'succeeded');
    audit(tx, service, systemCause('deletePostgres'), [{ field: 'status', from: 'deleting', to: 'deleted' }]);
  });
}

/** Other intents end, the place in the plan is free again and plan time stops: none of it can refuse. */
export async function acceptDeletion(tx: Tx, service: ServiceRow, purge: boolean, cause: Cause): Promise<OperationRow> {
  if (!await beginDeletion(tx, { id: service.id, generation: service.generation, purge })) throw new Error(`${service.id} changed under its lock.`);
  await cancelOpenOperations(tx, service.id);
  const owner = { orgId: service.orgId, projectId: service.projectId };
  if (isCounted(service.status)) {
    await release(tx, { ...owner, product: 'postgres', plan: service.plan, resource: quotaResource, n: 1 });
    await closeSubscription(tx, service.id, new Date());
  }
  const generation = service.generation + 1;
  audit(tx, service, cause, [{ field: 'status', from: service.status, to: 'deleting' }, ...(purge ? [{ field: 'purge', from: false, to: true }] : [])]);
  return openOperation(tx, {
    ...owner, kind: 'postgres.delete', resourceId: service.id, summary: `Delete Postgres "${service.displayName}" (${service.plan})`, requestId: cause.requestId,
    start: {
      workflow: 'deletePostgres', workflowId: workflowIds.deletePostgres(service.id), queue: 'postgres', payload: { serviceId: service.id, generation },
      weight: workWeights[service.plan],
    },
  });
}

async function cancelOpenOperations(tx: Tx, serviceId: string): Promise<void> {
  const kinds = [...holdingKinds.filter((name) => name !== 'postgres.delete'), 'postgres.backup'];
  for (let open = await findOpenOperation(tx, serviceId, kinds); open; open = await findOpenOperation(tx, serviceId, kinds)) {
    await settleOperation(tx, open.id, 'cancelled');
  }
}

async function reread(tx: Tx, { id, projectId }: ServiceRow, operation: OperationRow | null): Promise<Deletion> {
  const service = await findService(tx, projectId, id);
  if (!service) throw noService();
  return { service, operation };
}

function isCounted(status: Status): boolean {
  const statuses: readonly Status[] = counted;
  return statuses.includes(status);
}

function audit(tx: Tx, service: ServiceRow, cause: Cause, changes: { field: string; from: unknown; to: unknown }[]): void {
  const { id, orgId, projectId } = service;
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'postgresService', id }, changes });
}
