import { z } from 'zod';
import { time } from '../core/fields';

/** What a check found (contract dns.md §1.3); `fix` names the exact names or records to set. */
export const reportSchema = z.object({
  checkedAt: time, durationMs: z.number(), cached: z.boolean(), result: z.enum(['verified', 'not_verified', 'inconclusive']), method: z.enum(['nameservers', 'txt']),
  delegation: z.object({
    parentZone: z.string(), parentServers: z.array(z.string()), nameservers: z.array(z.string()), ttl: z.number(), consistent: z.boolean(), source: z.enum(['network', 'hosted_parent']),
  }).nullable(),
  expected: z.array(z.string()), missing: z.array(z.string()), unexpected: z.array(z.string()),
  servers: z.array(z.object({
    name: z.string(), address: z.string(), reachable: z.boolean(), authoritative: z.boolean(), serial: z.number().nullable(), tcp: z.boolean(), edns: z.boolean(), rttMs: z.number().nullable(),
  })),
  txt: z.object({ name: z.string(), found: z.array(z.string()) }).nullable(),
  cnames: z.array(z.object({ name: z.string(), target: z.string(), ok: z.boolean() })),
  dnssec: z.object({ parentDs: z.array(z.string()), status: z.enum(['insecure', 'broken']) }),
  problems: z.array(z.object({ code: z.string(), severity: z.enum(['info', 'warning', 'critical']), message: z.string(), fix: z.string() })),
  nextCheckAt: time.nullable(),
}).meta({ id: 'DnsVerification' });
export type Report = z.infer<typeof reportSchema>;
export type Problem = Report['problems'][number];
