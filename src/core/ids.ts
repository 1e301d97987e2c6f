import { randomBytes } from 'node:crypto';

/** Prefixes of resource ids (contract api.md §3). */
export const idPrefixes = [
  'usr', 'ses', 'org', 'prj', 'inv', 'key', 'aud', 'op', 'mls', 'dom', 'msg', 'rcp', 'evt', 'sup', 'whk',
  'zone', 'rec', 'gwe', 'crt', 'pg', 'bak', 'sub', 'use', 'bil', 'led', 'req',
] as const;

export type IdPrefix = (typeof idPrefixes)[number];
/** `<prefix>_<26 characters>`; the template type is the brand: an `Id<'pg'>` is never an `Id<'org'>`. */
export type Id<P extends IdPrefix> = `${P}_${string}`;

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const suffix = /^[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}$/;

let lastMs = 0;
let counter = 0;

/**
 * A new id: UUIDv7 (RFC 9562 §5.7) in lower-case Crockford base32, TypeID form. Ids of one process are strictly
 * increasing: within a millisecond the 12 bits of rand_a count up (RFC 9562 §6.2, method 1).
 */
export function newId<P extends IdPrefix>(prefix: P, nowMs: number = Date.now()): Id<P> {
  const bytes = randomBytes(16);
  if (nowMs > lastMs) {
    lastMs = nowMs;
    counter = bytes.readUInt16BE(6) & 0x3ff; // room to count up before the 12 bits are spent
  } else if (++counter > 0xfff) {
    lastMs += 1;
    counter = 0;
  }
  bytes.writeUIntBE(lastMs, 0, 6);
  bytes.writeUInt16BE(0x7000 | counter, 6);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  return `${prefix}_${encode(bytes)}`;
}

/** Whether the text is a well-formed id of this prefix. A malformed id is answered like an absent one: 404. */
export function isId<P extends IdPrefix>(prefix: P, text: unknown): text is Id<P> {
  return typeof text === 'string' && text.startsWith(`${prefix}_`) && suffix.test(text.slice(prefix.length + 1));
}

/** The millisecond an id was made in, as far as it counts (see newId). The id must be well-formed. */
export function timeOfId<P extends IdPrefix>(id: Id<P>): Date {
  const text = id.slice(id.length - 26);
  let value = 0;
  for (const letter of text.slice(0, 10)) value = value * 32 + alphabet.indexOf(letter);
  return new Date(value);
}

function encode(bytes: Buffer): string {
  let value = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = alphabet.charAt(Number(value & 31n)) + text;
    value >>= 5n;
  }
  return text;
}
