import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from './canonical-json';
import { AppError } from './errors';

/** The place after which a page begins: rows are ordered by `(created_at desc, id desc)` unless a list says otherwise. */
export type PageKey = readonly (string | number)[];

const macBytes = 16;

/** Makes and reads opaque cursors: base64url of `{ v, key, filterHash }` plus a MAC (contract api.md §8). */
export class Cursors {
  constructor(private readonly secret: string) {}

  /** `list` names the list and its filter: a cursor of another list or filter is refused. */
  encode(list: unknown, key: PageKey): string {
    const body = Buffer.from(JSON.stringify({ v: 1, key, filterHash: filterHash(list) }));
    return Buffer.concat([this.mac(body), body]).toString('base64url');
  }

  /** Errors: `invalid_cursor` for a tampered one, another list's or another filter's. */
  decode(list: unknown, cursor: string): PageKey {
    const raw = Buffer.from(cursor, 'base64url');
    const body = raw.subarray(macBytes);
    if (raw.length <= macBytes || raw.toString('base64url') !== cursor || !timingSafeEqual(raw.subarray(0, macBytes), this.mac(body))) {
      throw invalidCursor();
    }
    const parsed: unknown = JSON.parse(body.toString());
    if (!isCursorBody(parsed) || parsed.filterHash !== filterHash(list)) throw invalidCursor();
    return parsed.key;
  }

  private mac(body: Buffer): Buffer {
    return createHmac('sha256', this.secret).update('holdfast-cursor').update(body).digest().subarray(0, macBytes);
  }
}

function filterHash(list: unknown): string {
  return createHash('sha256').update(canonicalJson(list)).digest('base64url').slice(0, 16);
}

function isCursorBody(value: unknown): value is { key: PageKey; filterHash: string } {
  return typeof value === 'object' && value !== null && 'v' in value && value.v === 1
    && 'filterHash' in value && typeof value.filterHash === 'string' && 'key' in value && Array.isArray(value.key);
}

function invalidCursor(): AppError {
  return new AppError('invalid_cursor', 'The cursor does not belong to this list. Start again without one.');
}
