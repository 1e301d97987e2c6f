import { z } from 'zod';
import { pageAnswer, pageQuery } from '../../core/page';
import { Reply } from '../../http/operation';
import { describeSession, endOne, endOthers, signIn, signOut, signUp, type SignedIn } from '../accounts';
import { clearedSessionCookie } from '../cookie';
import { changePassword, confirmPasswordReset, reauthenticate, requestPasswordReset, resendVerification, verifyEmail } from '../passwords';
import { displayName } from '../../core/fields';
import { email, newPassword, orgSchema, password, projectSchema, sessionSchema, signedIn, signedUp, slug, token, userSchema, withOwnPassword } from '../schemas';
import { setUp } from '../setup';
import { listSessions } from '../store/users';
import { viewMembership, viewOrg, viewProject, viewSession, viewUser } from '../view';
import { asked, guessLimits, mailLimits, newestFirst, open, self } from './builders';

const tag = 'Account';

function viewSignedIn({ user, session, memberships }: Omit<SignedIn, 'cookie'>) {
  return { user: viewUser(user), session: viewSession(session, session.id), memberships: memberships.map(viewMembership) };
}

export const authOperations = [
  open({
    id: 'setUp', method: 'post', path: '/api/auth/setup', tag, summary: 'Set a new installation up, once',
    description: 'Takes the token that the API process prints at its first start. Afterwards this address answers 404.',
    body: withOwnPassword(z.strictObject({ token, email, displayName, password: newPassword, orgDisplayName: displayName, orgSlug: slug.optional() })),
    answer: z.object({ user: userSchema, org: orgSchema, project: projectSchema }), errors: ['invalid_credentials', 'not_found', 'slug_taken'], noStore: true,
    limits: ({ deps, ip, body }) => guessLimits(deps, 'setup', { ip, account: body.email }),
    handle: async ({ deps, body, cause, request }) => {
      const { user, org, project, cookie } = await setUp(deps, asked(cause, request), body);
      return new Reply({ user: viewUser(user), org: viewOrg(org, 'owner'), project: viewProject(project) }, { cookies: [cookie] });
    },
  }),
  open({
    id: 'signUp', method: 'post', path: '/api/auth/sign-up', tag, summary: 'Make an account', noStore: true,
    description: 'Answers a session; where addresses must be verified first, `user: null` and `verificationRequired: true`, also for a known address.',
    body: withOwnPassword(z.strictObject({ email, displayName, password: newPassword, invitationToken: token.optional() })),
    answer: signedUp, errors: ['forbidden', 'conflict', 'plan_limit_reached'],
    limits: ({ deps, ip }) => [{ rule: { name: 'sign-up', limit: deps.config.RATE_SIGN_UP_PER_HOUR, periodSeconds: 3_600 }, key: ip }],
    handle: async ({ deps, body, cause, request }) => {
      const made = await signUp(deps, asked(cause, request), body);
      return made ? new Reply(viewSignedIn(made), { cookies: [made.cookie] }) : { user: null, verificationRequired: true as const };
    },
  }),
  open({
    id: 'signIn', method: 'post', path: '/api/auth/sign-in', tag, summary: 'Sign in', body: z.strictObject({ email, password }),
    answer: signedIn, errors: ['invalid_credentials', 'forbidden'], noStore: true,
    limits: ({ deps, ip, body }) => guessLimits(deps, 'sign-in', { ip, account: body.email }),
    handle: async ({ deps, body, cause, request }) => {
      const made = await signIn(deps, asked(cause, request), body);
      return new Reply(viewSignedIn(made), { cookies: [made.cookie] });
    },
  }),
  open({
    id: 'signOut', method: 'post', path: '/api/auth/sign-out', tag, summary: 'End the session', answer: z.object({ signedOut: z.literal(true) }), noStore: true,
    handle: async ({ deps, cause, request }) => new Reply({ signedOut: true as const }, { cookies: [await signOut(deps, cause, request.headers['cookie'])] }),
  }),
  self({
    id: 'getSession', method: 'get', path: '/api/auth/session', tag, summary: 'Who I am', answer: signedIn, noStore: true,
    handle: async ({ deps, caller }) => viewSignedIn(await describeSession(deps, deps.db.prisma, caller)),
  }),
  self({
    id: 'listSessions', method: 'get', path: '/api/auth/sessions', tag, summary: 'List my sessions', query: z.object(pageQuery), noStore: true,
    answer: z.object({ sessions: z.array(sessionSchema), ...pageAnswer }),
    handle: async ({ deps, caller, query }) => {
      const { items, ...page } = await newestFirst(deps, ['sessions', caller.userId], query, {
        fetch: (after, limit) => listSessions(deps.db.prisma, deps.config, caller.userId, { after, limit }), idOf: (row) => row.id,
      });
      return { sessions: items.map((row) => viewSession(row, caller.sessionId)), ...page };
    },
  }),
  self({
    id: 'endOtherSessions', method: 'delete', path: '/api/auth/sessions', tag, summary: 'End all my other sessions',
    answer: z.object({ deleted: z.literal(true), deletedCount: z.number().int() }),
    handle: ({ caller, cause, transact }) => transact(async (tx) => ({ deleted: true as const, deletedCount: await endOthers(tx, caller, cause) })),
  }),
  self({
    id: 'endSession', method: 'delete', path: '/api/auth/sessions/:sessionId', tag, summary: 'End one of my sessions',
    answer: z.object({ deleted: z.literal(true), sessionId: z.string() }),
    handle: async ({ caller, cause, params: { sessionId }, transact }) => {
      const payload = await transact(async (tx) => {
        await endOne(tx, caller, cause, sessionId);
        return { deleted: true as const, sessionId };
      });
      return new Reply(payload, sessionId === caller.sessionId ? { cookies: [clearedSessionCookie] } : {});
    },
  }),
  self({
    id: 'reauthenticateSession', method: 'post', path: '/api/auth/reauthenticate', tag, summary: 'Give my password again', body: z.strictObject({ password }),
    description: 'Makes the session fresh: what reveals or deletes asks for that.', answer: z.object({ session: sessionSchema }), errors: ['invalid_credentials'], noStore: true,
    limits: ({ deps, ip, caller }) => guessLimits(deps, 'password', { ip, account: caller.email }),
    handle: async ({ deps, caller, cause, body }) => ({ session: viewSession(await reauthenticate(deps, caller, cause, body.password), caller.sessionId) }),
  }),
  self({
    id: 'changePassword', method: 'post', path: '/api/auth/password', tag, summary: 'Change my password', description: 'Ends all my other sessions.',
    body: z.strictObject({ currentPassword: password, newPassword }), answer: z.object({ session: sessionSchema }), errors: ['invalid_credentials'], noStore: true,
    limits: ({ deps, ip, caller }) => guessLimits(deps, 'password', { ip, account: caller.email }),
    handle: async ({ deps, caller, cause, body }) => ({ session: viewSession(await changePassword(deps, caller, cause, body), caller.sessionId) }),
  }),
  open({
    id: 'requestPasswordReset', method: 'post', path: '/api/auth/password-reset', tag, summary: 'Ask for a link to reset the password',
    body: z.strictObject({ email }), answer: z.object({ sent: z.literal(true) }),
    limits: ({ deps, ip, body }) => mailLimits(deps, ip, body.email),
    handle: async ({ deps, body }) => {
      await requestPasswordReset(deps, body.email);
      return { sent: true as const };
    },
  }),
  open({
    id: 'confirmPasswordReset', method: 'post', path: '/api/auth/password-reset/confirm', tag, summary: 'Reset the password', description: 'Ends all sessions of the account.',
    body: z.strictObject({ token, newPassword }), answer: z.object({ reset: z.literal(true) }), errors: ['invalid_token'],
    limits: ({ deps, ip }) => [{ rule: { name: 'reset-confirm', limit: deps.config.RATE_RESET_ADDRESS_PER_HOUR, periodSeconds: 3_600 }, key: ip }],
    handle: async ({ deps, body, cause, request }) => {
      await confirmPasswordReset(deps, asked(cause, request), body);
      return { reset: true as const };
    },
  }),
  open({
    id: 'resendVerification', method: 'post', path: '/api/auth/verify-email/resend', tag, summary: 'Ask for another verification link',
    body: z.strictObject({ email }), answer: z.object({ sent: z.literal(true) }),
    limits: ({ deps, ip, body }) => mailLimits(deps, ip, body.email),
    handle: async ({ deps, body }) => {
      await resendVerification(deps, body.email);
      return { sent: true as const };
    },
  }),
  open({
    id: 'verifyEmail', method: 'post', path: '/api/auth/verify-email', tag, summary: 'Verify an address', body: z.strictObject({ token }),
    answer: z.object({ verified: z.literal(true) }), errors: ['invalid_token'],
    handle: async ({ deps, body, cause }) => {
      await verifyEmail(deps, cause, body.token);
      return { verified: true as const };
    },
  }),
];
