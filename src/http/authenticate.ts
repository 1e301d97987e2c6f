import type { Caller, KeyCaller, OrgCaller, ProjectCaller, SessionCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { requireFresh } from '../core/freshness';
import { may } from '../identity/permissions';
import { requireSameOrigin } from './cross-origin';
import type { Operation } from './operation';

export type Slugs = { orgSlug?: string; projectSlug?: string };
export type ReadSession = { caller: SessionCaller | OrgCaller | ProjectCaller; setCookies: readonly string[] };

/** What the frame asks of identity; deps.ts hands it in. */
export interface Authenticator {
  /** Errors: `unauthenticated`; `not_found` for an organisation or project that is absent or foreign. */
  readSession(cookieHeader: string | undefined, slugs: Slugs): Promise<ReadSession>;
  /** Errors: `invalid_api_key`, alike for every cause. */
  checkApiKey(authorization: string | undefined): Promise<KeyCaller>;
}

type Headers = Readonly<Record<string, string | undefined>>;
type Authenticated = { caller: Caller; setCookies: readonly string[] };

/** Who calls, and whether this operation lets them (contract api.md §5). Cookies count only where a session is asked for. */
export async function authenticate<D>(auth: Authenticator, operation: Operation<D>, headers: Headers, slugs: Slugs): Promise<Authenticated> {
  switch (operation.auth.kind) {
    case 'open':
      requireSameOrigin(operation.method, headers);
      return { caller: { kind: 'anonymous' }, setCookies: [] };
    case 'signature':
      return { caller: { kind: 'anonymous' }, setCookies: [] };
    case 'scope': {
      const caller = await auth.checkApiKey(headers['authorization']);
      const { scope } = operation.auth;
      if (!caller.scopes.includes(scope)) throw new AppError('insufficient_scope', `This API key lacks the scope ${scope}.`, { required: scope });
      return { caller, setCookies: [] };
    }
    case 'self':
    case 'permission': {
      requireSameOrigin(operation.method, headers);
      return auth.readSession(headers['cookie'], slugs);
    }
  }
}

/**
 * Errors: `forbidden` when the role is too small, `reauthentication_required` when ✱ asks for a fresh session,
 * `invalid_state` for a write in an organisation or project that is being deleted.
 */
export function authorise<D>(operation: Operation<D>, caller: Caller, now: Date): void {
  if (operation.auth.kind === 'permission') {
    const { permission } = operation.auth;
    if (!('role' in caller) || !may(caller.role, permission)) {
      throw new AppError('forbidden', `Your role does not include ${permission}. Ask an owner of the organisation.`, { required: permission });
    }
  }
  if (operation.fresh) requireFresh(caller, now);
  if (operation.method !== 'get' && !operation.whileDeleting) requireNotDeleting(caller);
}

function requireNotDeleting(caller: Caller): void {
  for (const [kind, subject] of [['organisation', 'org' in caller ? caller.org : null], ['project', 'project' in caller ? caller.project : null]] as const) {
    if (subject?.status === 'deleting') throw new AppError('invalid_state', `This ${kind} is being deleted; it can only be read.`);
  }
}
