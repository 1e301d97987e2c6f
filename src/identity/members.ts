import type { OrgCaller, Role } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import type { Tx } from '../db/transaction';
import { appendAudit } from './audit';
import type { By } from './deps';
import { deleteMember, getMember, setMemberRole } from './store/members';
import type { MemberRow } from './store/orgs';
import { lockOrg } from './store/orgs';
import { may } from './permissions';
import { mayHandle } from './rules';

/** Errors: `not_found`, `forbidden` for a role above one's own, `last_owner`. */
export async function changeRole(tx: Tx, { caller, cause }: By<OrgCaller>, userId: string, role: Role): Promise<MemberRow> {
  const member = await lockMember(tx, caller, userId);
  await requireRank(tx, caller, member.role);
  await requireRank(tx, caller, role);
  if (member.role === role) return member;
  await setMemberRole(tx, caller.org.id, userId, role);
  auditMember(tx, { caller, cause }, userId, [{ field: 'role', from: member.role, to: role }]);
  return await getMember(tx, caller.org.id, userId) ?? member;
}

/** Members leave by themselves; others need `members:manage`. Errors: `not_found`, `forbidden`, `last_owner`. */
export async function removeMember(tx: Tx, { caller, cause }: By<OrgCaller>, userId: string): Promise<void> {
  const member = await lockMember(tx, caller, userId);
  if (userId !== caller.userId) {
    const own = await requireRank(tx, caller, member.role);
    if (!may(own, 'members:manage')) throw new AppError('forbidden', 'Your role does not include members:manage. Ask an owner of the organisation.', { required: 'members:manage' });
  }
  await deleteMember(tx, caller.org.id, userId);
  auditMember(tx, { caller, cause }, userId, [{ field: 'role', from: member.role, to: null }]);
}

/**
 * The caller's role as it is now, not as it was when the request was let in. The organisation is locked.
 * Errors: `forbidden` when `role` is above it or the caller is no member any more.
 */
export async function requireRank(tx: Tx, caller: OrgCaller, role: Role): Promise<Role> {
  const own = (await getMember(tx, caller.org.id, caller.userId))?.role;
  if (own && mayHandle(own, role)) return own;
  throw new AppError('forbidden', `Only somebody with the role ${role} or above may do this.`, { required: role });
}

async function lockMember(tx: Tx, caller: OrgCaller, userId: string): Promise<MemberRow> {
  const org = await lockOrg(tx, caller.org.id);
  const member = org && await getMember(tx, org.id, userId);
  if (!member) throw notFound('Member');
  return member;
}

function auditMember(tx: Tx, { caller, cause }: By<OrgCaller>, userId: string, changes: { field: string; from: unknown; to: unknown }[]): void {
  appendAudit(tx, { orgId: caller.org.id, projectId: null, cause, outcome: 'done', target: { type: 'member', id: userId }, changes });
}
