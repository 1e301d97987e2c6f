import { z } from 'zod';
import type { Cursors, PageKey } from './cursor';

export const pageLimitMax = 100;
/** Lists for which the specification names no paging return up to this many when no limit is given. */
export const unpagedMax = 1_000;

/** A query integer: digits only (contract api.md §3). */
export const digits = z.string().regex(/^\d{1,9}$/, 'must be a whole number').transform(Number);

/** `limit` and `cursor` of a list. A limit outside 1–100 is refused, never clamped. */
export const pageQuery = {
  limit: digits.pipe(z.number().int().min(1, 'must be 1 to 100').max(pageLimitMax, 'must be 1 to 100')).optional()
    .meta({ description: 'Rows per page, 1 to 100.' }),
  cursor: z.string().min(1).max(2_000).optional().meta({ description: 'nextCursor of the page before.' }),
};

export type PageRequest = { limit?: number | undefined; cursor?: string | undefined };
export type Page<T> = { items: T[]; nextCursor: string | null; hasMore: boolean };

/**
 * Runs a keyset list. `list` names the list, its scope and its filter: a cursor fits only there. `fetch` gets the key to
 * begin after (null: from the start) and how many rows to read, which is one more than the page.
 * Errors: `invalid_cursor`.
 */
export async function readPage<T>(
  cursors: Cursors,
  list: unknown,
  request: PageRequest,
  options: { limitDefault: number; keyOf: (row: T) => PageKey; fetch: (after: PageKey | null, limit: number) => Promise<T[]> },
): Promise<Page<T>> {
  const limit = request.limit ?? options.limitDefault;
  const after = request.cursor === undefined ? null : cursors.decode(list, request.cursor);
  const rows = await options.fetch(after, limit + 1);
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const hasMore = rows.length > limit;
  return { items, hasMore, nextCursor: hasMore && last !== undefined ? cursors.encode(list, options.keyOf(last)) : null };
}

/** The two fields every list answers beside its rows. */
export const pageAnswer = { nextCursor: z.string().nullable(), hasMore: z.boolean() };
