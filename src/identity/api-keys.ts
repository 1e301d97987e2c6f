import { AppError, invalid } from '../core/errors';
import type { ProjectCaller, Scope } from '../core/caller';
import { newId, type Id } from '../core/ids';
import type { Tx } from '../db/transaction';
import { newApiKey } from './api-key';
import { may, permissionOfScope } from './permissions';
import { insertApiKey, setReplaced, setRevoked, type ApiKeyRow } from './store/api-keys';

export { listApiKeys, lockApiKey, revokeAll as revokeServiceKeys } from './store/api-keys';
export type { ApiKeyRow } from './store/api-keys';

export type KeyWish = {
  serviceId: Id<'mls'>; name: string; mode: 'live' | 'test'; scopes: readonly Scope[]; allowedDomains: readonly string[]; expiresAt: Date | null;
};
const yearsMax = 5;

/** Nobody hands out what they may not do. Errors: `forbidden` with the permission that is missing. */
export function requireScopes({ role }: Pick<ProjectCaller, 'role'>, scopes: readonly Scope[]): void {
  for (const scope of scopes) {
    const required = permissionOfScope[scope];
    if (!may(role, required)) throw new AppError('forbidden', `Your role may not hand out the scope ${scope}.`, { required });
  }
}

/** Errors: `validation_error` for a time that is past, or more than five years ahead. */
export function requireExpiry(expiresAt: Date | null, now: Date): void {
  if (expiresAt === null) return;
  const latest = new Date(now);
  latest.setUTCFullYear(latest.getUTCFullYear() + yearsMax);
  if (expiresAt <= now) throw invalid([{ path: 'expiresAt', message: 'must lie in the future' }]);
  if (expiresAt > latest) throw invalid([{ path: 'expiresAt', message: `must be at most ${yearsMax} years ahead` }]);
}

/** The key works from the commit on. Its value is known here alone. */
export async function createApiKey(tx: Tx, { org, project, userId }: ProjectCaller, wish: KeyWish): Promise<{ row: ApiKeyRow; key: string }> {
  const { key, ...shown } = newApiKey(wish.mode);
  return { key, row: await insertApiKey(tx, { ...wish, ...shown, id: newId('key'), orgId: org.id, projectId: project.id, createdBy: userId }) };
}

/**
 * A new key with the same rights works beside the old one, which ends after the grace time. `old` is locked.
 * Errors: `invalid_state` unless the old one is active and has no successor.
 */
export async function rotateApiKey(tx: Tx, caller: ProjectCaller, old: ApiKeyRow, graceHours: number): Promise<{ row: ApiKeyRow; key: string; replaced: ApiKeyRow }> {
  if (old.status !== 'active' || old.replacedBy !== null) {
    const why = old.replacedBy === null ? `The key is ${old.status}.` : 'The key has been replaced already.';
    throw new AppError('invalid_state', `${why} Create a new one.`, { status: old.status, replacedBy: old.replacedBy });
  }
  const made = await createApiKey(tx, caller, old);
  const replaced = await setReplaced(tx, old.id, { replacedBy: made.row.id, graceHours });
  if (!replaced) throw new Error('A locked key changed.');
  return { ...made, replaced };
}

/** Its next use is refused; null when it was revoked before. */
export function revokeApiKey(tx: Tx, keyId: string): Promise<ApiKeyRow | null> {
  return setRevoked(tx, keyId);
}
