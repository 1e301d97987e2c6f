import type { Caller } from './caller';
import { AppError } from './errors';

/** Errors: `reauthentication_required` unless the session gave its password within SESSION_FRESH_SECONDS. */
export function requireFresh(caller: Caller, now: Date): void {
  if (caller.kind === 'user' && caller.freshUntil !== null && caller.freshUntil > now) return;
  throw new AppError('reauthentication_required', 'Give your password again (POST /v1/api/auth/reauthenticate), then repeat this request.');
}
