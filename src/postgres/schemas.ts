import { z } from 'zod';
import { displayName, flag, time } from '../core/fields';
import { pageAnswer, pageQuery } from '../core/page';
import { operationSchema } from '../operations/view';
import { allowedCidrsMax, readCidr } from './networks';
import { accessModes, plans } from './rules';
import { phases, statuses, statusReasons, storageStates } from './state';

const cidr = z.string().max(50).transform((text, context) => {
  const read = readCidr(text.trim());
  if ('cidr' in read) return read.cidr;
  context.addIssue({ code: 'custom', message: read.fault });
  return z.NEVER;
});

const allowedCidrs = z.array(cidr).max(allowedCidrsMax)
  .refine((list) => new Set(list).size === list.length, 'must not name a network twice')
  .meta({ description: 'Networks that may connect; empty: all.' });

export const createServiceBody = z.strictObject({
  displayName,
  plan: z.enum(plans),
  region: z.string().max(40).optional().meta({ description: 'Slug of a region; default: the first of GET options.' }),
  version: z.string().max(10).optional().meta({ description: 'Major version; default: the newest of the region.' }),
  deletionProtection: z.boolean().optional(),
  allowedCidrs: allowedCidrs.optional(),
});
export type CreateService = z.output<typeof createServiceBody>;

export const updateServiceBody = z.strictObject({
  displayName: displayName.optional(),
  deletionProtection: z.boolean().optional(),
  allowedCidrs: allowedCidrs.optional(),
}).refine((body) => Object.values(body).some((value) => value !== undefined), 'must change at least one field');
export type UpdateService = z.output<typeof updateServiceBody>;

const overlapSeconds = { min: 60, max: 86_400 } as const;

export const rotateCredentialsBody = z.strictObject({
  mode: z.enum(['immediate', 'overlap']).optional().meta({ description: 'immediate (default): the former password ends at once. overlap: both are good for a while, each with a login of its own.' }),
  overlapSeconds: z.number().int().min(overlapSeconds.min).max(overlapSeconds.max).optional().meta({ description: 'Default 3600.' }),
  terminateConnections: z.boolean().optional().meta({ description: 'Default: true for immediate, false for overlap.' }),
}).refine((body) => body.overlapSeconds === undefined || body.mode === 'overlap', { path: ['overlapSeconds'], message: 'goes with mode overlap alone' });
export type RotateCredentials = z.output<typeof rotateCredentialsBody>;

export const listServicesQuery = z.object({ ...pageQuery, status: z.enum(statuses).optional() });
export const getServiceQuery = z.object({ deleted: flag.optional() });
export const deleteServiceQuery = z.object({ purge: flag.optional() });
export const credentialsQuery = z.object({ reveal: flag.optional() });
export const emptyBody = z.strictObject({});

export const serviceSchema = z.object({
  id: z.string(),
  displayName: z.string(),
  plan: z.enum(plans),
  status: z.enum(statuses),
  statusReason: z.enum(statusReasons).nullable(),
  phase: z.enum(phases).nullable(),
  operationId: z.string().nullable().meta({ description: 'The open operation that holds the service.' }),
  region: z.string(),
  engine: z.literal('postgres'),
  version: z.string(),
  isolation: z.enum(['instance', 'database']),
  compute: z.enum(['running', 'idle', 'stopped']),
  accessMode: z.enum(accessModes),
  host: z.string().nullable(),
  port: z.number().int().nullable(),
  database: z.string(),
  connections: z.object({ limit: z.number().int() }),
  allowedCidrs: z.array(z.string()),
  deletionProtection: z.boolean(),
  sourceServiceId: z.string().nullable(),
  storage: z.object({ usedBytes: z.number().int().nullable(), limitBytes: z.number().int(), state: z.enum(storageStates), measuredAt: time.nullable() }),
  backups: z.object({ retentionDays: z.number().int(), earliestRestoreTime: time.nullable(), latestRestoreTime: time.nullable() }),
  createdAt: time,
  updatedAt: time,
  availableAt: time.nullable(),
  suspendedAt: time.nullable(),
  deletionRequestedAt: time.nullable(),
  deletedAt: time.nullable(),
  recoverableUntil: time.nullable(),
  trialExpiresAt: time.nullable(),
}).meta({ id: 'PostgresService' });
export type ServiceView = z.infer<typeof serviceSchema>;

export const credentialsSchema = z.object({
  serviceId: z.string(),
  version: z.number().int(),
  revealed: z.boolean(),
  ready: z.boolean(),
  host: z.string().nullable(),
  port: z.number().int().nullable(),
  database: z.string(),
  user: z.string(),
  password: z.string().meta({ description: 'Eight asterisks unless revealed.' }),
  sslmode: z.enum(['verify-full', 'require']),
  caCertificate: z.string().nullable(),
  jdbcUrl: z.string().nullable(),
  previous: z.object({ version: z.number().int(), user: z.string(), validUntil: time.nullable() }).nullable(),
  inSync: z.boolean().nullable(),
  createdAt: time,
  updatedAt: time,
  rotatedAt: time.nullable(),
}).meta({ id: 'PostgresCredentials' });
export type CredentialsView = z.infer<typeof credentialsSchema>;

export const limitsSchema = z.object({
  storageBytes: z.number().int(),
  connections: z.number().int(),
  sharedBuffersMb: z.number().int(),
  workMemMb: z.number().int(),
  maxWalSizeMb: z.number().int(),
  tempFileLimitMb: z.number().int(),
  statementTimeoutSeconds: z.number().int().meta({ description: '0: none; a default a role may change.' }),
  idleStopMinutes: z.number().int().nullable(),
  backupRetentionDays: z.number().int(),
  undeleteHours: z.number().int(),
  trialDays: z.number().int().nullable(),
}).meta({ id: 'PostgresPlanLimits' });

export const metricsSchema = z.object({
  compute: z.enum(['running', 'idle', 'stopped']),
  connections: z.object({ active: z.number().int(), idle: z.number().int(), waiting: z.number().int(), limit: z.number().int() }),
  transactionsPerSecond: z.number(),
  cacheHitRatio: z.number().meta({ description: '0 to 1.' }),
  usedBytes: z.number().int().nullable(),
  walBytesPerSecond: z.number(),
  oldestTransactionSeconds: z.number(),
  blockedSessions: z.number().int(),
  measuredAt: time.nullable(),
}).meta({ id: 'PostgresMetrics' });
export type MetricsView = z.infer<typeof metricsSchema>;

export const metricsAnswer = z.object({ metrics: metricsSchema });
export const serviceAnswer = z.object({ service: serviceSchema });
export const listServicesAnswer = z.object({ services: z.array(serviceSchema), ...pageAnswer });
export const acceptedAnswer = z.object({ serviceId: z.string(), status: z.enum(statuses), service: serviceSchema, operation: operationSchema });
/** A purge of what was deleted before has nothing left to follow. */
export const deletedAnswer = acceptedAnswer.extend({ operation: operationSchema.nullable() });
export const credentialsAnswer = z.object({ connectionString: z.string().nullable(), credentials: credentialsSchema });
export const optionsAnswer = z.object({
  options: z.object({
    plans: z.array(z.object({ code: z.enum(plans), limits: limitsSchema })),
    regions: z.array(z.object({ slug: z.string(), isolation: z.enum(['instance', 'database']), versions: z.array(z.string()) })),
    defaults: z.object({ region: z.string(), version: z.string() }),
  }),
});
