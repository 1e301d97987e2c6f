import { z } from 'zod';
import { text } from '../../core/fields';
import { operationsOf, type RateRule } from '../../http/operation';
import type { DnsDeps } from '../deps';
import { scanReportSchema } from '../scan-report';
import { canonicalScan, scanOnce } from '../scans';

const { project } = operationsOf<DnsDeps>();
const body = z.strictObject({
  domain: text.pipe(z.string().min(1, 'must not be empty').max(1_000, 'is too long for a domain name')),
  deep: z.boolean().optional().meta({ description: 'Also follows the chain of names of a signed zone.' }),
  names: z.array(text.pipe(z.string().min(1).max(253))).max(100, 'must be at most 100 names').optional().meta({ description: 'Names of yours to ask about.' }),
}).meta({ id: 'ScanDnsZone' });
const perMinute: RateRule = { name: 'dns-scan-minute', limit: 10, periodSeconds: 60 };
const perDay: RateRule = { name: 'dns-scan-day', limit: 200, periodSeconds: 86_400 };

const scanDnsZone = project('dns:read')({
  id: 'scanDnsZone', method: 'post', path: '/dns/scan', tag: 'DNS zones',
  summary: 'Find the records a domain has now',
  description: 'Asks the domain\'s present name servers about common names, for 10 s at most (deep: 20 s). Writes nothing.',
  body, answer: scanReportSchema, errors: ['domain_not_found'],
  limits: ({ caller }) => [perMinute, perDay].map((rule) => ({ rule, key: caller.project.id })),
  handle: ({ deps, caller, body: wish }) => scanOnce(deps, caller.project.id, canonicalScan(wish)),
});

export const scanOperations = [scanDnsZone];
