import { AppError } from '../core/errors';
import type { Method } from './operation';

type Headers = Readonly<Record<string, string | undefined>>;

/**
 * Refuses cross-site writes to cookie routes by the algorithm of Go 1.25's CrossOriginProtection: Sec-Fetch-Site decides
 * where a browser sends it, else Origin against Host. A client that sends neither is not a browser and passes.
 * Errors: `csrf_rejected`.
 */
export function requireSameOrigin(method: Method, headers: Headers): void {
  if (method === 'get' || isSameOrigin(headers)) return;
  throw new AppError('csrf_rejected', 'Requests from another site are refused. Send this one from the site itself or without browser headers.');
}

function isSameOrigin(headers: Headers): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== '') return site === 'same-origin' || site === 'none';
  const origin = headers['origin'];
  if (origin === undefined || origin === '') return true;
  return hostOf(origin) === headers['host']?.toLowerCase();
}

/** Host with port as the origin writes it; null (as for `Origin: null`) equals no host. */
function hostOf(origin: string): string | null {
  const match = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)$/i.exec(origin);
  return match?.[1]?.toLowerCase() ?? null;
}
