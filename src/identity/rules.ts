import { rank } from './permissions';
import type { Role } from '../core/caller';
import { commonPasswords } from './common-passwords';

export const slugPattern = /^(?=.{1,40}$)[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9]))*$/;
/** Words of our own addresses (contract identity.md §4). */
export const reservedSlugs = [
  'api', 'auth', 'admin', 'new', 'settings', 'login', 'docs', 'health', 'metrics', 'v1', 'me', 'orgs', 'static', 'assets',
] as const;

const derivedSlugMax = 36;
export const passwordMin = 8;
export const passwordMax = 128;
export const aliasDays = 90;
export const sessionsPerUserMax = 20;
export const invitationDays = 7;
export const verifyTtlSeconds = 24 * 3_600;

export function isReservedSlug(slug: string): boolean {
  return reservedSlugs.some((word) => word === slug);
}

/** A slug made of a name: ASCII-folded, other runs become `-`, cut at 36; `fallback` when nothing is left. */
export function slugBase(displayName: string, fallback: 'org' | 'project'): string {
  const folded = displayName.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().replace(/ß/g, 'ss').replace(/[^a-z0-9]+/g, '-');
  return folded.slice(0, derivedSlugMax).replace(/^-+|-+$/g, '').slice(0, derivedSlugMax) || fallback;
}

/** The base, or the first of base-2, base-3 … that is not taken. Room for the number is left by the cut at 36. */
export function firstFreeSlug(base: string, taken: ReadonlySet<string>): string {
  const isFree = (slug: string) => !taken.has(slug) && !isReservedSlug(slug);
  if (isFree(base)) return base;
  for (let n = 2; ; n++) if (isFree(`${base}-${n}`)) return `${base}-${n}`;
}

/** Why a password is refused, null when it is good. Length counts characters; there are no composition rules. */
export function passwordFault(password: string, owner: { email?: string | undefined; displayName?: string | undefined } = {}): string | null {
  const length = [...password].length;
  if (length < passwordMin || length > passwordMax) return `must be ${passwordMin} to ${passwordMax} characters`;
  const lower = password.toLowerCase();
  if (commonPasswords.has(lower)) return 'is one of the passwords that are guessed first; choose another';
  const { email, displayName } = owner;
  if (lower === email?.toLowerCase() || lower === email?.split('@')[0]?.toLowerCase()) return 'must not be your email address';
  return lower === displayName?.trim().toLowerCase() ? 'must not be your name' : null;
}

/** Nobody grants, changes or removes a role above their own. */
export function mayHandle(own: Role, other: Role): boolean {
  return rank(own) >= rank(other);
}

/** The one address form that is stored and compared. */
export function canonicalEmail(email: string): string {
  return email.trim().toLowerCase();
}
