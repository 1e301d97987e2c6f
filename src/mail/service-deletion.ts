import { closeSubscription, databaseNow, release } from '../billing/service';
import { systemCause, type Cause, type ProjectCaller } from '../core/caller';
import type { Database } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { revokeServiceKeys } from '../identity/service';
import { openOperation, openOperationsOf, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { toldOf, writeChanges, type Change } from './changes';
import type { MailDeps } from './deps';
import { endDomain } from './domains';
import { requireService } from './faults';
import { auditStatus } from './services';
import { lockMessages } from './store/changes';
import { purgeContentPage, purgeRowsPage, takeUnsettled, type PageOfMessages } from './store/purge';
import { recipientsOfMessages } from './store/recipients';
import { listDomainIds } from './store/domains';
import { liveServiceIds, loadService, lockAnyService, lockService, setDeleting, setRemoved, type ServiceRow } from './store/services';

const page = 500;
const kind = 'mail.delete_service';

/** Nothing of the service answers any more and none of its keys work; its mail is being cancelled. Errors: `not_found`. */
export async function deleteService(tx: Tx, { caller, serviceId, cause }: { caller: ProjectCaller; serviceId: string; cause: Cause }): Promise<{ service: ServiceRow; operation: OperationRow }> {
  return acceptDeletion(tx, requireService(await lockService(tx, caller.project.id, serviceId)), cause);
}

/** For identity: every service of the project is being deleted. */
export async function requestDeletion(tx: Tx, projectId: string): Promise<void> {
  for (const id of await liveServiceIds(tx, { projectId })) {
    const service = await lockAnyService(tx, id);
    if (service && !service.deletedAt) await acceptDeletion(tx, service, systemCause('deleteProject'));
  }
}

async function acceptDeletion(tx: Tx, service: ServiceRow, cause: Cause): Promise<{ service: ServiceRow; operation: OperationRow }> {
  if (!await setDeleting(tx, service.id)) throw new Error(`${service.id} changed under its lock.`);
  await revokeServiceKeys(tx, service.id);
  await release(tx, { orgId: service.orgId, projectId: service.projectId, product: 'mail', resource: 'mail.services', n: 1 });
  await closeSubscription(tx, service.id, await databaseNow(tx));
  auditStatus(tx, service, cause, { status: 'deleting' });
  return { service: requireService(await loadService(tx, service.id)), operation: await openDeletion(tx, service, cause) };
}

/** The work of a deletion; reconcile opens it anew where it was lost. */
export function openDeletion(tx: Tx, service: Pick<ServiceRow, 'id' | 'orgId' | 'projectId' | 'displayName'>, cause: Cause): Promise<OperationRow> {
  return openOperation(tx, {
    orgId: service.orgId, projectId: service.projectId, kind, resourceId: service.id, summary: `Delete mail "${service.displayName}"`, requestId: cause.requestId,
    start: { workflow: 'deleteMailService', workflowId: workflowIds.deleteMailService(service.id), queue: 'mail', payload: { mailServiceId: service.id } },
  });
}

export type DeletionDeps = Pick<MailDeps, 'db' | 'dnsPlatform'> & { /** Between pages. */ beat?: () => void };

/** Whatever had not been handed over is cancelled; what is on its way ends as it may. */
export async function cancelServiceMessages(deps: DeletionDeps, mailServiceId: string): Promise<void> {
  await everyPage(deps, (tx) => cancelPage(tx, mailServiceId));
}

/** What is being tried is left to end: a deferral becomes a cancellation. */
async function cancelPage(tx: Tx, mailServiceId: string): Promise<number> {
  const ids = await takeUnsettled(tx, mailServiceId, page);
  const messages = await lockMessages(tx, ids);
  const waiting = (await recipientsOfMessages(tx, ids)).filter(({ status, retryOwner }) => status === 'queued' || (status === 'deferred' && retryOwner === 'us'));
  await writeChanges(tx, waiting.flatMap((before): Change[] => {
    const message = messages.get(before.messageId);
    const after = { ...before, status: 'cancelled' as const, statusReason: 'service_deleted' as const, nextAttemptAt: null };
    return message ? [{ message, before, after, told: [toldOf(after, 'cancelled', message.now, { source: 'api', attempt: null })] }] : [];
  }));
  return ids.length;
}

/** No domain of the service is left, and nothing of them in hosted zones. */
export async function removeServiceDomains(deps: DeletionDeps, mailServiceId: string): Promise<void> {
  for (const id of await listDomainIds(deps.db.prisma, mailServiceId)) {
    await inTransaction(deps.db, async (tx) => void await endDomain(tx, deps, id, systemCause('deleteMailService')));
    deps.beat?.();
  }
}

/** No body, captured mail, suppression or webhook is left; what happened to messages stays for its time. */
export async function purgeServiceContent(deps: DeletionDeps, mailServiceId: string): Promise<void> {
  let after: PageOfMessages | null = null;
  await everyPage(deps, async (tx) => {
    after = await purgeContentPage(tx, mailServiceId, after, page);
    return after === null ? 0 : 1;
  });
  await everyPage(deps, (tx) => purgeRowsPage(tx, mailServiceId, page));
}

/** deleting → removed, and every deletion of it has succeeded. */
export async function markServiceRemoved(deps: { db: Database }, mailServiceId: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const service = await lockAnyService(tx, mailServiceId);
    if (!service) return;
    if (await setRemoved(tx, mailServiceId)) auditStatus(tx, service, systemCause('deleteMailService'), { status: 'removed' });
    for (const { id } of await openOperationsOf(tx, mailServiceId, kind)) await settleOperation(tx, id, 'succeeded');
  });
}

/** One transaction a page, until a page finds nothing. */
async function everyPage({ db, beat }: DeletionDeps, work: (tx: Tx) => Promise<number>): Promise<void> {
  while (await inTransaction(db, work) > 0) beat?.();
}
