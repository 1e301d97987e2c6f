/**
 * What the rest of the house asks of identity.
 *
 *   createEngine(database, config): Engine                                   once per process, in deps.ts
 *   readSession({ db, engine, config }, cookieHeader, { orgSlug?, projectSlug? })
 *     → { caller: SessionCaller | OrgCaller | ProjectCaller, setCookies }    pass setCookies on: the session was renewed
 *     errors: unauthenticated; not_found (with movedTo for a member's old slug)
 *   checkApiKey({ db }, authorizationHeader) → KeyCaller                     errors: invalid_api_key
 *   createApiKey, rotateApiKey, revokeApiKey, … (tx, …)                       mail services make keys; table and check are here
 *   appendAudit(tx, { orgId | null, projectId, cause, outcome, target, changes? }): void
 *     registers itself with beforeCommit(tx, 9, …); orgId null is the installation's chain
 *   recordDenial(db, { orgId, projectId, cause, target }): Promise<void>     a member's 403; one per actor, action, minute
 *   ensureDemo(deps, { email, password? }) → login | null                    development, once; issueSetupToken(deps) → token | null
 */
export { appendAudit, recordDenial, type AuditChange, type AuditFacts } from './audit';
export { claimDueMails, composeMail, getMail, markMailDispatched, settleMail, tellOwners } from './account-mail';
export { verifyAllChains } from './audit-log';
export { checkApiKey, newApiKey } from './api-key';
export {
  createApiKey, listApiKeys, lockApiKey, requireExpiry, requireScopes, revokeApiKey, revokeServiceKeys, rotateApiKey, type ApiKeyRow, type KeyWish,
} from './api-keys';
export { clearedSessionCookie, sessionCookieName } from './cookie';
export {
  closeBilling, countLeft, finishOrg, finishProject, recordBillingFailure, requestProductDeletions, requestProjectDeletions, type DeletionDeps,
} from './deletion';
export type { IdentityDeps, ProductDeletion } from './deps';
export { createEngine, type Engine } from './engine';
export { expireIdentityRows } from './expiry';
export { createMailDispatcher, startMailRelay, type StartMail } from './mail-outbox';
export { createResetLink } from './passwords';
export { currentRole } from './store/members';
export { readSession, type SessionDeps, type SessionReading } from './session';
export { ensureDemo, isSetUp, issueSetupToken, type DemoLogin } from './setup';
