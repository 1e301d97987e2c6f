import { z } from 'zod';
import { flag, text, time } from '../core/fields';
import { pageAnswer, pageQuery } from '../core/page';
import { recordTypes } from './rules/rrset';
import { ttlMax, ttlMin } from './rules/values';
import { shownZoneStatuses, statusReasons } from './state';

const zoneModes = ['full_hosting', 'external'] as const;
const recordStatuses = ['active', 'deleted', 'all'] as const;

const domain = text.pipe(z.string().min(1, 'must not be empty').max(1_000, 'is too long for a domain name'));
const nameservers = z.array(domain).max(20, 'must be at most 13 names').meta({ description: 'Your own name server names; none: ours.' });
export const createZoneBody = z.strictObject({
  domain: domain.meta({ description: 'The domain name, in ASCII or Unicode.' }),
  mode: z.enum(zoneModes),
  customNameservers: nameservers.optional(),
}).meta({ id: 'CreateDnsZone' });
export const updateZoneBody = z.strictObject({ customNameservers: nameservers }).meta({ id: 'UpdateDnsZone' });

export const zoneSchema = z.object({
  id: z.string(), domain: z.string(), unicodeDomain: z.string(), mode: z.enum(zoneModes),
  status: z.enum(shownZoneStatuses), statusReason: z.enum(statusReasons).nullable(), served: z.boolean(),
  nameservers: z.array(z.string()), customNameservers: z.array(z.string()),
  glue: z.array(z.object({ name: z.string(), ipv4: z.array(z.string()), ipv6: z.array(z.string()) })),
  cnameTarget: z.string().nullable(),
  verification: z.object({
    method: z.enum(['nameservers', 'txt']), record: z.object({ type: z.literal('TXT'), name: z.string(), value: z.string() }).nullable(),
    provenAt: time.nullable(), lastCheckedAt: time.nullable(), nextCheckAt: time.nullable(), failures: z.number(), report: z.unknown().nullable(),
  }),
  version: z.number(), serial: z.number(),
  publication: z.object({ publishedVersion: z.number(), published: z.boolean(), publishedAt: time.nullable() }),
  sync: z.object({ status: z.enum(['synced', 'pending', 'blocked', 'failed']), lastSyncedAt: time.nullable(), lastError: z.object({ code: z.string(), message: z.string() }).nullable() }),
  dnssec: z.object({ status: z.literal('off'), ds: z.array(z.string()) }),
  gatewayMode: z.enum(['off', 'monitor', 'block']),
  recordCount: z.number(), proxiedCount: z.number(), recordLimit: z.number().nullable(),
  createdAt: time, updatedAt: time, activatedAt: time.nullable(), expiresAt: time.nullable(), deletedAt: time.nullable(), purgeAt: time.nullable(),
}).meta({ id: 'DnsZone' });
export type ZoneView = z.infer<typeof zoneSchema>;

export const warnings = z.array(z.object({ code: z.string(), message: z.string() }));
export const zoneAnswer = z.object({ zone: zoneSchema });
export const zoneWarningsAnswer = z.object({ zone: zoneSchema, warnings });
export const deletedZoneAnswer = z.object({ deleted: z.literal(true), zoneId: z.string(), zone: zoneSchema, warnings });
export const listZonesAnswer = z.object({ zones: z.array(zoneSchema), ...pageAnswer });
const search = text.pipe(z.string().min(1).max(253));
export const listZonesQuery = z.object({ ...pageQuery, status: z.enum(shownZoneStatuses).optional(), mode: z.enum(zoneModes).optional(), search: search.optional() });

const value = text.pipe(z.string().max(17_000, 'is too long'));
// Ranges and forms are rules (rules/values.ts, rules/origins.ts): told together with all other faults, and the same for zone files.
const ttl = z.number().int().meta({ minimum: ttlMin, maximum: ttlMax, description: 'Seconds; shared by all records of the name and type. Default 300.' });
const priority = z.number().int().meta({ minimum: 0, maximum: 65_535, description: 'Of MX records; default 10.' });
const originPort = z.number().int().meta({ minimum: 1, maximum: 65_535 });
const originPath = text.meta({ description: 'Begins with "/"; at most 512 characters.' });
const originHostHeader = text.meta({ description: 'host or host:port; at most 253 characters.' });
const comment = text.pipe(z.string().max(500, 'must be at most 500 characters'));

export const createRecordBody = z.strictObject({
  type: z.enum(recordTypes), name: value, value,
  ttl: ttl.nullable().optional(), priority: priority.nullable().optional(), proxied: z.boolean().optional(),
  originProtocol: z.enum(['http', 'https']).nullable().optional(), originPort: originPort.nullable().optional(), originPath: originPath.nullable().optional(),
  originHostHeader: originHostHeader.nullable().optional(), comment: comment.nullable().optional(),
}).meta({ id: 'CreateDnsRecord' });
const anyRecord = createRecordBody.partial();
/** What may be changed; `type` only to say that it stays. */
export const updateRecordFields = anyRecord.shape;
export const updateRecordBody = anyRecord.refine((body) => Object.values(body).some((field) => field !== undefined), 'give at least one field to change')
  .meta({ id: 'UpdateDnsRecord' });
export const bulkDeleteBody = z.strictObject({ recordIds: z.array(text).min(1, 'must name at least one record').max(100, 'must name at most 100 records') }).meta({ id: 'BulkDeleteDnsRecords' });

export const recordSchema = z.object({
  id: z.string(), zoneId: z.string(), type: z.enum(recordTypes), name: z.string(), fqdn: z.string(), value: z.string(), ttl: z.number(), priority: z.number().nullable(),
  proxied: z.boolean(), proxiable: z.boolean(), originProtocol: z.enum(['http', 'https']).nullable(), originPort: z.number().nullable(), originPath: z.string().nullable(),
  originHostHeader: z.string().nullable(), comment: z.string().nullable(), managed: z.enum(['mail', 'nameserver', 'certificate']).nullable(),
  effective: z.object({ served: z.boolean(), via: z.enum(['record', 'gateway', 'flattened', 'none']), values: z.array(z.string()), ttl: z.number() }),
  status: z.enum(['active', 'deleted']), version: z.number(), published: z.boolean(), createdAt: time, updatedAt: time, deletedAt: time.nullable(),
}).meta({ id: 'DnsRecord' });
export type RecordView = z.infer<typeof recordSchema>;

export const publication = z.object({ version: z.number(), serial: z.number(), published: z.boolean() });
export const recordAnswer = z.object({ record: recordSchema });
export const recordWrittenAnswer = z.object({ record: recordSchema, affectedRecordIds: z.array(z.string()), warnings, publication });
export const recordDeletedAnswer = recordWrittenAnswer.extend({ deleted: z.literal(true), recordId: z.string() });
export const bulkDeletedAnswer = z.object({
  deleted: z.boolean(), deletedIds: z.array(z.string()), deletedCount: z.number(), notFound: z.array(z.string()),
  skipped: z.array(z.object({ id: z.string(), code: z.string() })), publication,
});
export const listRecordsAnswer = z.object({ records: z.array(recordSchema), ...pageAnswer });
export const listRecordsQuery = z.object({
  ...pageQuery, type: z.enum(recordTypes).optional(), name: text.pipe(z.string().max(1_000)).optional(), search: search.optional(), proxied: flag.optional(), managed: flag.optional(),
  status: z.enum(recordStatuses).optional(), sort: z.enum(['created', 'name']).optional(),
});
/** Record writes wait until every server answers them, for 2 s at most. */
export const waitQuery = { wait: z.enum(['published']).optional().meta({ description: 'published: the answer waits up to 2 s until every server has the change.' }) };
export const writeQuery = z.object(waitQuery);
export const bulkDeleteQuery = z.object({ atomic: flag.optional(), ...waitQuery });
