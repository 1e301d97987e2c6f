import type { Cause, SessionCaller } from '../core/caller';
import { AppError, notFound } from '../core/errors';
import type { Id } from '../core/ids';
import { digest } from '../core/secrets';
import type { Db } from '../db/client';
import { violates } from '../db/errors';
import { inTransaction, type Tx } from '../db/transaction';
import { link, sendLater } from './account-mail';
import { appendAudit } from './audit';
import { clearedSessionCookie, readSessionCookie, sessionCookie } from './cookie';
import type { IdentityDeps } from './deps';
import { takeUpInvitation } from './invitations';
import { findInvitation } from './store/members';
import { listMemberships, type MembershipRow } from './store/orgs';
import { verifyTtlSeconds } from './rules';
import { unauthenticated } from './session';
import {
  endOtherSessions, endSession, endSessionByToken, endSurplusSessions, findUser, getSession, getUser, lockUserWithPassword, renameUser, type SessionRow, type UserRow,
} from './store/users';

/** From where and in which request somebody asks. */
export type Asked = { cause: Cause; ip: string; userAgent: string | null };
export type SignedIn = { user: UserRow; session: SessionRow; memberships: MembershipRow[]; cookie: string };

/**
 * A session for the right password. Unknown address, wrong password and disabled account cost the same and answer the same.
 * Errors: `invalid_credentials`; `forbidden` (verified_email), only after a right password.
 */
export async function signIn(deps: IdentityDeps, asked: Asked, given: { email: string; password: string }): Promise<SignedIn> {
  const right = await deps.engine.verifyPassword(given.email, given.password);
  const outcome = await inTransaction(deps.db, async (tx) => {
    const user = right && await lockUserWithPassword(tx, right.userId, right.hash);
    if (!user) return refuseSignIn(tx, asked.cause, null, invalidCredentials());
    if (deps.config.EMAIL_VERIFICATION === 'required' && !user.emailVerified) {
      return refuseSignIn(tx, asked.cause, user.id, new AppError('forbidden', 'Verify your address first: a link was mailed to you.', { required: 'verified_email' }));
    }
    return beginSession(deps, tx, user, asked);
  });
  if (outcome instanceof AppError) throw outcome;
  return outcome;
}

/** The refusal is committed with its audit entry, then thrown. */
export function refuseSignIn(tx: Tx, cause: Cause, userId: string | null, error: AppError): AppError {
  appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'denied', target: userId === null ? null : { type: 'user', id: userId } });
  return error;
}

/** A new session, the oldest beyond twenty ended, one audit entry. The user's row is locked or new. */
export async function beginSession(deps: IdentityDeps, tx: Tx, user: UserRow, asked: Asked & { joined?: Id<'org'> }): Promise<SignedIn> {
  const { id, token } = await deps.engine.createSession(tx, user.id, asked);
  await endSurplusSessions(tx, user.id);
  auditOwn(tx, { cause: asked.cause, user, orgId: asked.joined ?? null }, asked.joined ? { type: 'member', id: user.id } : { type: 'session', id });
  const session = await getSession(tx, deps.config, id);
  if (!session) throw new Error('The session row was not written.');
  const cookie = sessionCookie(token, deps.config.AUTH_SECRET, deps.config.SESSION_IDLE_DAYS * 86_400);
  return { user, session, memberships: await listMemberships(tx, user.id), cookie };
}

/** `orgId`: in whose chain it belongs; default the installation's. */
type Own = { cause: Cause; user: { id: string; displayName: string }; orgId?: Id<'org'> | null };

/** One entry of what somebody did to their own account; open operations have no caller to name. */
export function auditOwn(tx: Tx, { cause, user, orgId = null }: Own, target: { type: string; id: string }): void {
  const actor = { kind: 'user' as const, id: user.id, displayName: user.displayName };
  appendAudit(tx, { orgId, projectId: null, cause: { ...cause, actor }, outcome: 'done', target });
}

export type SignUp = { email: string; displayName: string; password: string; invitationToken?: string | undefined };

/**
 * A new account; with an invitation's token also its membership and a verified address, all at once. Null: the address
 * must be verified first, or is known; the two do the same work.
 * Errors: `forbidden` (invitation), `conflict` for a known address unless addresses must be verified.
 */
export async function signUp(deps: IdentityDeps, asked: Asked, given: SignUp): Promise<SignedIn | null> {
  await requireSignUpAllowed(deps, given);
  const passwordHash = await deps.engine.hashPassword(given.password);
  const quiet = deps.config.EMAIL_VERIFICATION === 'required' && given.invitationToken === undefined;
  try {
    return await inTransaction(deps.db, async (tx) => {
      if (await findUser(tx, given.email)) {
        if (!quiet) throw addressTaken();
        await sendLater(deps, tx, { kind: 'address_known', recipient: given.email });
        return null;
      }
      return createAccount(deps, tx, asked, { ...given, passwordHash, quiet });
    });
  } catch (error) {
    if (!violates(error, 'user_email_key')) throw error; // the same address twice at once
    if (quiet) return null;
    throw addressTaken();
  }
}

async function createAccount(deps: IdentityDeps, tx: Tx, asked: Asked, given: SignUp & { passwordHash: string; quiet: boolean }): Promise<SignedIn | null> {
  const userId = await deps.engine.createUser(tx, { ...given, emailVerified: given.invitationToken !== undefined });
  const user = await getUser(tx, userId);
  if (!user) throw new Error('The user row was not written.');
  if (given.quiet) {
    await sendVerification(deps, tx, user);
    auditOwn(tx, { ...asked, user }, { type: 'user', id: userId });
    return null;
  }
  if (given.invitationToken === undefined) {
    await sendVerification(deps, tx, user);
    return beginSession(deps, tx, user, asked);
  }
  const accepted = await takeUpInvitation(deps, tx, given.invitationToken, user);
  if (!accepted) throw invitationNeeded();
  return beginSession(deps, tx, user, { ...asked, joined: accepted.orgId });
}

/** Errors: `forbidden` (invitation). */
async function requireSignUpAllowed({ config, db }: IdentityDeps, { email, invitationToken }: SignUp): Promise<void> {
  if (config.SIGNUP_MODE === 'closed') throw invitationNeeded();
  if (invitationToken === undefined) {
    if (config.SIGNUP_MODE === 'invite') throw invitationNeeded();
    return;
  }
  const invitation = await findInvitation(db.prisma, digest(invitationToken));
  if (invitation?.email !== email) throw invitationNeeded();
}

/** Ends the cookie's session, if it has one. */
export async function signOut(deps: IdentityDeps, cause: Cause, cookieHeader: string | undefined): Promise<string> {
  const cookie = readSessionCookie(cookieHeader, deps.config.AUTH_SECRET);
  if (cookie) {
    await inTransaction(deps.db, async (tx) => {
      const ended = await endSessionByToken(tx, cookie.token);
      if (ended) auditOwn(tx, { cause, user: { id: ended.userId, displayName: ended.displayName } }, { type: 'session', id: ended.id });
    });
  }
  return clearedSessionCookie;
}

/** Ends all sessions but the caller's; how many. */
export async function endOthers(tx: Tx, caller: SessionCaller, cause: Cause): Promise<number> {
  const count = await endOtherSessions(tx, caller.userId, caller.sessionId);
  appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'done', target: { type: 'user', id: caller.userId }, changes: [{ field: 'sessions', from: count + 1, to: 1 }] });
  return count;
}

/** Errors: `not_found`, also for somebody else's. */
export async function endOne(tx: Tx, caller: SessionCaller, cause: Cause, sessionId: string): Promise<void> {
  if (!await endSession(tx, caller.userId, sessionId)) throw notFound('Session');
  appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'done', target: { type: 'session', id: sessionId } });
}

/** The name others see. Errors: `unauthenticated` when the account is gone meanwhile. */
export async function renameAccount(tx: Tx, caller: SessionCaller, cause: Cause, displayName: string): Promise<UserRow> {
  await renameUser(tx, caller.userId, displayName);
  const changes = [{ field: 'displayName', from: caller.displayName, to: displayName }];
  appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'done', target: { type: 'user', id: caller.userId }, changes });
  const user = await getUser(tx, caller.userId);
  if (!user) throw unauthenticated();
  return user;
}

/** Who the caller is and where a member. Errors: `unauthenticated` when the session ended meanwhile. */
export async function describeSession(deps: IdentityDeps, db: Db, caller: SessionCaller): Promise<Omit<SignedIn, 'cookie'>> {
  const user = await getUser(db, caller.userId);
  const session = await getSession(db, deps.config, caller.sessionId);
  if (!user || !session) throw unauthenticated();
  return { user, session, memberships: await listMemberships(db, caller.userId) };
}

export function invalidCredentials(): AppError {
  return new AppError('invalid_credentials', 'The address or the password is wrong.');
}

async function sendVerification(deps: IdentityDeps, tx: Tx, user: UserRow): Promise<void> {
  if (deps.config.ACCOUNT_MAIL === 'off') return;
  const token = await deps.engine.issueToken(tx, 'verify-email', user.id, verifyTtlSeconds);
  await sendLater(deps, tx, { kind: 'verify_email', recipient: user.email, link: link(deps, 'verify-email', token) });
}

function invitationNeeded(): AppError {
  return new AppError('forbidden', 'Signing up needs an invitation to this address.', { required: 'invitation' });
}

function addressTaken(): AppError {
  return new AppError('conflict', 'This address has an account already. Sign in instead.');
}
