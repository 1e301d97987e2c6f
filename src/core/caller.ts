import type { Id } from './ids';

export const roles = ['viewer', 'member', 'admin', 'owner'] as const;
export type Role = (typeof roles)[number];

/** Scopes of API keys, written `<product>:<action>` (specification, Authentication). A closed union; append only. */
export const scopes = ['mail:send', 'mail:read', 'mail:suppressions', 'dns:read'] as const;
export type Scope = (typeof scopes)[number];

export type OrgRef = { id: Id<'org'>; slug: string; displayName: string; status: 'active' | 'deleting' };
export type ProjectRef = { id: Id<'prj'>; slug: string; displayName: string; status: 'active' | 'deleting' };

/** Nobody in particular: open and signed operations. */
export type Anonymous = { kind: 'anonymous' };
/** A person with a live session. `freshUntil` is null once the session must be re-authenticated for ✱ operations. */
export type SessionCaller = {
  kind: 'user'; userId: Id<'usr'>; sessionId: Id<'ses'>; email: string; displayName: string; freshUntil: Date | null;
};
/** A person acting as a member of the organisation named in the path. */
export type OrgCaller = SessionCaller & { org: OrgRef; role: Role };
/** … and in the project named in the path. */
export type ProjectCaller = OrgCaller & { project: ProjectRef };
/** A program with an API key and the mail service the key belongs to. `allowedDomains`: of senders; none given: all. */
export type KeyCaller = {
  kind: 'apiKey'; keyId: Id<'key'>; name: string; scopes: readonly Scope[]; mode: 'live' | 'test'; allowedDomains: readonly string[];
  serviceId: Id<'mls'>; serviceStatus: 'active' | 'suspended'; sendsPerSecond: number; orgId: Id<'org'>; projectId: Id<'prj'>;
};

export type Caller = Anonymous | SessionCaller | OrgCaller | ProjectCaller | KeyCaller;

/** Who is written into audit rows and change sets. */
export type Actor = { kind: 'user' | 'apiKey' | 'system' | 'anonymous'; id: string | null; displayName: string | null };

/** Who did what, and in which request: goes into audit rows. `action` is the operationId, or what the system did. */
export type Cause = { actor: Actor; action: string; requestId: string | null; ip: string | null };

/** The cause of what the platform does by itself. */
export function systemCause(action: string): Cause {
  return { actor: { kind: 'system', id: null, displayName: null }, action, requestId: null, ip: null };
}

export function actorOf(caller: Caller): Actor {
  switch (caller.kind) {
    case 'anonymous': return { kind: 'anonymous', id: null, displayName: null };
    case 'user': return { kind: 'user', id: caller.userId, displayName: caller.displayName };
    case 'apiKey': return { kind: 'apiKey', id: caller.keyId, displayName: caller.name };
  }
}
