import { createHmac, timingSafeEqual } from 'node:crypto';

export const sessionCookieName = '__Host-holdfast_session';
const attributes = 'Path=/; HttpOnly; Secure; SameSite=Lax';

/** The Set-Cookie line that begins a session. The form is the engine's: `<token>.<base64 HMAC-SHA-256>`, URL-encoded. */
export function sessionCookie(token: string, secret: string, maxAgeSeconds: number): string {
  return `${sessionCookieName}=${sessionCookieValue(token, secret)}; Max-Age=${maxAgeSeconds}; ${attributes}`;
}

/** The Set-Cookie line that ends one. */
export const clearedSessionCookie = `${sessionCookieName}=; Max-Age=0; ${attributes}`;

export function sessionCookieValue(token: string, secret: string): string {
  return encodeURIComponent(`${token}.${signature(token, secret).toString('base64')}`);
}

export type SignedCookie = { token: string; value: string };

/** The token of a Cookie header's session, when its signature is ours. No database trip is made for one that is not. */
export function readSessionCookie(header: string | undefined, secret: string): SignedCookie | null {
  const value = cookieValue(header);
  const text = value === null ? null : decoded(value);
  if (value === null || text === null) return null;
  const dot = text.lastIndexOf('.');
  if (dot < 1) return null;
  const token = text.slice(0, dot);
  const given = text.slice(dot + 1);
  if (!/^[A-Za-z0-9+/]{43}=$/.test(given)) return null;
  return timingSafeEqual(Buffer.from(given, 'base64'), signature(token, secret)) ? { token, value } : null;
}

/** First of its name, out of its quotes, as the engine reads it. */
function cookieValue(header: string | undefined): string | null {
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === sessionCookieName) return pair.slice(equals + 1).trim().replace(/^"(.*).$/, '$1');
  }
  return null;
}

function decoded(value: string): string | null {
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}

function signature(token: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(token).digest();
}
