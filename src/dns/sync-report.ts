import { z } from 'zod';

const rrset = z.object({ name: z.string(), type: z.string(), ttl: z.number(), values: z.array(z.string()) });

/** What was found to differ and what became of it (contract dns.md §1.3). */
export const syncReportSchema = z.object({
  status: z.enum(['in_sync', 'applied', 'partial', 'blocked', 'failed']), dryRun: z.boolean(), cached: z.boolean(), drift: z.boolean(),
  changes: z.object({ create: z.array(rrset), update: z.array(rrset.extend({ from: rrset })), delete: z.array(rrset) }),
  counts: z.object({ create: z.number(), update: z.number(), delete: z.number() }),
  required: z.array(z.object({ type: z.string(), name: z.string(), value: z.string() })),
  versionBefore: z.number(), versionAfter: z.number(), serial: z.number(),
  servers: z.array(z.object({ name: z.string(), version: z.number().nullable(), serial: z.number().nullable(), inSync: z.boolean(), lagMs: z.number().nullable() })),
  durationMs: z.number(),
}).meta({ id: 'DnsSync' });
export type SyncReport = z.infer<typeof syncReportSchema>;
