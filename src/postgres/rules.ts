import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import type { Id } from '../core/ids';
import type { StorageState } from './state';

/** Plans of Postgres services, smallest first (specification, Postgres service). */
export const plans = ['trial', 'starter', 'launch', 'growth', 'business'] as const;
export type Plan = (typeof plans)[number];

/** How far a service is open, derived from its row and its storage (contract postgres.md §4.5). */
export const accessModes = ['full', 'read_only', 'restricted', 'blocked'] as const;
export type AccessMode = (typeof accessModes)[number];

/** What a service may use. Nothing here is a value its own roles can change, but `statementTimeoutSeconds`, which is a default. */
export type Limits = {
  plan: Plan;
  /** Data directory with its WAL. */
  storageBytes: number;
  connections: number;
  sharedBuffersMb: number;
  workMemMb: number;
  maxWalSizeMb: number;
  tempFileLimitMb: number;
  /** 0: none. */
  statementTimeoutSeconds: number;
  /** Minutes without a session after which the instance is stopped; null: never. */
  idleStopMinutes: number | null;
};

const gib = 1024 ** 3;

/** Limits of each plan (contract postgres.md §8). */
export const planLimits: Readonly<Record<Plan, Limits>> = {
  trial: limits('trial', [gib / 2, 10], [16, 2, 64, 256], [60, 5]),
  starter: limits('starter', [2 * gib, 20], [32, 4, 256, 1024], [0, 30]),
  launch: limits('launch', [10 * gib, 60], [128, 4, 1024, 4096], [0, null]),
  growth: limits('growth', [50 * gib, 120], [1024, 8, 4096, 20_480], [0, null]),
  business: limits('business', [250 * gib, 400], [4096, 16, 16_384, 51_200], [0, null]),
};

/** Bytes a host reserves for a service of each plan. */
export const storageBytesOf: Readonly<Record<Plan, number>> = {
  trial: planLimits.trial.storageBytes, starter: planLimits.starter.storageBytes, launch: planLimits.launch.storageBytes, growth: planLimits.growth.storageBytes, business: planLimits.business.storageBytes,
};

/** Shares of busy workers: nobody waits behind one organisation's many jobs, and paying more gets there sooner. */
export const workWeights: Readonly<Record<Plan, number>> = { trial: 1, starter: 2, launch: 4, growth: 8, business: 16 };

/** Share of the storage from which owners are told by mail. */
export const storageNoticeShare = 0.9;

/**
 * What fullness does to a service (contract postgres.md §4.5). Hysteresis: what is read-only or restricted stays so until less than 90 % is
 * used, so nobody is thrown in and out at the border. Null: not measured, nothing changes.
 */
export function storageState(usedBytes: number | null, limitBytes: number, previous: StorageState): StorageState {
  if (usedBytes === null) return previous;
  const share = usedBytes / limitBytes;
  if (share >= 1 || (previous === 'restricted' && share >= 0.9)) return 'restricted';
  if (share >= 0.95 || (previous === 'read_only' && share >= 0.9)) return 'read_only';
  return share >= 0.8 ? 'warning' : 'ok';
}

/** Everything that is called after a service, as a function of its id: known before anything is made, and never a customer's text. */
export type Names = {
  /** Host label under the gateway's domain. */
  label: string;
  /** Last 12 characters of the service id. */
  key: string;
  owner: string;
  logins: readonly [string, string];
  /** Group that a login is moved to while storage is exhausted. */
  restricted: string;
  database: string;
};

/** Names of a service (contract postgres.md §4.2); `isolation` database: it shares a server, so its database needs a name of its own. */
export function namesOf(serviceId: Id<'pg'>, isolation: 'instance' | 'database' = 'instance'): Names {
  const key = serviceId.slice(-12);
  return {
    label: `pg-${serviceId.slice('pg_'.length)}`,
    key,
    owner: `o_${key}`,
    logins: [`u_${key}_1`, `u_${key}_2`],
    restricted: `r_${key}`,
    database: isolation === 'instance' ? 'app' : `d_${key}`,
  };
}

/** What the neighbours of a service share where this backend has made it. */
export function isolationOf(backend: string): 'instance' | 'database' {
  return backend === 'host_pool' ? 'database' : 'instance';
}

/** Key of the service a login belongs to; null for a name we never gave. */
export function keyOfLogin(login: string): string | null {
  return /^u_([0-9a-hjkmnp-tv-z]{12})_[12]$/.exec(login)?.[1] ?? null;
}

/** Service id of a host label or of a host name that begins with one; null for anything else. */
export function serviceIdOfHost(host: string): Id<'pg'> | null {
  const match = /^pg-([0-7][0-9a-hjkmnp-tv-z]{25})(?:\.|$)/.exec(host.toLowerCase());
  return match?.[1] ? `pg_${match[1]}` : null;
}

/** A password nobody chose: 24 random bytes, base64url. */
export function newPassword(): string {
  return randomBytes(24).toString('base64url');
}

/**
 * What PostgreSQL stores instead of the password (RFC 5803 form of RFC 5802, 4096 rounds), so that its logs can never
 * hold it. The password must be ASCII: no SASLprep is done.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, 4096, 32, 'sha256');
  const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest('base64');
  return `SCRAM-SHA-256$4096:${salt.toString('base64')}$${storedKey}:${hmac(salted, 'Server Key').toString('base64')}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function limits(
  plan: Plan, [storageBytes, connections]: readonly [number, number], [sharedBuffersMb, workMemMb, maxWalSizeMb, tempFileLimitMb]: readonly [number, number, number, number],
  [statementTimeoutSeconds, idleStopMinutes]: readonly [number, number | null],
): Limits {
  return { plan, storageBytes, connections, sharedBuffersMb, workMemMb, maxWalSizeMb, tempFileLimitMb, statementTimeoutSeconds, idleStopMinutes };
}
