import { z } from 'zod';
import { accessModes, plans } from '../rules';

/**
 * The calls of the instance host's two sockets: `host.sock` for the worker's adapter, `gateway.sock` for the gateway. Names
 * and verifiers end up in SQL that a superuser runs, so their alphabets are closed here.
 */
const roleName = z.string().regex(/^[our]_[0-9a-z]{12}(_[12])?$/);
const verifier = z.string().regex(/^SCRAM-SHA-256\$\d{4,6}:[A-Za-z0-9+/=]{16,64}\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$/);
/** Becomes a directory's name. */
const backupId = z.string().regex(/^bak_[0-9a-z]{26}$/);
const count = z.number().int().min(0);

export const serviceIdSchema = z.string().regex(/^pg_[0-9a-z]{26}$/);
export const instanceRefSchema = z.string().regex(/^in_[0-9a-z]{16}$/);
export const accessModeSchema = z.enum(accessModes);

const limits = z.object({
  plan: z.enum(plans), storageBytes: count, connections: count, sharedBuffersMb: count, workMemMb: count, maxWalSizeMb: count,
  tempFileLimitMb: count, statementTimeoutSeconds: count, idleStopMinutes: count.nullable(),
});

const names = z.object({
  label: z.string(), key: z.string().regex(/^[0-9a-z]{12}$/), owner: roleName, logins: z.tuple([roleName, roleName]), restricted: roleName,
  database: z.string().regex(/^[a-z][a-z0-9_]{0,30}$/),
});

const ref = z.object({ serviceId: serviceIdSchema, generation: z.number().int().min(1), hostId: z.string(), instanceRef: z.string().nullable(), names, limits });
const login = z.object({
  name: roleName, verifier, connectionLimit: count, validUntil: z.iso.datetime({ offset: true }).nullable(), enabled: z.boolean(),
});

/** What each call takes. */
export const hostCalls = {
  place: ref.extend({ version: z.string() }),
  ensureInstance: ref.extend({ version: z.string() }),
  ensureAccess: ref.extend({ logins: z.array(login).max(2), endSessionsOf: z.array(roleName).max(2) }),
  setLimits: ref,
  setAccessMode: ref.extend({ mode: accessModeSchema, stop: z.boolean() }),
  observe: ref,
  snapshot: ref.extend({ backupId }),
  restore: ref.extend({ source: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('retained') }),
    z.object({ kind: z.literal('backup'), serviceId: serviceIdSchema, backupId, targetTime: z.iso.datetime({ offset: true }).nullable() }),
  ]) }),
  destroy: ref.extend({ retain: z.boolean() }),
  dropBackup: z.object({ serviceId: serviceIdSchema, backupId }),
  drill: z.object({ serviceId: serviceIdSchema, backupId }),
  inventory: z.object({}),
  acquire: z.object({ serviceId: serviceIdSchema }),
  release: z.object({ serviceId: serviceIdSchema }),
};

const metrics = z.object({
  connections: z.object({ active: count, idle: count, waiting: count, limit: count }),
  transactions: z.number(), blocksHit: z.number(), blocksRead: z.number(), walBytes: z.number(),
  oldestTransactionSeconds: z.number(), blockedSessions: count,
});

/** What each call answers. */
export const hostAnswers = {
  place: z.object({ instanceRef: instanceRefSchema }),
  ensureInstance: z.object({ systemId: z.string().nullable() }),
  ensureAccess: z.object({ provenAt: z.string().nullable() }),
  setLimits: z.object({ restarted: z.boolean() }),
  setAccessMode: z.null(),
  observe: z.object({
    usedBytes: z.number().nullable(), compute: z.enum(['running', 'idle', 'stopped']), mode: accessModeSchema,
    verifiers: z.record(z.string(), z.string()), metrics: metrics.nullable(), newestArchivedWal: z.string().nullable(), systemId: z.string().nullable(),
    provenAt: z.string().nullable(),
  }),
  snapshot: z.object({ sizeBytes: z.number(), from: z.string(), systemId: z.string() }),
  restore: z.object({ reachedTime: z.string().nullable() }),
  destroy: z.null(),
  dropBackup: z.null(),
  drill: z.object({ systemId: z.string(), tables: z.number(), rows: z.number() }),
  inventory: z.array(z.object({ instanceRef: z.string(), serviceId: z.string().nullable(), retained: z.boolean() })),
  acquire: z.object({ port: z.number().int() }),
  release: z.null(),
};

export type HostCall<K extends keyof typeof hostCalls> = z.infer<(typeof hostCalls)[K]>;
export type HostAnswer<K extends keyof typeof hostAnswers> = z.infer<(typeof hostAnswers)[K]>;
