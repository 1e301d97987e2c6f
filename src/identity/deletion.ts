import { closeOrganization } from '../billing/service';
import { systemCause, type Cause, type OrgCaller, type ProjectCaller } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import type { Id } from '../core/ids';
import type { Db } from '../db/client';
import { inTransaction, type Tx } from '../db/transaction';
import { findOpenOperation, openOperation, settleOperation, type OperationRow } from '../operations/store';
import { workflowIds } from '../temporal/ids';
import { appendAudit } from './audit';
import type { By, IdentityDeps } from './deps';
import { keepingOwner } from './store/members';
import {
  dropAliases, getOrg, getProject, listMemberships, lockOrg, lockProject, markOrgDeleted, markOrgDeleting, markProjectDeleted, markProjectDeleting,
  projectIds, type OrgRow, type ProjectRow,
} from './store/orgs';
import { deleteUser, lockUser } from './store/users';

/** What deletions need beside the database. */
export type DeletionDeps = Pick<IdentityDeps, 'db' | 'productDeletions'>;

const deleteProjectKind = 'identity.delete_project';
const deleteOrgKind = 'identity.delete_org';

/**
 * The account with its sessions and memberships is gone; one entry in the chain of each organisation and of the
 * installation, in one order, so that two deletions cannot wait for each other. Errors: `last_owner`.
 */
export async function deleteAccount(tx: Tx, { caller, cause }: By): Promise<void> {
  await lockUser(tx, caller.userId);
  const memberships = (await listMemberships(tx, caller.userId)).toSorted((a, b) => (a.orgId < b.orgId ? -1 : 1));
  for (const { orgId } of memberships) await lockOrg(tx, orgId);
  await keepingOwner(() => deleteUser(tx, caller.userId));
  const target = { type: 'user', id: caller.userId };
  for (const { orgId } of memberships) appendAudit(tx, { orgId, projectId: null, cause, outcome: 'done', target });
  appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'done', target });
}

/**
 * The project is on its way out; again gives the same operation.
 * Errors: `not_found`, `conflict` with `conflicts` while products hold something and `cascade` is off.
 */
export async function deleteProject(deps: DeletionDeps, tx: Tx, { caller, cause }: By<ProjectCaller>, cascade: boolean): Promise<{ project: ProjectRow; operation: OperationRow }> {
  const org = await lockOrg(tx, caller.org.id);
  const project = org && await lockProject(tx, caller.project.id);
  if (!project) throw notFound('Project');
  const open = await findOpenOperation(tx, project.id, [deleteProjectKind]);
  if (open) return { project, operation: open };
  if (!cascade) await requireNothingLive(deps, tx, [project.id]);
  const operation = await beginProjectDeletion(tx, project, cause);
  return { project: { ...project, status: 'deleting' }, operation };
}

async function beginProjectDeletion(tx: Tx, project: ProjectRow, cause: Cause): Promise<OperationRow> {
  await markProjectDeleting(tx, project.id);
  appendAudit(tx, {
    orgId: project.orgId, projectId: project.id, cause, outcome: 'done', target: { type: 'project', id: project.id },
    changes: [{ field: 'status', from: project.status, to: 'deleting' }],
  });
  return openOperation(tx, {
    orgId: project.orgId, projectId: project.id, kind: deleteProjectKind, resourceId: project.id, summary: `Delete project "${project.displayName}"`,
    requestId: cause.requestId,
    start: { workflow: 'deleteProject', workflowId: workflowIds.deleteProject(project.id), queue: 'system', payload: { projectId: project.id } },
  });
}

/** As deleteProject, for the organisation and all its projects. */
export async function deleteOrg(deps: DeletionDeps, tx: Tx, { caller, cause }: By<OrgCaller>, cascade: boolean): Promise<{ org: OrgRow; operation: OperationRow }> {
  const org = await lockOrg(tx, caller.org.id);
  if (!org) throw notFound('Organisation');
  const open = await findOpenOperation(tx, org.id, [deleteOrgKind]);
  if (open) return { org, operation: open };
  if (!cascade) await requireNothingLive(deps, tx, await projectIds(tx, org.id));
  await markOrgDeleting(tx, org.id);
  appendAudit(tx, {
    orgId: org.id, projectId: null, cause, outcome: 'done', target: { type: 'org', id: org.id }, changes: [{ field: 'status', from: org.status, to: 'deleting' }],
  });
  const operation = await openOperation(tx, {
    orgId: org.id, projectId: null, kind: deleteOrgKind, resourceId: org.id, summary: `Delete organisation "${org.displayName}"`, requestId: cause.requestId,
    start: { workflow: 'deleteOrganization', workflowId: workflowIds.deleteOrganization(org.id), queue: 'system', payload: { orgId: org.id } },
  });
  return { org: { ...org, status: 'deleting' }, operation };
}

/** Errors: `conflict` naming what is live, by kind. */
async function requireNothingLive({ productDeletions }: DeletionDeps, db: Db, projects: readonly Id<'prj'>[]): Promise<void> {
  const conflicts: { kind: string; count: number }[] = [];
  for (const product of productDeletions) {
    const count = await product.countLive(db, projects);
    if (count > 0) conflicts.push({ kind: product.kind, count });
  }
  if (conflicts.length > 0) throw new AppError('conflict', 'There are services or zones left. Delete them first, or repeat with cascade=true.', { conflicts });
}

/** Every product has begun to delete what it holds in the project. Safe twice. */
export async function requestProductDeletions(deps: DeletionDeps, projectId: Id<'prj'>): Promise<void> {
  for (const product of deps.productDeletions) {
    await inTransaction(deps.db, (tx) => product.requestDeletion(tx, projectId));
  }
}

/** How much is left in the project; what came in during the deletion is asked to go as well. */
export async function countLeft(deps: DeletionDeps, projectId: Id<'prj'>): Promise<number> {
  let left = 0;
  for (const product of deps.productDeletions) left += await product.countLive(deps.db.prisma, [projectId]);
  if (left > 0) await requestProductDeletions(deps, projectId);
  return left;
}

/** The project is gone, its slug free, the operation succeeded: one commit. Safe twice. */
export async function finishProject(deps: DeletionDeps, projectId: Id<'prj'>, operationId: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const project = await getProject(tx, projectId);
    if (project && await markProjectDeleted(tx, projectId)) {
      await dropAliases(tx, projectId);
      auditGone(tx, { orgId: project.orgId, projectId, action: 'deleteProject', target: { type: 'project', id: projectId } });
    }
    await settleOperation(tx, operationId, 'succeeded');
  });
}

/** Each project of the organisation is on its way out, with an operation of its own. Safe twice. Returns how many are left. */
export async function requestProjectDeletions(deps: DeletionDeps, orgId: Id<'org'>): Promise<number> {
  return inTransaction(deps.db, async (tx) => {
    if (!await lockOrg(tx, orgId)) return 0;
    const left = await projectIds(tx, orgId);
    for (const id of left) {
      const project = await lockProject(tx, id);
      if (project && !await findOpenOperation(tx, id, [deleteProjectKind])) await beginProjectDeletion(tx, project, systemCause('deleteOrg'));
    }
    return left.length;
  });
}

/** Billing has ended the organisation's subscriptions. */
export async function closeBilling(deps: DeletionDeps, orgId: Id<'org'>): Promise<void> {
  await inTransaction(deps.db, (tx) => closeOrganization(tx, orgId, new Date()));
}

/** A failure of billing is written down and never holds a deletion up. */
export async function recordBillingFailure(deps: DeletionDeps, orgId: Id<'org'>, code: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    appendAudit(tx, {
      orgId, projectId: null, cause: systemCause('closeOrganizationBilling'), outcome: 'denied', target: { type: 'org', id: orgId },
      changes: [{ field: 'error', from: null, to: code }],
    });
  });
}

/** The organisation is gone, its slug free; the row stays because invoices name it. Safe twice. */
export async function finishOrg(deps: DeletionDeps, orgId: Id<'org'>, operationId: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const org = await getOrg(tx, orgId);
    if (org && await markOrgDeleted(tx, orgId)) {
      await dropAliases(tx, orgId);
      auditGone(tx, { orgId, projectId: null, action: 'deleteOrg', target: { type: 'org', id: orgId } });
    }
    await settleOperation(tx, operationId, 'succeeded');
  });
}

function auditGone(tx: Tx, gone: { orgId: Id<'org'>; projectId: Id<'prj'> | null; action: string; target: { type: string; id: string } }): void {
  const { orgId, projectId, action, target } = gone;
  appendAudit(tx, { orgId, projectId, cause: systemCause(action), outcome: 'done', target, changes: [{ field: 'status', from: 'deleting', to: 'deleted' }] });
}
