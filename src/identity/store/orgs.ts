import type { Role } from '../../core/caller';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { aliasDays } from '../rules';

export type LifeStatus = 'active' | 'deleting';
export type OrgRow = { id: Id<'org'>; slug: string; displayName: string; timeZone: string; status: LifeStatus; createdAt: Date; updatedAt: Date };
export type ProjectRow = { id: Id<'prj'>; orgId: Id<'org'>; slug: string; displayName: string; status: LifeStatus; createdAt: Date; updatedAt: Date };
export type MemberRow = { userId: Id<'usr'>; email: string; displayName: string; role: Role; createdAt: Date; updatedAt: Date };
export type MembershipRow = { orgId: Id<'org'>; orgSlug: string; displayName: string; role: Role };
export type InvitationRow = {
  id: Id<'inv'>; orgId: Id<'org'>; email: string; role: Role; status: 'pending' | 'accepted' | 'revoked' | 'expired';
  inviterId: string; inviterName: string; expiresAt: Date; acceptedAt: Date | null; createdAt: Date; updatedAt: Date;
};
/** Rows after this one: newest first. */
export type After = { createdAt: string; id: string } | null;

const orgColumns = `o.id, o.slug, o.name as "displayName", o.time_zone as "timeZone", o.status, o."createdAt", o.updated_at as "updatedAt"`;
const projectColumns = `id, org_id as "orgId", slug, display_name as "displayName", status, created_at as "createdAt", updated_at as "updatedAt"`;

export async function getOrg(db: Db, orgId: string): Promise<OrgRow | null> {
  const [row] = await rows<OrgRow>(db, `select ${orgColumns} from organization o where id = $1 and status <> 'deleted'`, orgId);
  return row ?? null;
}

/** The organisation's row, locked: members, projects and deletions of one organisation take turns. */
export async function lockOrg(tx: Tx, orgId: string): Promise<OrgRow | null> {
  const [row] = await rows<OrgRow>(tx, `select ${orgColumns} from organization o where id = $1 and status <> 'deleted' for update`, orgId);
  return row ?? null;
}

/** Organisations of a user with the role held there. */
export function listOrgs(db: Db, userId: string, after: After, limit: number): Promise<(OrgRow & { role: Role })[]> {
  return rows(db, `select ${orgColumns}, m.role from member m join organization o on o.id = m."organizationId"
    where m."userId" = $1 and o.status <> 'deleted' and ($2::timestamptz is null or (o."createdAt", o.id) < ($2::timestamptz, $3))
    order by o."createdAt" desc, o.id desc limit $4::int`, userId, after?.createdAt ?? null, after?.id ?? null, limit);
}

export function listMemberships(db: Db, userId: string): Promise<MembershipRow[]> {
  return rows(db, `select o.id as "orgId", o.slug as "orgSlug", o.name as "displayName", m.role from member m join organization o on o.id = m."organizationId"
    where m."userId" = $1 and o.status <> 'deleted' order by o."createdAt" desc, o.id desc`, userId);
}

export async function countOwnedOrgs(tx: Tx, userId: string): Promise<number> {
  const [row] = await rows<{ count: number }>(tx, `select count(*)::int as count from member m join organization o on o.id = m."organizationId"
    where m."userId" = $1 and m.role = 'owner' and o.status <> 'deleted'`, userId);
  return row?.count ?? 0;
}

export async function updateOrg(tx: Tx, orgId: string, to: { displayName: string; slug: string; timeZone: string }): Promise<void> {
  await execute(tx, 'update organization set name = $2, slug = $3, time_zone = $4 where id = $1', orgId, to.displayName, to.slug, to.timeZone);
}

export async function markOrgDeleting(tx: Tx, orgId: string): Promise<void> {
  await execute(tx, `update organization set status = 'deleting' where id = $1 and status = 'active'`, orgId);
}

/** False when it was deleted before. The row stays: invoices name it. */
export async function markOrgDeleted(tx: Tx, orgId: string): Promise<boolean> {
  return await execute(tx, `update organization set status = 'deleted', slug = null where id = $1 and status = 'deleting'`, orgId) === 1;
}

export async function isDatabaseTimeZone(db: Db, name: string): Promise<boolean> {
  return (await rows(db, 'select 1 as one from pg_timezone_names where name = $1', name)).length > 0;
}

/** Slugs beginning with `base` that are in use or reserved, in the scope ('' for organisations, else the organisation). */
export async function takenSlugs(tx: Tx, scope: Id<'org'> | '', base: string, exceptAliasOf: string | null = null): Promise<ReadonlySet<string>> {
  const found = await rows<{ slug: string }>(tx, `
    select slug from organization where $1 = '' and starts_with(slug, $2)
    union all select slug from project where org_id = $1 and starts_with(slug, $2)
    union all select slug from slug_alias where scope = $1 and starts_with(slug, $2) and reserved_until > now() and target_id is distinct from $3`,
  scope, base, exceptAliasOf);
  return new Set(found.map((row) => row.slug));
}

/** Whoever chooses a slug in the scope waits here until the one before has committed. */
export async function lockSlugs(tx: Tx, scope: Id<'org'> | ''): Promise<void> {
  await rows(tx, `select 1 as one from (select pg_advisory_xact_lock(hashtext('identity-slugs'), hashtext($1))) locked`, scope);
}

/** The old slug stays reserved; one that is taken up again is an alias no longer. */
export async function moveAlias(tx: Tx, scope: Id<'org'> | '', subject: { id: string; slug: string }, to: string): Promise<void> {
  await execute(tx, 'delete from slug_alias where scope = $1 and slug = $2', scope, to);
  await execute(tx, `insert into slug_alias (scope, slug, target_id, reserved_until) values ($1, $2, $3, now() + interval '${aliasDays} days')
    on conflict (scope, slug) do update set target_id = excluded.target_id, reserved_until = excluded.reserved_until`, scope, subject.slug, subject.id);
}

/** A deleted resource frees its slug and those it had before. */
export async function dropAliases(tx: Tx, targetId: string): Promise<void> {
  await execute(tx, 'delete from slug_alias where target_id = $1', targetId);
}

export async function insertProject(tx: Tx, project: { id: Id<'prj'>; orgId: Id<'org'>; slug: string; displayName: string }): Promise<ProjectRow> {
  const [row] = await rows<ProjectRow>(tx, `insert into project (id, org_id, slug, display_name) values ($1, $2, $3, $4) returning ${projectColumns}`,
    project.id, project.orgId, project.slug, project.displayName);
  if (!row) throw new Error('The project row was not written.');
  return row;
}

export async function getProject(db: Db, projectId: string): Promise<ProjectRow | null> {
  const [row] = await rows<ProjectRow>(db, `select ${projectColumns} from project where id = $1 and status <> 'deleted'`, projectId);
  return row ?? null;
}

export async function lockProject(tx: Tx, projectId: string): Promise<ProjectRow | null> {
  const [row] = await rows<ProjectRow>(tx, `select ${projectColumns} from project where id = $1 and status <> 'deleted' for update`, projectId);
  return row ?? null;
}

export function listProjects(db: Db, orgId: string, after: After, limit: number): Promise<ProjectRow[]> {
  return rows(db, `select ${projectColumns} from project where org_id = $1 and status <> 'deleted'
    and ($2::timestamptz is null or (created_at, id) < ($2::timestamptz, $3)) order by created_at desc, id desc limit $4::int`,
  orgId, after?.createdAt ?? null, after?.id ?? null, limit);
}

/** Ids of projects that are not deleted, oldest first. */
export async function projectIds(db: Db, orgId: string): Promise<Id<'prj'>[]> {
  const found = await rows<{ id: Id<'prj'> }>(db, `select id from project where org_id = $1 and status <> 'deleted' order by id`, orgId);
  return found.map((row) => row.id);
}

export async function updateProject(tx: Tx, projectId: string, to: { displayName: string; slug: string }): Promise<void> {
  await execute(tx, 'update project set display_name = $2, slug = $3 where id = $1', projectId, to.displayName, to.slug);
}

/** False when it was on its way before. */
export async function markProjectDeleting(tx: Tx, projectId: string): Promise<boolean> {
  return await execute(tx, `update project set status = 'deleting' where id = $1 and status = 'active'`, projectId) === 1;
}

export async function markProjectDeleted(tx: Tx, projectId: string): Promise<boolean> {
  return await execute(tx, `update project set status = 'deleted', slug = null where id = $1 and status = 'deleting'`, projectId) === 1;
}
