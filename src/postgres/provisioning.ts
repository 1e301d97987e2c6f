import { closeSubscription, release, startPlanTime } from '../billing/service';
import { systemCause } from '../core/caller';
import type { ErrorCode } from '../core/errors';
import { Superseded } from '../core/job-errors';
import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { appendAudit } from '../identity/service';
import { settleOperation } from '../operations/store';
import { quotaResource } from './faults';
import { failureReason } from './state';
import { lockRun, setAvailable, setFailed, type Claimed, type Run } from './store/runs';
import type { ServiceRow } from './store/services';

export interface WorkDeps {
  readonly db: Database;
}

/** provisioning → available, in one transaction with the operation and the begin of plan time; `claimed`: it is opened with it. Safe twice. Errors: Superseded. */
export async function markAvailable({ db }: WorkDeps, run: Run, claimed: Claimed | null = null): Promise<void> {
  await inTransaction(db, async (tx) => {
    const service = await setAvailable(tx, run, claimed);
    if (!service) {
      if (await lockRun(tx, run, ['available'])) return;
      throw new Superseded();
    }
    await settleOperation(tx, run.operationId, 'succeeded');
    await startPlanTime(tx, run.serviceId, service.updatedAt);
    audit(tx, service, 'available');
  });
}

export type ProvisionFailure = { code: ErrorCode; message: string; cancelled: boolean };

/** provisioning → failed: it holds nothing and costs nothing. Safe twice. Errors: Superseded. */
export async function markProvisionFailed({ db }: WorkDeps, run: Run, failure: ProvisionFailure): Promise<void> {
  await inTransaction(db, async (tx) => {
    const service = await lockRun(tx, run, ['provisioning', 'failed']);
    if (!service) throw new Superseded();
    if (service.status === 'failed') return;
    const reason = failureReason(failure.code);
    await setFailed(tx, run, reason);
    if (failure.cancelled) await settleOperation(tx, run.operationId, 'cancelled');
    else await settleOperation(tx, run.operationId, 'failed', errorOf(failure, reason));
    await release(tx, { orgId: service.orgId, projectId: service.projectId, product: 'postgres', plan: service.plan, resource: quotaResource, n: 1 });
    await closeSubscription(tx, run.serviceId, new Date());
    audit(tx, service, 'failed');
  });
}

/** A backup that is none is told as that, although as a status it is the backend's fault. */
function errorOf({ code }: ProvisionFailure, reason: ReturnType<typeof failureReason>): { code: string; message: string } {
  if (code !== 'restore_unavailable') return { code: reason, message: sentenceOf(reason) };
  return { code, message: 'The backup could not be restored, so what there was of the new service was removed again. Its source is as it was.' };
}

/** What a customer reads; what happened underneath is in the worker's log. */
function sentenceOf(reason: ReturnType<typeof failureReason>): string {
  switch (reason) {
    case 'no_capacity': return 'The region has no room for a service of this plan at the moment.';
    case 'verification_failed': return 'The new database did not accept its own credentials, so it was removed again.';
    case 'deadline_exceeded': return 'Provisioning did not end in time, so it was undone.';
    case 'backend_error': return 'The database could not be made, so what there was of it was removed again.';
  }
}

function audit(tx: Tx, service: ServiceRow, to: 'available' | 'failed'): void {
  appendAudit(tx, {
    orgId: service.orgId, projectId: service.projectId, cause: systemCause('provisionPostgres'), outcome: 'done',
    target: { type: 'postgresService', id: service.id }, changes: [{ field: 'status', from: 'provisioning', to }],
  });
}
