import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { KeyCaller } from '../core/caller';
import { AppError } from '../core/errors';
import { digest } from '../core/secrets';
import { prepared, type Database } from '../db/client';
import { shareReads } from '../db/shared-reads';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const form = /^hf_(?:live|test)_[0-9A-Za-z]{46}$/;

/** A new key: `hf_live_` or `hf_test_`, 40 random base62, 6 base62 of the CRC-32 of all before (contract mail.md §4.3). */
export function newApiKey(mode: 'live' | 'test'): { key: string; digest: string; prefix: string; last4: string } {
  const body = `hf_${mode}_${Array.from({ length: 40 }, () => alphabet.charAt(randomInt(62))).join('')}`;
  const key = body + checksum(body);
  return { key, digest: digest(key), prefix: key.slice(0, 12), last4: key.slice(-4) };
}

/** Whether the text can be a key at all; asked before the database is. */
export function isApiKey(text: string): boolean {
  return form.test(text) && checksum(text.slice(0, -6)) === text.slice(-6);
}

const statement = `
  select k.id as "keyId", k.name, k.scopes, k.mode, k.allowed_domains as "allowedDomains", k.org_id as "orgId", k.project_id as "projectId",
    s.id as "serviceId", s.status as "serviceStatus", s.sends_per_second as "sendsPerSecond",
    k.last_used_at is null or k.last_used_at < now() - interval '1 minute' as stale
  from api_key k
  join mail_service s on s.id = k.service_id and s.status in ('active', 'suspended')
  join project p on p.id = k.project_id and p.status = 'active'
  join organization o on o.id = k.org_id and o.status = 'active'
  where k.digest = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
    and (k.grace_until is null or k.grace_until > now())`;

/**
 * The key of an `Authorization: Bearer` header. No cache: a revoked key fails on the next request.
 * Errors: `invalid_api_key`, the same for absent, malformed, unknown, revoked and expired.
 */
export async function checkApiKey(deps: { db: Database }, authorizationHeader: string | undefined): Promise<KeyCaller> {
  const key = /^Bearer +(\S+)$/i.exec(authorizationHeader ?? '')?.[1];
  if (key === undefined || !isApiKey(key)) throw invalidApiKey();
  const row = await readerOf(deps.db)(digest(key));
  if (!row) throw invalidApiKey();
  const { stale, ...found } = row;
  if (stale) await markUsed(deps.db, found.keyId);
  return { kind: 'apiKey', ...found };
}

type KeyRow = Omit<KeyCaller, 'kind'> & { stale: boolean };
const readers = new WeakMap<Database, (digest: string) => Promise<KeyRow | null>>();

/** Of requests that come at once with one key, each is answered by a read that began after it came. */
function readerOf(db: Database): (digest: string) => Promise<KeyRow | null> {
  const known = readers.get(db);
  if (known) return known;
  const made = shareReads((given: string) => given, async (given) => (await prepared<KeyRow>(db, statement, [given]))[0] ?? null);
  readers.set(db, made);
  return made;
}

/** At most once a minute per key, whoever comes first. */
async function markUsed(db: Database, keyId: string): Promise<void> {
  await prepared(db, `update api_key set last_used_at = now() where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')`, [keyId]);
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let i = 0; i < 6; i++) {
    digits = alphabet.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

function invalidApiKey(): AppError {
  return new AppError('invalid_api_key', 'The API key is missing or not valid.');
}
