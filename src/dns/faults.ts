import { AppError, notFound } from '../core/errors';
import type { ZoneRow } from './store/zones';

export const noZone = (): AppError => notFound('DNS zone');
export const noRecord = (): AppError => notFound('DNS record');

/** Errors: `not_found` for what is absent, foreign or deleted. */
export function requireZone(zone: ZoneRow | null): ZoneRow {
  if (!zone || zone.deletedAt) throw noZone();
  return zone;
}

/** Errors: as requireZone, then `service_suspended`. */
export function requireWritable(zone: ZoneRow | null): ZoneRow {
  const found = requireZone(zone);
  if (found.suspendedAt) throw new AppError('service_suspended', 'The zone is suspended: it is answered, and cannot be changed.', { reason: found.suspendedReason });
  return found;
}

/** Errors: `precondition_failed` when If-Match names another version. */
export function requireVersion(ifMatch: string | null, version: number): void {
  if (ifMatch === null || ifMatch.trim() === '*' || ifMatch.split(',').some((tag) => tag.trim() === etag(version))) return;
  throw new AppError('precondition_failed', `This was changed meanwhile: it is at version ${version}. Read it again.`, { version });
}

export function etag(version: number): string {
  return `"${version}"`;
}
