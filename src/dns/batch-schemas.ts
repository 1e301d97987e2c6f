import { z } from 'zod';
import { text, time } from '../core/fields';
import { pageAnswer, pageQuery } from '../core/page';
import { createRecordBody, publication, recordSchema, updateRecordFields, waitQuery, warnings } from './schemas';

const writesMax = 1_000;
const zoneFileBytesMax = 200 * 1024;

const dryRun = z.boolean().optional().meta({ description: 'true: answers what would become of it and changes nothing.' });
export const batchBody = z.strictObject({
  deletes: z.array(text).default([]).meta({ description: 'Record ids.' }),
  updates: z.array(z.strictObject({ id: text, ...updateRecordFields })).default([]),
  creates: z.array(createRecordBody).default([]),
  dryRun,
}).refine(({ deletes, updates, creates }) => deletes.length + updates.length + creates.length > 0, 'give at least one delete, update or create')
  .refine(({ deletes, updates, creates }) => deletes.length + updates.length + creates.length <= writesMax, `must be at most ${writesMax} writes in all`)
  .meta({ id: 'BatchDnsRecords' });

export const importBody = z.strictObject({
  zoneFile: text.refine((file) => Buffer.byteLength(file) <= zoneFileBytesMax, 'must be at most 200 KiB').meta({ description: 'RFC 1035 §5.' }),
  strategy: z.enum(['merge', 'replace']).default('merge').meta({ description: 'merge: what the file does not name stays. replace: it is deleted, but for records a product keeps.' }),
  dryRun,
}).meta({ id: 'ImportDnsZone' });

export const restoreVersionBody = z.strictObject({ dryRun }).meta({ id: 'RestoreDnsZoneVersion' });

export const batchQuery = z.object({ ...waitQuery });
export const batchAnswer = z.object({
  created: z.array(recordSchema), updated: z.array(recordSchema), deletedIds: z.array(z.string()), affectedRecordIds: z.array(z.string()), warnings, publication, dryRun: z.boolean(),
});
export const importAnswer = batchAnswer.extend({ skipped: z.array(z.object({ line: z.number(), reason: z.string() })) });
export const exportAnswer = z.object({ zoneFile: z.string(), version: z.number(), serial: z.number() });

const version = z.object({
  version: z.number(), serial: z.number(),
  actor: z.object({ kind: z.enum(['user', 'apiKey', 'system', 'anonymous']), id: z.string().nullable(), displayName: z.string().nullable() }),
  requestId: z.string().nullable(), counts: z.object({ created: z.number(), updated: z.number(), deleted: z.number() }), createdAt: time,
}).meta({ id: 'DnsZoneVersion' });
export const listVersionsQuery = z.object(pageQuery);
export const listVersionsAnswer = z.object({ versions: z.array(version), ...pageAnswer });
const kept = recordSchema.pick({
  id: true, type: true, name: true, value: true, ttl: true, priority: true, proxied: true, originProtocol: true, originPort: true, originPath: true, originHostHeader: true,
  comment: true, managed: true,
}).nullable();
export const versionAnswer = z.object({ version, changes: z.array(z.object({ recordId: z.string(), before: kept, after: kept })) });

const shownRecord = z.object({ name: z.string(), type: z.string(), ttl: z.number(), value: z.string() });
const questionTypes = ['A', 'AAAA', 'CNAME', 'MX', 'TXT', 'NS', 'CAA', 'SOA', 'DS', 'ANY'] as const;
export const resolveQuery = z.object({
  name: text.pipe(z.string().max(1_000)).default('@').meta({ description: 'As in a record: relative, @, or full.' }),
  type: z.string().toUpperCase().pipe(z.enum(questionTypes)).default('A'),
});
export const resolveAnswer = z.object({
  answer: z.object({ rcode: z.string(), aa: z.boolean(), answer: z.array(shownRecord), authority: z.array(shownRecord) }),
  trace: z.array(z.object({ name: z.string(), step: z.string(), detail: z.string() })),
});
