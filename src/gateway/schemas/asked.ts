import { z } from 'zod';
import { flag, text } from '../../core/fields';
import { digits, pageQuery } from '../../core/page';
import { eventOutcomes, eventSources } from '../rules/summary';
import { parseNetwork } from '../rules/networks';
import { exclusionEnd, exclusionNote, policyBody } from './policy';

/** Queries and small bodies of the gateway's operations (contract gateway.md §3, §4.5). */
export const putQuery = z.object({ dryRun: flag.optional().meta({ description: 'true: nothing is stored, and changes are told.' }) });
export const pagedQuery = z.object(pageQuery);

const instant = z.iso.datetime({ offset: true, error: 'must be a time of RFC 3339' });
/** `a,b` of a closed list. */
const listOf = (known: readonly string[]) => text.transform((given) => given.split(',')).pipe(z.array(z.string().refine((item) => known.includes(item), `must be of ${known.join(', ')}`)).min(1));
const short = (max: number) => text.pipe(z.string().min(1, 'must not be empty').max(max, `must be at most ${max} characters`));
export const eventsQuery = z.object({
  ...pageQuery, from: instant.optional().meta({ description: 'Default: 24 hours before to.' }), to: instant.optional().meta({ description: 'Default: now.' }),
  action: listOf(eventOutcomes).optional().meta({ description: 'Comma-separated.' }), source: listOf(eventSources).optional().meta({ description: 'Comma-separated.' }),
  ruleId: short(128).optional(), ip: text.refine((given) => parseNetwork(given) !== null, 'must be an IP address or a CIDR network').optional(),
  country: z.string().regex(/^[A-Za-z]{2}$/, 'must be a country of ISO 3166-1 alpha-2').transform((code) => code.toUpperCase()).optional(),
  host: short(253).transform((host) => host.toLowerCase()).optional(), path: short(1_024).optional().meta({ description: 'A prefix, or a pattern with *.' }),
  method: short(32).transform((method) => method.toUpperCase()).optional(), requestId: short(64).optional(),
});
export type EventsQuery = z.infer<typeof eventsQuery>;

export const summaryQuery = z.object({ hours: digits.pipe(z.number().int().min(1, 'must be 1 to 720').max(720, 'must be 1 to 720')).optional().meta({ description: '1 to 720, default 24.' }) });
export const excludeBody = z.strictObject({ note: exclusionNote.optional(), expiresAt: exclusionEnd.optional() }).meta({ id: 'ExcludeGatewayEvent' });
export const rulesQuery = z.object({
  ...pageQuery, q: short(200).optional().meta({ description: 'Part of the id or the message.' }), tag: short(128).optional(),
  paranoiaLevel: digits.pipe(z.number().int().min(1, 'must be 1 to 4').max(4, 'must be 1 to 4')).optional(),
});

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, 'must be a header name');
const headerValue = text.pipe(z.string().max(16_384, 'must be at most 16,384 characters').regex(/^[^\r\n]*$/, 'must not hold line breaks'));
const bodyMaxBytes = 65_536;
const described = z.strictObject({
  method: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/, 'must be a method'),
  url: text.pipe(z.string().min(1, 'must not be empty').max(8_192, 'must be at most 8,192 characters').refine(isHttpUrl, 'must be an http or https URL with a host')),
  headers: z.array(z.strictObject({ name: headerName, value: headerValue })).max(100, 'must hold at most 100 headers').default([]),
  body: text.refine((given) => Buffer.byteLength(given) <= bodyMaxBytes, 'must be at most 64 KiB').nullable().default(null),
  ip: z.union([z.ipv4(), z.ipv6()], 'must be an IP address'), country: z.string().regex(/^[A-Z]{2}$/, 'must be a country of ISO 3166-1 alpha-2').nullable().default(null),
  asn: z.number().int().min(1).max(4_294_967_295).nullable().default(null),
});
export const evaluateBody = z.strictObject({ request: described, policy: policyBody.optional().meta({ description: 'A draft; default: the policy in force.' }) }).meta({ id: 'EvaluateGatewayRequest' });

function isHttpUrl(given: string): boolean {
  return /^https?:\/\/[^/?#]/i.test(given) && URL.canParse(given);
}
