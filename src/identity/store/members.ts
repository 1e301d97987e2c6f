import { randomUUID } from 'node:crypto';
import type { Role } from '../../core/caller';
import { AppError } from '../../core/errors';
import { newId, type Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import { databaseError } from '../../db/errors';
import type { Tx } from '../../db/transaction';
import type { After, InvitationRow, MemberRow } from './orgs';
import { invitationDays } from '../rules';

const memberColumns = `m."userId", u.email, u.name as "displayName", m.role, m."createdAt", m.updated_at as "updatedAt"`;

export function listMembers(db: Db, orgId: string, after: After, limit: number): Promise<MemberRow[]> {
  return rows(db, `select ${memberColumns} from member m join "user" u on u.id = m."userId" where m."organizationId" = $1
    and ($2::timestamptz is null or (m."createdAt", m."userId") < ($2::timestamptz, $3)) order by m."createdAt" desc, m."userId" desc limit $4::int`,
  orgId, after?.createdAt ?? null, after?.id ?? null, limit);
}

export async function getMember(db: Db, orgId: string, userId: string): Promise<MemberRow | null> {
  const [row] = await rows<MemberRow>(db, `select ${memberColumns} from member m join "user" u on u.id = m."userId"
    where m."organizationId" = $1 and m."userId" = $2`, orgId, userId);
  return row ?? null;
}

/** What the user may do now; a change of it waits for this transaction. Null: no member any more, or disabled. */
export async function currentRole(tx: Tx, orgId: string, userId: string): Promise<Role | null> {
  const [row] = await rows<{ role: Role }>(tx, `select m.role from member m join "user" u on u.id = m."userId"
    where m."organizationId" = $1 and m."userId" = $2 and u.disabled_at is null for share of m`, orgId, userId);
  return row?.role ?? null;
}

export async function isMemberAddress(db: Db, orgId: string, email: string): Promise<boolean> {
  return (await rows(db, `select 1 as one from member m join "user" u on u.id = m."userId" where m."organizationId" = $1 and u.email = $2`, orgId, email)).length > 0;
}

export async function countMembers(tx: Tx, orgId: string): Promise<number> {
  const [row] = await rows<{ count: number }>(tx, 'select count(*)::int as count from member where "organizationId" = $1', orgId);
  return row?.count ?? 0;
}

/** False when the user was a member before; the role held stays. */
export async function insertMember(tx: Tx, orgId: string, userId: string, role: Role): Promise<boolean> {
  return await execute(tx, `insert into member (id, "organizationId", "userId", role) values ($1, $2, $3, $4)
    on conflict ("organizationId", "userId") do nothing`, randomUUID(), orgId, userId, role) === 1;
}

/** Errors: `last_owner`. */
export async function setMemberRole(tx: Tx, orgId: string, userId: string, role: Role): Promise<void> {
  await keepingOwner(() => execute(tx, 'update member set role = $3 where "organizationId" = $1 and "userId" = $2', orgId, userId, role));
}

/** Errors: `last_owner`. */
export async function deleteMember(tx: Tx, orgId: string, userId: string): Promise<void> {
  await keepingOwner(() => execute(tx, 'delete from member where "organizationId" = $1 and "userId" = $2', orgId, userId));
}

/** The database refuses to leave an organisation without an owner; here its refusal becomes ours. Errors: `last_owner`. */
export async function keepingOwner<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (databaseError(error)?.sqlState !== 'HF001') throw error;
    throw new AppError('last_owner', 'An organisation needs an owner. Make somebody else owner first, or delete the organisation.', {}, { cause: error });
  }
}

/** Who is written to when the organisation's owners must know. */
export async function ownerIds(db: Db, orgId: string): Promise<string[]> {
  const found = await rows<{ userId: string }>(db, `select "userId" from member where "organizationId" = $1 and role = 'owner' order by "userId"`, orgId);
  return found.map((row) => row.userId);
}

/** Past its end a pending invitation is shown as expired at once; the row says so within the hour. */
const invitationColumns = `i.id, i."organizationId" as "orgId", i.email, i.role,
  case when i.status = 'pending' and i."expiresAt" <= now() then 'expired' when i.status in ('canceled', 'rejected') then 'revoked' else i.status end as status,
  i."inviterId", coalesce(i.inviter_name, '') as "inviterName", i."expiresAt", i.accepted_at as "acceptedAt", i."createdAt", i.updated_at as "updatedAt"`;

export function listInvitations(db: Db, orgId: string, after: After, limit: number): Promise<InvitationRow[]> {
  return rows(db, `select ${invitationColumns} from invitation i where i."organizationId" = $1
    and ($2::timestamptz is null or (i."createdAt", i.id) < ($2::timestamptz, $3)) order by i."createdAt" desc, i.id desc limit $4::int`,
  orgId, after?.createdAt ?? null, after?.id ?? null, limit);
}

export async function lockInvitation(tx: Tx, orgId: string, invitationId: string): Promise<InvitationRow | null> {
  const [row] = await rows<InvitationRow>(tx, `select ${invitationColumns} from invitation i where i."organizationId" = $1 and i.id = $2 for update`, orgId, invitationId);
  return row ?? null;
}

/** The invitation a token opens, while it is pending and its organisation lives; locked inside a transaction only. */
export async function findInvitation(db: Db, tokenDigest: string, lock: '' | 'for update of i' = ''): Promise<InvitationRow | null> {
  const [row] = await rows<InvitationRow>(db, `select ${invitationColumns} from invitation_token t join invitation i on i.id = t.invitation_id
    join organization o on o.id = i."organizationId" and o.status = 'active'
    where t.digest = $1 and i.status = 'pending' and i."expiresAt" > now() ${lock}`, tokenDigest);
  return row ?? null;
}

export async function countPendingInvitations(tx: Tx, orgId: string): Promise<number> {
  const [row] = await rows<{ count: number }>(tx, `select count(*)::int as count from invitation where "organizationId" = $1 and status = 'pending' and "expiresAt" > now()`, orgId);
  return row?.count ?? 0;
}

/** The role a pending invitation to the address promises; null when there is none. */
export async function pendingRole(tx: Tx, orgId: string, email: string): Promise<Role | null> {
  const [row] = await rows<{ role: Role }>(tx, `select role from invitation where "organizationId" = $1 and email = $2 and status = 'pending' and "expiresAt" > now()`, orgId, email);
  return row?.role ?? null;
}

/** One pending per address: what was pending is revoked, or expired if it had ended by itself. */
export async function closePendingInvitations(tx: Tx, orgId: string, email: string): Promise<void> {
  await execute(tx, `update invitation set status = case when "expiresAt" <= now() then 'expired' else 'canceled' end
    where "organizationId" = $1 and email = $2 and status = 'pending'`, orgId, email);
}

export async function insertInvitation(
  tx: Tx, invitation: { orgId: Id<'org'>; email: string; role: Role; inviterId: string; inviterName: string }, tokenDigest: string,
): Promise<InvitationRow> {
  const [row] = await rows<InvitationRow>(tx, `
    insert into invitation as i (id, "organizationId", email, role, "inviterId", inviter_name, "expiresAt")
    values ($1, $2, $3, $4, $5, $6, now() + interval '${invitationDays} days') returning ${invitationColumns}`,
  newId('inv'), invitation.orgId, invitation.email, invitation.role, invitation.inviterId, invitation.inviterName);
  if (!row) throw new Error('The invitation row was not written.');
  await execute(tx, 'insert into invitation_token (invitation_id, digest) values ($1, $2)', row.id, tokenDigest);
  return row;
}

/** The old token is void; the new one counts another seven days. */
export async function renewInvitation(tx: Tx, invitationId: string, tokenDigest: string): Promise<InvitationRow> {
  await execute(tx, `insert into invitation_token (invitation_id, digest) values ($1, $2)
    on conflict (invitation_id) do update set digest = excluded.digest`, invitationId, tokenDigest);
  const [row] = await rows<InvitationRow>(tx, `update invitation i set "expiresAt" = now() + interval '${invitationDays} days'
    where id = $1 returning ${invitationColumns}`, invitationId);
  if (!row) throw new Error('The invitation row is gone.');
  return row;
}

export async function settleInvitation(tx: Tx, invitationId: string, status: 'accepted' | 'canceled'): Promise<InvitationRow> {
  const [row] = await rows<InvitationRow>(tx, `update invitation i set status = $2, accepted_at = case when $2 = 'accepted' then now() end
    where id = $1 returning ${invitationColumns}`, invitationId, status);
  if (!row) throw new Error('The invitation row is gone.');
  await execute(tx, 'delete from invitation_token where invitation_id = $1', invitationId);
  return row;
}
