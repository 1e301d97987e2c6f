import { z } from 'zod';

/** U+0000 and lone surrogates are refused everywhere: PostgreSQL stores neither (contract api.md §3). */
export function isStorable(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed();
}

export const notStorable = 'must be well-formed Unicode without U+0000';

export const text = z.string().refine(isStorable, notStorable);

/** 1–80 characters after trimming, no control characters. */
export const displayName = text.transform((value) => value.trim())
  .pipe(z.string().min(1, 'must not be empty').max(80, 'must be at most 80 characters').regex(/^[^\p{Cc}]*$/u, 'must not hold control characters'))
  .meta({ description: '1 to 80 characters.' });

/** RFC 3339, UTC, milliseconds. */
export const time = z.iso.datetime({ precision: 3 });

/** A query switch: exactly true or false. */
export const flag = z.enum(['true', 'false']).transform((value) => value === 'true');
