/**
 * What the rest of the house asks of identity.
 *
 *   createEngine(database, config): Engine                                   once per process, in deps.ts
 *   readSession({ db, engine, config }, cookieHeader, { orgSlug?, projectSlug? })
 *     → { caller: SessionCaller | OrgCaller | ProjectCaller, setCookies }    pass setCookies on: the session was renewed
 *     errors: unauthenticated; not_found (with movedTo for a member's old slug)
 *   checkApiKey({ db }, authorizationHeader) → KeyCaller                     errors: invalid_api_key
 *   appendAudit(tx, { orgId | null, projectId, cause, outcome, target, changes? }): void
 *     registers itself with beforeCommit(tx, 9, …); orgId null is the installation's chain
 *   recordDenial(db, { orgId, projectId, cause, target }): Promise<void>     a member's 403; one per actor, action, minute
 *   sessionCookieName, clearedSessionCookie
 */
export { appendAudit, recordDenial, type AuditChange, type AuditFacts } from './audit';
export { checkApiKey, newApiKey } from './api-key';
export { clearedSessionCookie, sessionCookieName } from './cookie';
export { createEngine, type Engine } from './engine';
export { readSession, type SessionDeps, type SessionReading } from './session';
