import { randomBytes } from 'node:crypto';
import { roles, type Role } from '../../src/core/caller';
import { newId, type Id } from '../../src/core/ids';
import type { Database } from '../../src/db/client';
import { sessionCookieName, sessionCookieValue } from '../../src/identity/cookie';

export type Tenant = {
  orgId: Id<'org'>; projectId: Id<'prj'>; orgSlug: string; projectSlug: string;
  userIds: Readonly<Record<Role, Id<'usr'>>>;
  /** Cookie header of a fresh session, by role. */
  cookies: Readonly<Record<Role, string>>;
};

/** An organisation with one project and a signed-in member of every role. */
export async function createTenant({ pool }: Database, authSecret: string): Promise<Tenant> {
  const orgId = newId('org');
  const projectId = newId('prj');
  const orgSlug = `org-${randomBytes(6).toString('hex')}`;
  await pool.query('insert into organization (id, name, slug) values ($1, $2, $3)', [orgId, 'Test', orgSlug]);
  await pool.query('insert into project (id, org_id, slug, display_name) values ($1, $2, $3, $4)', [projectId, orgId, 'default', 'Default']);
  const members = await Promise.all(roles.map(async (role) => ({ role, ...await createMember(pool, orgId, role, authSecret) })));
  const byRole = <T>(pick: (member: (typeof members)[number]) => T): Record<Role, T> => {
    const of = (role: Role) => {
      const member = members.find((candidate) => candidate.role === role);
      if (!member) throw new Error(`no ${role}`);
      return pick(member);
    };
    return { viewer: of('viewer'), member: of('member'), admin: of('admin'), owner: of('owner') };
  };
  return { orgId, projectId, orgSlug, projectSlug: 'default', userIds: byRole((member) => member.userId), cookies: byRole((member) => member.cookie) };
}

async function createMember(pool: Database['pool'], orgId: string, role: Role, authSecret: string): Promise<{ userId: Id<'usr'>; cookie: string }> {
  const userId = newId('usr');
  const token = randomBytes(24).toString('base64url');
  await pool.query('insert into "user" (id, name, email) values ($1, $2, $3)', [userId, role, `${userId}@test.test`]);
  await pool.query('insert into member (id, "organizationId", "userId", role) values ($1, $2, $3, $4)', [`mem_${userId}`, orgId, userId, role]);
  await pool.query(`insert into session (id, "userId", token, "expiresAt") values ($1, $2, $3, now() + interval '1 day')`, [newId('ses'), userId, token]);
  return { userId, cookie: `${sessionCookieName}=${sessionCookieValue(token, authSecret)}` };
}
