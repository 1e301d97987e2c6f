import { databaseNow, limits, openSubscription, refreshCeilings, reserve, switchPlan } from '../billing/service';
import type { Cause, ProjectCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { newId, type Id } from '../core/ids';
import { readPage, unpagedMax, type Page, type PageRequest } from '../core/page';
import type { Db } from '../db/client';
import type { Tx } from '../db/transaction';
import { appendAudit, type AuditChange } from '../identity/service';
import { getOperation, openOperation, settleOperation, type OperationRow } from '../operations/store';
import type { MailDeps } from './deps';
import { requireService } from './faults';
import type { ServiceStatus } from './state';
import { findService, insertService, listServices, loadService, lockAnyService, lockService, setDisplayName, setPlan, type MailPlan, type ServiceRow } from './store/services';
import { readUsage } from './store/usage';
import { ensureUsage } from './usage';
import type { ServiceFacts } from './view';

type Owner = { orgId: Id<'org'>; projectId: Id<'prj'> };

/**
 * An active service, subscribed and counted. Errors: 402 `plan_limit_reached`, `payment_required`, `spend_limit_reached`,
 * before anything is written.
 */
export async function createService(tx: Tx, { caller: { org, project }, body, cause }: { caller: ProjectCaller; body: { displayName: string; plan: MailPlan }; cause: Cause }): Promise<ServiceRow> {
  const owner = { orgId: org.id, projectId: project.id };
  await reserve(tx, { ...owner, product: 'mail', plan: body.plan, resource: 'mail.services', n: 1 });
  const id = newId('mls');
  await insertService(tx, { id, ...owner, ...body, sendsPerSecond: await sendsPerSecondOf(tx, org.id, body.plan) });
  const { createdAt } = await openSubscription(tx, { ...owner, product: 'mail', resourceId: id, plan: body.plan });
  await ensureUsage(tx, { id, orgId: org.id }, createdAt);
  auditService(tx, { id, ...owner }, cause, [
    { field: 'displayName', from: null, to: body.displayName }, { field: 'plan', from: null, to: body.plan }, { field: 'status', from: null, to: 'active' },
  ]);
  return requireService(await loadService(tx, id));
}

/** Errors: `not_found` for what is absent, foreign or deleted. */
export async function getService(deps: Pick<MailDeps, 'db'>, projectId: string, serviceId: string): Promise<ServiceRow> {
  return requireService(await findService(deps.db.prisma, projectId, serviceId));
}

/** Services of the project, newest first. Errors: `invalid_cursor`. */
export function pageServices(deps: Pick<MailDeps, 'db' | 'cursors'>, projectId: string, query: PageRequest): Promise<Page<ServiceRow>> {
  return readPage(deps.cursors, { list: 'mail.services', projectId }, query, {
    limitDefault: unpagedMax, keyOf: (row) => [row.createdAt.toISOString(), row.id], fetch: (after, limit) => listServices(deps.db.prisma, projectId, { after, limit }),
  });
}

/** Errors: `not_found`. */
export async function renameService(tx: Tx, request: { caller: ProjectCaller; serviceId: string; displayName: string; cause: Cause }): Promise<ServiceRow> {
  const before = requireService(await lockService(tx, request.caller.project.id, request.serviceId));
  await setDisplayName(tx, before.id, request.displayName);
  auditService(tx, before, request.cause, [{ field: 'displayName', from: before.displayName, to: request.displayName }]);
  return requireService(await loadService(tx, before.id));
}

/**
 * For billing: the pending plan is in force at once, and so are its limits. The operation is settled. Errors: `not_found`;
 * `invalid_state` while the service is being deleted.
 */
export async function changePlan(tx: Tx, { resourceId, plan, cause }: { resourceId: string; plan: string; cause: Cause }): Promise<OperationRow> {
  const service = requireService(await lockAnyService(tx, resourceId));
  if (service.deletedAt || !isMailPlan(plan)) throw new AppError('invalid_state', 'The service is being deleted.', { status: service.status });
  const opened = await openOperation(tx, {
    orgId: service.orgId, projectId: service.projectId, kind: 'mail.change_plan', resourceId, summary: `Change the plan of mail "${service.displayName}" to ${plan}`, requestId: cause.requestId,
  });
  await switchPlan(tx, resourceId, await databaseNow(tx));
  await setPlan(tx, resourceId, { plan, sendsPerSecond: await sendsPerSecondOf(tx, service.orgId, plan) });
  await refreshCeilings(tx, service.orgId);
  await settleOperation(tx, opened.id, 'succeeded');
  auditService(tx, service, cause, [{ field: 'plan', from: service.plan, to: plan }]);
  return await getOperation(tx, opened.id) ?? opened;
}

/** What is shown beside the rows: limits of the plan and the use of the present billing period. In the order of the rows. */
export async function factsOf(db: Db, services: readonly ServiceRow[], now: Date): Promise<ServiceFacts[]> {
  const known = new Map((await readUsage(db, services.map(({ id }) => id), now)).map((usage) => [usage.mailServiceId, usage]));
  return Promise.all(services.map(async (service) => ({
    limits: await limits(db, { orgId: service.orgId, resourceId: service.id, ...(service.deletedAt ? { plan: service.plan } : {}) }, 'mail'),
    usage: known.get(service.id) ?? await ensureUsage(db, service, now),
  })));
}

export function auditService(tx: Tx, { id, orgId, projectId }: Owner & { id: Id<'mls'> }, cause: Cause, changes: AuditChange[]): void {
  appendAudit(tx, { orgId, projectId, cause, outcome: 'done', target: { type: 'mailService', id }, changes });
}

export function auditStatus(tx: Tx, service: ServiceRow, cause: Cause, { status, reason }: { status: ServiceStatus; reason?: string }): void {
  auditService(tx, service, cause, [{ field: 'status', from: service.status, to: status }, ...(reason === undefined ? [] : [{ field: 'suspendedReason', from: service.suspendedReason, to: reason }])]);
}

async function sendsPerSecondOf(tx: Tx, orgId: string, plan: MailPlan): Promise<number> {
  return (await limits(tx, { orgId, plan }, 'mail'))['mail.sends_per_second'] ?? 1;
}

function isMailPlan(plan: string): plan is MailPlan {
  return plan === 'launch' || plan === 'growth' || plan === 'business';
}
