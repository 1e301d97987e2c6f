import { randomBytes } from 'node:crypto';
import type { Cause, OrgCaller, Role } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import type { Id } from '../core/ids';
import { digest } from '../core/secrets';
import type { Tx } from '../db/transaction';
import { link, sendLater } from './account-mail';
import { appendAudit } from './audit';
import type { By, IdentityDeps } from './deps';
import { requireRank } from './members';
import {
  closePendingInvitations, countMembers, countPendingInvitations, findInvitation, getMember, insertInvitation, insertMember, isMemberAddress,
  lockInvitation, pendingRole, renewInvitation, settleInvitation,
} from './store/members';
import { getOrg, lockOrg, type InvitationRow, type MemberRow, type OrgRow } from './store/orgs';
import { limitReached } from './orgs';
import { markEmailVerified } from './store/users';

/** `acceptUrl` is there while account mail is off: then the inviter hands the link over. */
export type Invited = { invitation: InvitationRow; acceptUrl?: string };

/**
 * A pending invitation, bound to the address; an earlier one to it is revoked.
 * Errors: `forbidden` above one's own role, `already_member`, `plan_limit_reached`.
 */
export async function invite(deps: IdentityDeps, tx: Tx, { caller, cause }: By<OrgCaller>, given: { email: string; role: Role }): Promise<Invited> {
  const org = await lockOrg(tx, caller.org.id);
  if (!org) throw notFound('Organisation');
  await requireRank(tx, caller, given.role);
  if (await isMemberAddress(tx, org.id, given.email)) throw new AppError('already_member', 'This address belongs to a member already.');
  const replaced = await pendingRole(tx, org.id, given.email);
  if (replaced) await requireRank(tx, caller, replaced);
  await closePendingInvitations(tx, org.id, given.email);
  const pending = await countPendingInvitations(tx, org.id);
  if (pending >= deps.config.LIMIT_PENDING_INVITATIONS) throw limitReached('invitations', deps.config.LIMIT_PENDING_INVITATIONS, pending);
  await requireRoom(deps, tx, org.id);
  const token = newToken();
  const inviter = { inviterId: caller.userId, inviterName: caller.displayName };
  const invitation = await insertInvitation(tx, { orgId: org.id, ...given, ...inviter }, digest(token));
  auditInvitation(tx, cause, invitation, [{ field: 'email', from: null, to: given.email }, { field: 'role', from: null, to: given.role }]);
  return deliver(deps, tx, { org, invitation }, token);
}

/** A new token; the old one is void. Errors: `not_found`, `forbidden` above one's own role, `invalid_state` unless pending. */
export async function resendInvitation(deps: IdentityDeps, tx: Tx, { caller, cause }: By<OrgCaller>, invitationId: string): Promise<Invited> {
  const { org, invitation } = await lockPending(tx, caller, invitationId);
  const token = newToken();
  const renewed = await renewInvitation(tx, invitation.id, digest(token));
  auditInvitation(tx, cause, renewed, [{ field: 'expiresAt', from: invitation.expiresAt.toISOString(), to: renewed.expiresAt.toISOString() }]);
  return deliver(deps, tx, { org, invitation: renewed }, token);
}

/** Errors: `not_found`, `forbidden` above one's own role, `invalid_state` unless pending. */
export async function revokeInvitation(tx: Tx, { caller, cause }: By<OrgCaller>, invitationId: string): Promise<InvitationRow> {
  const { invitation } = await lockPending(tx, caller, invitationId);
  const revoked = await settleInvitation(tx, invitation.id, 'canceled');
  auditInvitation(tx, cause, revoked, [{ field: 'status', from: 'pending', to: 'revoked' }]);
  return revoked;
}

async function lockPending(tx: Tx, caller: OrgCaller, invitationId: string): Promise<{ org: OrgRow; invitation: InvitationRow }> {
  const org = await lockOrg(tx, caller.org.id);
  const invitation = org && await lockInvitation(tx, org.id, invitationId);
  if (!invitation) throw notFound('Invitation');
  await requireRank(tx, caller, invitation.role);
  if (invitation.status !== 'pending') throw new AppError('invalid_state', `This invitation is ${invitation.status}.`);
  return { org, invitation };
}

/**
 * The caller becomes a member; the mailed token has proved the address.
 * Errors: `not_found` (unknown, used, revoked, expired alike), `forbidden` for another address, `plan_limit_reached`.
 */
export async function acceptInvitation(deps: IdentityDeps, tx: Tx, { caller, cause }: By, token: string): Promise<{ org: OrgRow; member: MemberRow }> {
  const found = await findInvitation(tx, digest(token));
  if (!found) throw notFound('Invitation');
  if (found.email !== caller.email) throw new AppError('forbidden', 'This invitation is for another address. Sign in with that one.', { required: 'invited_address' });
  const accepted = await takeUpInvitation(deps, tx, token, { id: caller.userId, email: caller.email });
  if (!accepted) throw notFound('Invitation');
  auditInvitation(tx, cause, accepted, [{ field: 'status', from: 'pending', to: 'accepted' }]);
  const org = await getOrg(tx, accepted.orgId);
  const member = await getMember(tx, accepted.orgId, caller.userId);
  if (!org || !member) throw notFound('Invitation');
  return { org, member };
}

/** Makes the user a member, once per invitation; null when the token opens none for this address. Errors: `plan_limit_reached`. */
export async function takeUpInvitation(deps: IdentityDeps, tx: Tx, token: string, user: { id: Id<'usr'>; email: string }): Promise<InvitationRow | null> {
  const found = await findInvitation(tx, digest(token));
  if (found) await lockOrg(tx, found.orgId); // the organisation first, as everybody who changes members does
  const invitation = await findInvitation(tx, digest(token), 'for update of i');
  if (invitation?.email !== user.email) return null;
  const wasMember = await getMember(tx, invitation.orgId, user.id);
  if (!wasMember) await requireRoom(deps, tx, invitation.orgId);
  await insertMember(tx, invitation.orgId, user.id, invitation.role);
  await markEmailVerified(tx, user.id);
  return settleInvitation(tx, invitation.id, 'accepted');
}

async function requireRoom(deps: IdentityDeps, tx: Tx, orgId: Id<'org'>): Promise<void> {
  const members = await countMembers(tx, orgId);
  if (members >= deps.config.LIMIT_MEMBERS) throw limitReached('members', deps.config.LIMIT_MEMBERS, members);
}

async function deliver(deps: IdentityDeps, tx: Tx, { org, invitation }: { org: OrgRow; invitation: InvitationRow }, token: string): Promise<Invited> {
  const url = link(deps, 'accept-invitation', token);
  if (deps.config.ACCOUNT_MAIL === 'off') return { invitation, acceptUrl: url };
  const facts = { orgName: org.displayName, inviter: invitation.inviterName, role: invitation.role };
  await sendLater(deps, tx, { kind: 'invitation', recipient: invitation.email, orgId: org.id, link: url, facts });
  return { invitation };
}

function auditInvitation(tx: Tx, cause: Cause, invitation: InvitationRow, changes: { field: string; from: unknown; to: unknown }[]): void {
  appendAudit(tx, { orgId: invitation.orgId, projectId: null, cause, outcome: 'done', target: { type: 'invitation', id: invitation.id }, changes });
}

function newToken(): string {
  return randomBytes(32).toString('base64url');
}
