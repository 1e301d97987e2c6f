import type { z } from 'zod';
import type { Role } from '../core/caller';
import type { auditEntrySchema, invitationSchema, memberSchema, membershipSchema, orgSchema, projectSchema, sessionSchema, userSchema } from './schemas';
import type { AuditRow } from './store/audit';
import type { InvitationRow, MemberRow, MembershipRow, OrgRow, ProjectRow } from './store/orgs';
import type { SessionRow, UserRow } from './store/users';

const iso = (at: Date | null) => at?.toISOString() ?? null;

export function viewUser(row: UserRow): z.input<typeof userSchema> {
  const { id, email, displayName, emailVerified } = row;
  return { id, email, displayName, emailVerified, disabledAt: iso(row.disabledAt), createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() };
}

export function viewSession(row: SessionRow, currentId: string | null): z.input<typeof sessionSchema> {
  return {
    id: row.id, current: row.id === currentId, lastSeenAt: row.updatedAt.toISOString(), expiresAt: row.expiresAt.toISOString(),
    endsAt: row.endsAt.toISOString(), freshUntil: iso(row.freshUntil), ip: row.ip || null, userAgent: row.userAgent || null,
    createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewMembership(row: MembershipRow): z.input<typeof membershipSchema> {
  return { orgId: row.orgId, orgSlug: row.orgSlug, displayName: row.displayName, role: row.role };
}

export function viewOrg(row: OrgRow, role: Role): z.input<typeof orgSchema> {
  const { id, slug, displayName, timeZone, status } = row;
  return { id, slug, displayName, timeZone, status, role, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() };
}

export function viewProject(row: ProjectRow): z.input<typeof projectSchema> {
  const { id, orgId, slug, displayName, status } = row;
  return { id, orgId, slug, displayName, status, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() };
}

export function viewMember(row: MemberRow): z.input<typeof memberSchema> {
  const { userId, email, displayName, role } = row;
  return { id: userId, email, displayName, role, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() };
}

export function viewInvitation(row: InvitationRow): z.input<typeof invitationSchema> {
  return {
    id: row.id, email: row.email, role: row.role, status: row.status, invitedBy: { id: row.inviterId, displayName: row.inviterName },
    expiresAt: row.expiresAt.toISOString(), acceptedAt: iso(row.acceptedAt), createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewAuditEntry(row: AuditRow): z.input<typeof auditEntrySchema> {
  const createdAt = row.createdAt.toISOString();
  return {
    id: row.id, seq: row.seq, actor: { kind: row.actorKind, id: row.actorId, displayName: row.actorName }, action: row.action, outcome: row.outcome,
    projectId: row.projectId, target: targetOf(row), changes: row.changes, requestId: row.requestId, ip: row.ip, prevHash: row.prevHash, hash: row.hash,
    createdAt, updatedAt: createdAt,
  };
}

function targetOf({ targetType: type, targetId: id }: AuditRow): { type: string; id: string } | null {
  return type !== null && id !== null ? { type, id } : null;
}
