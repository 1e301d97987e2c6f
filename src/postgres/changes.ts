import { abandonPlanChange, databaseNow, switchPlan } from '../billing/service';
import { systemCause, type Cause } from '../core/caller';
import { Superseded } from '../core/job-errors';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit, type AuditChange } from '../identity/service';
import { getOperation, openOperation, settleOperation } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { invalidState, noService } from './faults';
import type { ProvisionFailure, WorkDeps } from './provisioning';
import { planLimits, workWeights } from './rules';
import type { Accepted } from './service';
import { changeRules, failureReason, type Change, type Status } from './state';
import { beginChange, setChanged, setUnchanged, type NewChange } from './store/changes';
import { destroyOnes, promotePending } from './store/credentials';
import { resizeReservation } from './store/hosts';
import { lockRun, type Run } from './store/runs';
import { loadService, type ServiceRow } from './store/services';

const words: Readonly<Record<Change, string>> = { rotate: 'Rotate the password of', plan: 'Change the plan of', suspend: 'Suspend', resume: 'Resume' };

/** The service, locked by the caller, is updating and its run is accepted. Errors: `invalid_state` for what its status does not allow. */
export async function acceptChange(tx: Tx, service: ServiceRow, wish: NewChange & { cause: Cause; changes?: AuditChange[] }): Promise<Accepted> {
  const { change, cause } = wish;
  const allowed: readonly Status[] = changeRules[change].from;
  if (!allowed.includes(service.status)) throw invalidState(service, sentenceOfState(service, change));
  if (!await beginChange(tx, service, wish)) throw new Error(`${service.id} changed under its lock.`);
  const { id, orgId, projectId } = service;
  const plan = wish.pendingPlan ?? service.plan;
  const operation = await openOperation(tx, {
    orgId, projectId, kind: changeRules[change].kind, resourceId: id, summary: `${words[change]} Postgres "${service.displayName}" (${plan})`, requestId: cause.requestId,
    start: {
      workflow: 'changePostgres', workflowId: workflowIds.changePostgres, queue: 'postgres',
      payload: { serviceId: id, generation: service.generation + 1, change }, weight: workWeights[plan],
    },
  });
  audit(tx, service, cause, [{ field: 'status', from: service.status, to: 'updating' }, ...wish.changes ?? []]);
  const updated = await loadService(tx, id);
  if (!updated) throw noService();
  return { service: updated, operation };
}

/**
 * updating → what the change leads to, in one transaction with password, plan, reservation and operation. What was suspended because its trial had
 * ended is resumed once it is paid for. Safe twice. Errors: Superseded.
 */
export async function markChanged({ db }: WorkDeps, run: Run): Promise<void> {
  await inTransaction(db, async (tx) => {
    const before = await lockRun(tx, run, ['updating']);
    const after = before && await setChanged(tx, run);
    if (!before || !after) {
      if ((await getOperation(tx, run.operationId))?.state === 'succeeded') return;
      throw new Superseded();
    }
    if (before.change === 'rotate') await promotePending(tx, run.serviceId);
    if (before.pendingPlan) {
      await resizeReservation(tx, run.serviceId, planLimits[after.plan].storageBytes);
      await switchPlan(tx, run.serviceId, await databaseNow(tx));
    }
    await settleOperation(tx, run.operationId, 'succeeded');
    audit(tx, after, systemCause('changePostgres'), [
      { field: 'status', from: 'updating', to: after.status }, ...before.plan === after.plan ? [] : [{ field: 'plan', from: before.plan, to: after.plan }],
    ]);
    if (after.status === 'suspended' && after.statusReason === 'trial_expired' && after.plan !== 'trial') {
      await acceptChange(tx, after, { change: 'resume', cause: systemCause('changePostgres') });
    }
  });
}

/** updating → where it came from: the change is off and has cost nothing. Safe twice. Errors: Superseded. */
export async function markChangeFailed({ db }: WorkDeps, run: Run, failure: ProvisionFailure): Promise<void> {
  await inTransaction(db, async (tx) => {
    const before = await lockRun(tx, run, ['updating']);
    if (!before || !await setUnchanged(tx, run)) {
      const state = (await getOperation(tx, run.operationId))?.state;
      if (state === 'failed' || (state === 'cancelled' && failure.cancelled)) return;
      throw new Superseded();
    }
    if (before.change === 'rotate') await destroyOnes(tx, run.serviceId, ['pending']);
    if (before.pendingPlan) await abandonPlanChange(tx, run.serviceId);
    const code = failureReason(failure.code);
    if (failure.cancelled) await settleOperation(tx, run.operationId, 'cancelled');
    else await settleOperation(tx, run.operationId, 'failed', { code, message: sentenceOf(code) });
    audit(tx, before, systemCause('changePostgres'), [{ field: 'status', from: 'updating', to: before.statusBefore }]);
  });
}

function sentenceOfState({ status }: ServiceRow, change: Change): string {
  if (status === 'updating') return 'Another change of the service is under way. Wait for its end, then repeat this request.';
  return `A service that is ${status} cannot be changed in this way; ${changeRules[change].from.join(' or ')} ones can.`;
}

function sentenceOf(code: ReturnType<typeof failureReason>): string {
  switch (code) {
    case 'no_capacity': return 'The host of the service has no room for the larger plan at the moment.';
    case 'verification_failed': return 'The database did not accept its own credentials, so the change was undone.';
    case 'deadline_exceeded': return 'The change did not end in time, so it was undone.';
    case 'backend_error': return 'The change could not be made, so it was undone.';
  }
}

function audit(tx: Tx, { id, orgId, projectId }: ServiceRow, cause: Cause, changes: AuditChange[]): void {
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'postgresService', id }, changes });
}
