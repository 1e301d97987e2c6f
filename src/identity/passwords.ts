import { systemCause, type Cause, type SessionCaller } from '../core/caller';
import { AppError, invalid } from '../core/errors';
import { inTransaction, type Tx } from '../db/transaction';
import { link, pretendToSend, sendLater } from './account-mail';
import { auditOwn, invalidCredentials, refuseSignIn, type Asked } from './accounts';
import { appendAudit } from './audit';
import type { IdentityDeps } from './deps';
import { canonicalEmail, passwordFault, verifyTtlSeconds } from './rules';
import { unauthenticated } from './session';
import { endOtherSessions, findUser, freshenSession, getSession, lockUser, lockUserWithPassword, markEmailVerified, type SessionRow } from './store/users';

const resetTtlSeconds = 3_600;

/** The session is fresh again. Errors: `invalid_credentials`. */
export async function reauthenticate(deps: IdentityDeps, caller: SessionCaller, cause: Cause, password: string): Promise<SessionRow> {
  const right = await deps.engine.verifyPassword(caller.email, password);
  if (right?.userId !== caller.userId) throw await refuseOwn(deps, caller, cause);
  return inTransaction(deps.db, async (tx) => {
    if (!await lockUserWithPassword(tx, right.userId, right.hash)) throw invalidCredentials();
    appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'done', target: { type: 'session', id: caller.sessionId } });
    return freshened(deps, tx, caller);
  });
}

/** The new password holds, this session is fresh, all others are ended. Errors: `invalid_credentials`, `validation_error`. */
export async function changePassword(deps: IdentityDeps, caller: SessionCaller, cause: Cause, given: { currentPassword: string; newPassword: string }): Promise<SessionRow> {
  const fault = passwordFault(given.newPassword, caller);
  if (fault) throw invalid([{ path: 'newPassword', message: fault }]);
  const right = await deps.engine.verifyPassword(caller.email, given.currentPassword);
  if (right?.userId !== caller.userId) throw await refuseOwn(deps, caller, cause);
  const hash = await deps.engine.hashPassword(given.newPassword);
  return inTransaction(deps.db, async (tx) => {
    if (!await lockUserWithPassword(tx, right.userId, right.hash)) throw invalidCredentials();
    await deps.engine.setPassword(tx, right.userId, hash);
    await endOtherSessions(tx, caller.userId, caller.sessionId);
    await sendLater(deps, tx, { kind: 'password_changed', recipient: caller.email });
    appendAudit(tx, { orgId: null, projectId: null, cause, outcome: 'done', target: { type: 'user', id: caller.userId } });
    return freshened(deps, tx, caller);
  });
}

async function refuseOwn(deps: IdentityDeps, caller: SessionCaller, cause: Cause): Promise<AppError> {
  return inTransaction(deps.db, async (tx) => refuseSignIn(tx, cause, caller.userId, invalidCredentials()));
}

async function freshened(deps: IdentityDeps, tx: Tx, caller: SessionCaller): Promise<SessionRow> {
  const session = await freshenSession(tx, caller.sessionId) ? await getSession(tx, deps.config, caller.sessionId) : null;
  if (!session) throw unauthenticated(); // ended meanwhile
  return session;
}

/** A link to the address if somebody has it; the same work if nobody does. */
export async function requestPasswordReset(deps: IdentityDeps, email: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const user = await findUser(tx, email);
    const known = user !== null && user.disabledAt === null;
    const token = await deps.engine.issueToken(tx, 'reset-password', known ? user.id : 'nobody', resetTtlSeconds);
    const mail = { kind: 'reset_password' as const, recipient: email, link: link(deps, 'reset-password', token) };
    await (known ? sendLater : pretendToSend)(deps, tx, mail);
  });
}

/** The new password holds and every session is ended; the mailed token has proved the address. Errors: `invalid_token`, `validation_error`. */
export async function confirmPasswordReset(deps: IdentityDeps, asked: Asked, given: { token: string; newPassword: string }): Promise<void> {
  const hash = await deps.engine.hashPassword(given.newPassword);
  await inTransaction(deps.db, async (tx) => {
    const userId = await deps.engine.consumeToken(tx, 'reset-password', given.token);
    const user = userId && await lockUser(tx, userId);
    if (!user) throw invalidToken();
    const fault = passwordFault(given.newPassword, user);
    if (fault) throw invalid([{ path: 'newPassword', message: fault }]); // the token stays good: all is rolled back
    await deps.engine.setPassword(tx, user.id, hash);
    await deps.engine.endAllSessions(tx, user.id);
    if (deps.config.ACCOUNT_MAIL !== 'off') await markEmailVerified(tx, user.id);
    await sendLater(deps, tx, { kind: 'password_changed', recipient: user.email });
    auditOwn(tx, { ...asked, user }, { type: 'user', id: user.id });
  });
}

/** Another verification link if the address is there and not verified; the same work if not. */
export async function resendVerification(deps: IdentityDeps, email: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const user = await findUser(tx, email);
    const waits = user !== null && user.disabledAt === null && !user.emailVerified;
    const token = await deps.engine.issueToken(tx, 'verify-email', waits ? user.id : 'nobody', verifyTtlSeconds);
    const mail = { kind: 'verify_email' as const, recipient: email, link: link(deps, 'verify-email', token) };
    await (waits ? sendLater : pretendToSend)(deps, tx, mail);
  });
}

/** Errors: `invalid_token`. */
export async function verifyEmail(deps: IdentityDeps, cause: Cause, token: string): Promise<void> {
  await inTransaction(deps.db, async (tx) => {
    const userId = await deps.engine.consumeToken(tx, 'verify-email', token);
    const user = userId && await lockUser(tx, userId);
    if (!user) throw invalidToken();
    await markEmailVerified(tx, user.id);
    auditOwn(tx, { cause, user }, { type: 'user', id: user.id });
  });
}

function invalidToken(): AppError {
  return new AppError('invalid_token', 'The token is not valid any more. Ask for a new one.');
}

/** For the operator of an installation without mail: a link that lets the account's owner choose a password. Null: no such account. */
export async function createResetLink(deps: Pick<IdentityDeps, 'db' | 'engine' | 'config'>, email: string): Promise<string | null> {
  return inTransaction(deps.db, async (tx) => {
    const user = await findUser(tx, canonicalEmail(email));
    if (!user) return null;
    const token = await deps.engine.issueToken(tx, 'reset-password', user.id, resetTtlSeconds);
    appendAudit(tx, { orgId: null, projectId: null, cause: systemCause('createResetLink'), outcome: 'done', target: { type: 'user', id: user.id } });
    return link(deps, 'reset-password', token);
  });
}
