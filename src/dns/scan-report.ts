import { z } from 'zod';
import { recordTypes } from './rules/rrset';

const warning = z.object({ code: z.string(), message: z.string() });

/** What a scan found (contract dns.md §4.6); the first five fields of a record are a valid create. */
export const scanReportSchema = z.object({
  domain: z.string(),
  nameservers: z.array(z.object({ name: z.string(), addresses: z.array(z.string()), provider: z.string().nullable() })),
  records: z.array(z.object({
    type: z.enum(recordTypes), name: z.string(), value: z.string(), ttl: z.number(), priority: z.number().nullable(),
    source: z.enum(['apex', 'common', 'names', 'discovered', 'nsec', 'transfer']), proxiable: z.boolean(), warnings: z.array(warning),
  })),
  unsupported: z.array(z.object({ name: z.string(), type: z.string(), value: z.string() })),
  wildcard: z.object({ present: z.boolean(), types: z.array(z.string()) }),
  dnssec: z.object({ signed: z.boolean(), ds: z.array(z.string()) }),
  soa: z.object({ mname: z.string(), serial: z.number() }).nullable(),
  warnings: z.array(warning), complete: z.boolean(), cached: z.boolean(),
  stats: z.object({ queries: z.number(), names: z.number(), durationMs: z.number() }),
}).meta({ id: 'DnsScan' });
export type ScanReport = z.infer<typeof scanReportSchema>;
