import type { Config } from '../config';
import type { Id } from '../core/ids';
import type { OrgCaller, OrgRef, ProjectCaller, ProjectRef, Role, SessionCaller } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import { prepared, type Database } from '../db/client';
import { readSessionCookie, type SignedCookie } from './cookie';
import type { Engine } from './engine';

export interface SessionDeps {
  db: Database;
  engine: Engine;
  config: Pick<Config, 'AUTH_SECRET' | 'SESSION_MAX_DAYS' | 'SESSION_FRESH_SECONDS'>;
}

export type SessionReading = {
  caller: SessionCaller | OrgCaller | ProjectCaller;
  /** Set-Cookie lines to pass on: the session was renewed. */
  setCookies: readonly string[];
};

type Row = {
  sessionId: Id<'ses'>; userId: Id<'usr'>; email: string; displayName: string; freshUntil: Date | null; renew: boolean;
  orgId: Id<'org'> | null; orgSlug: string; orgName: string; orgStatus: OrgRef['status']; role: Role | null;
  projectId: Id<'prj'> | null; projectSlug: string; projectName: string; projectStatus: ProjectRef['status'];
};

/**
 * One statement for session, user, organisation, membership and project: 0.1 ms instead of the engine's 2. There is no
 * cache, so what was ended, removed or demoted is so on the next request.
 */
const statement = `
  select s.id as "sessionId", u.id as "userId", u.email, u.name as "displayName",
    case when s.fresh_at > now() - make_interval(secs => $5) then s.fresh_at + make_interval(secs => $5) end as "freshUntil",
    s."updatedAt" < now() - interval '1 hour' as renew,
    o.id as "orgId", o.slug as "orgSlug", o.name as "orgName", o.status as "orgStatus", m.role,
    p.id as "projectId", p.slug as "projectSlug", p.display_name as "projectName", p.status as "projectStatus"
  from session s
  join "user" u on u.id = s."userId"
  left join organization o on o.slug = $2
  left join member m on m."organizationId" = o.id and m."userId" = u.id
  left join project p on p.org_id = o.id and p.slug = $3
  where s.token = $1 and s."expiresAt" > now() and s."createdAt" > now() - make_interval(days => $4::int) and u.disabled_at is null`;

/**
 * Who calls. Errors: `unauthenticated` without a live session; `not_found` for an organisation or project that is not
 * there or not the caller's, with `movedTo` when a member used a slug it had before.
 */
export async function readSession(
  deps: SessionDeps, cookieHeader: string | undefined, path: { orgSlug?: string; projectSlug?: string } = {},
): Promise<SessionReading> {
  const cookie = readSessionCookie(cookieHeader, deps.config.AUTH_SECRET);
  if (!cookie) throw unauthenticated();
  const { orgSlug, projectSlug } = path;
  const [row] = await prepared<Row>(deps.db, statement, [cookie.token, orgSlug ?? null, projectSlug ?? null, deps.config.SESSION_MAX_DAYS, deps.config.SESSION_FRESH_SECONDS]);
  if (!row) throw unauthenticated();
  const caller = await callerOf(deps, row, path);
  return { caller, setCookies: row.renew ? await renew(deps.engine, cookie) : [] };
}

async function callerOf(deps: SessionDeps, row: Row, path: { orgSlug?: string; projectSlug?: string }): Promise<SessionReading['caller']> {
  const user: SessionCaller = {
    kind: 'user', userId: row.userId, sessionId: row.sessionId, email: row.email, displayName: row.displayName, freshUntil: row.freshUntil,
  };
  if (path.orgSlug === undefined) return user;
  if (!row.orgId || !row.role) throw await absent(deps, row.userId, '', path.orgSlug);
  const org = { id: row.orgId, slug: row.orgSlug, displayName: row.orgName, status: row.orgStatus };
  const member: OrgCaller = { ...user, org, role: row.role };
  if (path.projectSlug === undefined) return member;
  if (!row.projectId) throw await absent(deps, row.userId, row.orgId, path.projectSlug);
  return { ...member, project: { id: row.projectId, slug: row.projectSlug, displayName: row.projectName, status: row.projectStatus } };
}

/** A member who uses a slug of before learns the new one; nobody else learns that it ever was one. */
async function absent(deps: SessionDeps, userId: Id<'usr'>, scope: Id<'org'> | '', slug: string): Promise<AppError> {
  const kind = scope === '' ? 'Organisation' : 'Project';
  const [moved] = await prepared<{ slug: string }>(deps.db, `
    select coalesce(p.slug, o.slug) as slug from slug_alias a
    left join project p on a.scope <> '' and p.id = a.target_id and p.org_id = a.scope
    join organization o on o.id = case when a.scope = '' then a.target_id else a.scope end
    join member m on m."organizationId" = o.id and m."userId" = $3
    where a.scope = $1 and a.slug = $2 and a.reserved_until > now() and (a.scope = '' or p.slug is not null) and o.slug is not null`, [scope, slug, userId]);
  return moved ? new AppError('not_found', `${kind} not found. It is now called "${moved.slug}".`, { movedTo: moved.slug }) : notFound(kind);
}

async function renew(engine: Engine, cookie: SignedCookie): Promise<readonly string[]> {
  const renewed = await engine.getSession(cookie.value);
  if (!renewed) throw unauthenticated(); // ended between the two
  return renewed.setCookies;
}

export function unauthenticated(): AppError {
  return new AppError('unauthenticated', 'Sign in first.');
}
