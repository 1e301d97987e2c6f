import { z } from 'zod';
import { displayName } from '../../core/fields';
import { pageAnswer, pageQuery } from '../../core/page';
import { Reply } from '../../http/operation';
import { renameAccount } from '../accounts';
import { clearedSessionCookie } from '../cookie';
import { deleteAccount } from '../deletion';
import { acceptInvitation, invite, resendInvitation, revokeInvitation, type Invited } from '../invitations';
import { changeRole, removeMember } from '../members';
import { listInvitations, listMembers } from '../store/members';
import { email, invitationSchema, memberSchema, orgSchema, role, token, userSchema } from '../schemas';
import { viewInvitation, viewMember, viewOrg, viewUser } from '../view';
import { newestFirst, org, self } from './builders';

const tag = 'Members';
const invited = z.object({
  invitation: invitationSchema, acceptUrl: z.string().optional().meta({ description: 'While account mail is off; hand it over yourself. Shown once.' }),
});
const viewInvited = ({ invitation, acceptUrl }: Invited) => ({ invitation: viewInvitation(invitation), ...(acceptUrl === undefined ? {} : { acceptUrl }) });

export const memberOperations = [
  self({
    id: 'updateUser', method: 'patch', path: '/api/auth/user', tag: 'Account', summary: 'Change my name', body: z.strictObject({ displayName }),
    answer: z.object({ user: userSchema }),
    handle: ({ caller, cause, body, transact }) => transact(async (tx) => ({ user: viewUser(await renameAccount(tx, caller, cause, body.displayName)) })),
  }),
  self({
    id: 'deleteUser', method: 'delete', path: '/api/auth/user', tag: 'Account', summary: 'Delete my account', fresh: true,
    answer: z.object({ deleted: z.literal(true), userId: z.string() }), errors: ['last_owner'],
    handle: async ({ caller, cause, transact }) => {
      const payload = await transact(async (tx) => {
        await deleteAccount(tx, { caller, cause });
        return { deleted: true as const, userId: caller.userId };
      });
      return new Reply(payload, { cookies: [clearedSessionCookie] });
    },
  }),
  org('org:read')({
    id: 'listMembers', method: 'get', path: '/members', tag, summary: 'List members', query: z.object(pageQuery),
    answer: z.object({ members: z.array(memberSchema), ...pageAnswer }),
    handle: async ({ deps, caller, query }) => {
      const { items, ...page } = await newestFirst(deps, ['members', caller.org.id], query, {
        fetch: (after, limit) => listMembers(deps.db.prisma, caller.org.id, after, limit), idOf: (row) => row.userId,
      });
      return { members: items.map(viewMember), ...page };
    },
  }),
  org('members:manage')({
    id: 'updateMember', method: 'patch', path: '/members/:userId', tag, summary: "Change a member's role", body: z.strictObject({ role }),
    answer: z.object({ member: memberSchema }), errors: ['last_owner'],
    handle: ({ caller, cause, params, body, transact }) => transact(async (tx) => ({ member: viewMember(await changeRole(tx, { caller, cause }, params.userId, body.role)) })),
  }),
  org('org:read')({
    id: 'removeMember', method: 'delete', path: '/members/:userId', tag, summary: 'Remove a member, or leave', description: 'Removing others needs members:manage.',
    answer: z.object({ deleted: z.literal(true), userId: z.string() }), errors: ['last_owner', 'forbidden'],
    handle: ({ caller, cause, params: { userId }, transact }) => transact(async (tx) => {
      await removeMember(tx, { caller, cause }, userId);
      return { deleted: true as const, userId };
    }),
  }),
  org('members:manage')({
    id: 'listInvitations', method: 'get', path: '/invitations', tag, summary: 'List invitations', query: z.object(pageQuery),
    answer: z.object({ invitations: z.array(invitationSchema), ...pageAnswer }),
    handle: async ({ deps, caller, query }) => {
      const { items, ...page } = await newestFirst(deps, ['invitations', caller.org.id], query, {
        fetch: (after, limit) => listInvitations(deps.db.prisma, caller.org.id, after, limit), idOf: (row) => row.id,
      });
      return { invitations: items.map(viewInvitation), ...page };
    },
  }),
  org('members:manage')({
    id: 'createInvitation', method: 'post', path: '/invitations', tag, summary: 'Invite somebody', body: z.strictObject({ email, role }), answer: invited,
    errors: ['already_member', 'plan_limit_reached'], idempotent: true, secrets: ['acceptUrl'],
    limits: ({ deps, caller }) => [{ rule: { name: 'invitations', limit: deps.config.RATE_INVITATIONS_PER_DAY, periodSeconds: 86_400 }, key: caller.org.id }],
    handle: ({ deps, caller, cause, body, transact }) => transact(async (tx) => viewInvited(await invite(deps, tx, { caller, cause }, body))),
  }),
  org('members:manage')({
    id: 'resendInvitation', method: 'post', path: '/invitations/:invitationId/resend', tag, summary: 'Send an invitation again', description: 'The link sent before is void.',
    answer: invited, errors: ['invalid_state'], idempotent: true, secrets: ['acceptUrl'],
    limits: ({ deps, caller }) => [{ rule: { name: 'invitations', limit: deps.config.RATE_INVITATIONS_PER_DAY, periodSeconds: 86_400 }, key: caller.org.id }],
    handle: ({ deps, caller, cause, params, transact }) => transact(async (tx) => viewInvited(await resendInvitation(deps, tx, { caller, cause }, params.invitationId))),
  }),
  org('members:manage')({
    id: 'revokeInvitation', method: 'delete', path: '/invitations/:invitationId', tag, summary: 'Revoke an invitation',
    answer: z.object({ deleted: z.literal(true), invitationId: z.string(), invitation: invitationSchema }), errors: ['invalid_state'],
    handle: ({ caller, cause, params: { invitationId }, transact }) => transact(async (tx) => (
      { deleted: true as const, invitationId, invitation: viewInvitation(await revokeInvitation(tx, { caller, cause }, invitationId)) })),
  }),
  self({
    id: 'acceptInvitation', method: 'post', path: '/api/invitations/accept', tag, summary: 'Join an organisation', body: z.strictObject({ token }),
    answer: z.object({ org: orgSchema, member: memberSchema }), errors: ['not_found', 'forbidden', 'plan_limit_reached'],
    handle: ({ deps, caller, cause, body, transact }) => transact(async (tx) => {
      const { org: row, member } = await acceptInvitation(deps, tx, { caller, cause }, body.token);
      return { org: viewOrg(row, member.role), member: viewMember(member) };
    }),
  }),
];
