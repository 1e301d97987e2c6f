import type { Cause, OrgCaller, ProjectCaller } from '../core/caller';
import { AppError, invalid, notFound } from '../core/errors';
import { openSubscription, setTimeZone } from '../billing/service';
import { newId, type Id } from '../core/ids';
import type { Tx } from '../db/transaction';
import { appendAudit, type AuditChange } from './audit';
import type { By, IdentityDeps } from './deps';
import {
  countOwnedOrgs, getOrg, insertProject, isDatabaseTimeZone, lockOrg, lockProject, lockSlugs, moveAlias, projectIds, takenSlugs, updateOrg, updateProject,
  getProject, type OrgRow, type ProjectRow,
} from './store/orgs';
import { firstFreeSlug, slugBase } from './rules';
import { lockUser } from './store/users';

type NameAndSlug = { displayName: string; slug?: string | undefined };

/**
 * An organisation with its owner, its project `default` and its dns subscription.
 * Errors: `plan_limit_reached`, `slug_taken`.
 */
export async function createOrg(deps: IdentityDeps, tx: Tx, { caller: owner, cause }: { caller: { userId: Id<'usr'> }; cause: Cause }, given: NameAndSlug): Promise<{ org: OrgRow; project: ProjectRow }> {
  await lockUser(tx, owner.userId); // two at once must not both be the tenth
  const owned = await countOwnedOrgs(tx, owner.userId);
  if (owned >= deps.config.LIMIT_OWNED_ORGS) throw limitReached('orgs', deps.config.LIMIT_OWNED_ORGS, owned);
  const slug = await chooseSlug(tx, '', given, 'org');
  const orgId = await deps.engine.createOrganization(tx, { ownerId: owner.userId, displayName: given.displayName, slug });
  const project = await insertProject(tx, { id: newId('prj'), orgId, slug: 'default', displayName: 'Default' });
  await openSubscription(tx, { orgId, projectId: null, product: 'dns', resourceId: orgId, plan: 'launch' });
  const org = await getOrg(tx, orgId);
  if (!org) throw new Error('The organisation row was not written.');
  const changes = [{ field: 'slug', from: null, to: slug }, { field: 'displayName', from: null, to: org.displayName }];
  appendAudit(tx, { orgId, projectId: null, cause, outcome: 'done', target: { type: 'org', id: orgId }, changes });
  return { org, project };
}

/** Errors: `plan_limit_reached`, `slug_taken`, `invalid_state` when the organisation is being deleted. */
export async function createProject(deps: IdentityDeps, tx: Tx, { caller, cause }: By<OrgCaller>, given: NameAndSlug): Promise<ProjectRow> {
  const org = await lockActiveOrg(tx, caller.org.id);
  const used = (await projectIds(tx, org.id)).length;
  if (used >= deps.config.LIMIT_PROJECTS) throw limitReached('projects', deps.config.LIMIT_PROJECTS, used);
  const slug = await chooseSlug(tx, org.id, given, 'project');
  const project = await insertProject(tx, { id: newId('prj'), orgId: org.id, slug, displayName: given.displayName });
  const changes = [{ field: 'slug', from: null, to: slug }, { field: 'displayName', from: null, to: given.displayName }];
  appendAudit(tx, { orgId: org.id, projectId: project.id, cause, outcome: 'done', target: { type: 'project', id: project.id }, changes });
  return project;
}

export type OrgChange = { displayName?: string | undefined; slug?: string | undefined; timeZone?: string | undefined };

/** Errors: `slug_taken`, `validation_error` for a time zone the database does not know. */
export async function changeOrg(tx: Tx, { caller, cause }: By<OrgCaller>, change: OrgChange): Promise<OrgRow> {
  const org = await lockActiveOrg(tx, caller.org.id);
  if (change.timeZone !== undefined && !await isDatabaseTimeZone(tx, change.timeZone)) throw invalid([{ path: 'timeZone', message: 'must be an IANA time zone such as Europe/Berlin' }]);
  if (change.slug !== undefined) await moveSlug(tx, '', org, change.slug);
  const { displayName = org.displayName, slug = org.slug, timeZone = org.timeZone } = change;
  const to = { displayName, slug, timeZone };
  await updateOrg(tx, org.id, to);
  if (timeZone !== org.timeZone) await setTimeZone(tx, org.id, timeZone);
  auditChange(tx, { orgId: org.id, projectId: null, cause, target: { type: 'org', id: org.id } }, org, to);
  return await getOrg(tx, org.id) ?? org;
}

/** Errors: `slug_taken`, `not_found` when it was deleted meanwhile. */
export async function changeProject(tx: Tx, { caller, cause }: By<ProjectCaller>, change: { displayName?: string | undefined; slug?: string | undefined }): Promise<ProjectRow> {
  const org = await lockActiveOrg(tx, caller.org.id);
  const project = await lockProject(tx, caller.project.id);
  if (!project) throw notFound('Project');
  if (project.status !== 'active') throw beingDeleted('project');
  if (change.slug !== undefined) await moveSlug(tx, org.id, project, change.slug);
  const { displayName = project.displayName, slug = project.slug } = change;
  await updateProject(tx, project.id, { displayName, slug });
  auditChange(tx, { orgId: org.id, projectId: project.id, cause, target: { type: 'project', id: project.id } }, project, { displayName, slug });
  return await getProject(tx, project.id) ?? project;
}

/** Under the scope's lock: the wanted slug, or one made of the name. Errors: `slug_taken`. */
async function chooseSlug(tx: Tx, scope: Id<'org'> | '', given: NameAndSlug, fallback: 'org' | 'project'): Promise<string> {
  await lockSlugs(tx, scope);
  const base = given.slug ?? slugBase(given.displayName, fallback);
  const taken = await takenSlugs(tx, scope, base);
  if (given.slug === undefined) return firstFreeSlug(base, taken);
  if (taken.has(given.slug)) throw slugTaken(given.slug);
  return given.slug;
}

/** The old slug stays reserved for 90 days; its owner may take it up again. Errors: `slug_taken`. */
async function moveSlug(tx: Tx, scope: Id<'org'> | '', subject: { id: string; slug: string }, slug: string): Promise<void> {
  if (slug === subject.slug) return;
  await lockSlugs(tx, scope);
  if ((await takenSlugs(tx, scope, slug, subject.id)).has(slug)) throw slugTaken(slug);
  await moveAlias(tx, scope, subject, slug);
}

/** Errors: `not_found`, `invalid_state`. */
async function lockActiveOrg(tx: Tx, orgId: string): Promise<OrgRow> {
  const org = await lockOrg(tx, orgId);
  if (!org) throw notFound('Organisation');
  if (org.status !== 'active') throw beingDeleted('organisation');
  return org;
}

function auditChange(
  tx: Tx, where: { orgId: Id<'org'>; projectId: Id<'prj'> | null; cause: Cause; target: { type: string; id: string } },
  from: Readonly<Record<string, unknown>>, to: Readonly<Record<string, unknown>>,
): void {
  const changes: AuditChange[] = Object.keys(to).filter((field) => from[field] !== to[field]).map((field) => ({ field, from: from[field], to: to[field] }));
  appendAudit(tx, { ...where, outcome: 'done', changes });
}

/** 402 before any effect. */
export function limitReached(resource: string, limit: number, used: number): AppError {
  return new AppError('plan_limit_reached', `The limit of ${limit} ${resource} is reached.`, { resource, limit, used, upgradeTo: null });
}

function slugTaken(slug: string): AppError {
  return new AppError('slug_taken', `The slug "${slug}" is taken. Choose another.`);
}

function beingDeleted(kind: 'organisation' | 'project'): AppError {
  return new AppError('invalid_state', `This ${kind} is being deleted; it can only be read.`);
}
