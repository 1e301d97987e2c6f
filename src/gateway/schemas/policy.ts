import { z } from 'zod';
import { text } from '../../core/fields';
import { countryCodes } from '../rules/countries';
import { repeatedIds, withIds } from '../rules/entry-ids';
import { parseNetwork } from '../rules/networks';
import { matchSchema } from './match';

/** The policy of a zone (contract gateway.md §1.1, limits §4.1). Parsing fills in defaults; what is kept was canonical before (rules/canonical.ts). */
export const modes = ['off', 'monitor', 'block'] as const;
export const ruleSets = ['crs', 'base'] as const;
const whole = (min: number, max: number) => z.number().int(`must be a whole number`).min(min, `must be ${min} to ${max}`).max(max, `must be ${min} to ${max}`);
const atMost = (max: number) => text.pipe(z.string().max(max, `must be at most ${max} characters`));
const unique = <T>(items: T[]): T[] => [...new Set(items)];

const entryId = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a-z, 0-9, "-" or "_", at most 64 characters, and begin with a letter or digit')
  .optional().meta({ description: 'Unique in its list; made from the content when absent.' });
const name = atMost(80).default('');
const enabled = z.boolean().default(true);
const ruleId = z.string().regex(/^\d{1,10}$/, 'must be a rule id of 1 to 10 digits');
const ruleIds = z.array(ruleId).max(500, 'must hold at most 500 rule ids').transform(unique).default([]);

/** A list whose entries have ids, unique within it. */
function entries<S extends z.ZodType<{ id?: string | undefined }>>(entry: S, max?: number) {
  const list = z.array(entry);
  return (max === undefined ? list : list.max(max, `must hold at most ${max} entries`)).superRefine((items, context) => {
    for (const { id, index } of repeatedIds(items)) context.addIssue({ code: 'custom', path: [index, 'id'], message: `the id ${id} stands twice` });
  }).transform((items) => withIds(items)).default([]);
}

/** What an exclusion takes from a rule: names of arguments, headers and cookies may follow a colon. */
const target = text.pipe(z.string().regex(/^(?:(?:ARGS|REQUEST_HEADERS|REQUEST_COOKIES)(?::.{1,128})?|ARGS_NAMES|REQUEST_BODY|FILES|\*)$/su,
  'must be ARGS[:name], ARGS_NAMES, REQUEST_HEADERS[:name], REQUEST_COOKIES[:name], REQUEST_BODY, FILES or *'));
const instant = z.iso.datetime({ offset: true, error: 'must be a time of RFC 3339' }).transform((given) => new Date(given).toISOString());
export const exclusionNote = atMost(500).nullable();
export const exclusionEnd = instant.nullable();
const exclusion = z.strictObject({
  id: entryId, ruleId: ruleId.nullable().default(null), tag: text.pipe(z.string().min(1, 'must not be empty').max(128, 'must be at most 128 characters')).nullable().default(null), target,
  pathPrefix: text.pipe(z.string().startsWith('/', 'must begin with "/"').max(1_024, 'must be at most 1,024 characters')).nullable().default(null),
  note: exclusionNote.default(null), expiresAt: exclusionEnd.default(null),
}).refine((entry) => (entry.ruleId === null) !== (entry.tag === null), { path: ['ruleId'], message: 'give exactly one of ruleId and tag' });

const level = whole(1, 4);
const threshold = whole(1, 1_000);
const managedFields = {
  enabled, paranoiaLevel: level.default(1), detectionParanoiaLevel: level.optional().meta({ description: 'Rules up to this level are evaluated and logged; default: paranoiaLevel.' }),
  inboundThreshold: threshold.default(5), outboundThreshold: threshold.default(4), inspectResponse: z.boolean().default(false),
  maxBodyBytes: whole(0, 1_048_576).default(131_072), bodyLimitAction: z.enum(['partial', 'block']).default('partial'),
  disabledRules: ruleIds, logOnlyRules: ruleIds, exclusions: entries(exclusion, 200),
};
const ruleSet = z.enum(ruleSets);
const managedBody = z.strictObject({ ...managedFields, ruleSet: ruleSet.optional().meta({ description: 'Default: crs where the operator has loaded it, else base.' }) })
  .superRefine(({ paranoiaLevel, detectionParanoiaLevel }, context) => {
    if ((detectionParanoiaLevel ?? paranoiaLevel) < paranoiaLevel) context.addIssue({ code: 'custom', path: ['detectionParanoiaLevel'], message: 'must not be below paranoiaLevel' });
  }).transform(({ enabled: on, ruleSet: set, paranoiaLevel, detectionParanoiaLevel = paranoiaLevel, ...rest }) => ({ enabled: on, ruleSet: set, paranoiaLevel, detectionParanoiaLevel, ...rest }));

const customRule = z.strictObject({
  id: entryId, name, enabled, match: matchSchema, action: z.enum(['allow', 'skip', 'block', 'challenge', 'log']).default('block'),
  status: z.literal([403, 404, 429, 451, 503]).nullable().optional().meta({ description: 'Of the answer to what is blocked; default 403.' }),
  skip: z.array(z.enum(['rateLimits', 'bots', 'managed'])).max(3).transform(unique).default([]),
}).superRefine(({ action, status, skip }, context) => {
  if (action !== 'block' && status !== undefined && status !== null) context.addIssue({ code: 'custom', path: ['status'], message: 'belongs to the action block only' });
  if (action === 'skip' && skip.length === 0) context.addIssue({ code: 'custom', path: ['skip'], message: 'must name what is skipped: rateLimits, bots, managed' });
  if (action !== 'skip' && skip.length > 0) context.addIssue({ code: 'custom', path: ['skip'], message: 'belongs to the action skip only' });
}).transform(({ skip, ...rule }) => ({ ...rule, status: rule.action === 'block' ? rule.status ?? 403 : null, skip }));

const limitKey = text.pipe(z.string().regex(/^(?:ip|ip_prefix|host|path|country|asn|header:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}|cookie:[^\s;=,]{1,128})$/,
  'must be ip, ip_prefix, host, path, country, asn, header:<name> or cookie:<name>')).transform((key) => (key.startsWith('header:') ? key.toLowerCase() : key));
const rateLimit = z.strictObject({
  id: entryId, name, enabled, match: matchSchema.nullable().default(null),
  key: z.array(limitKey).min(1, 'must hold 1 to 3 keys').max(3, 'must hold 1 to 3 keys').transform(unique).default(['ip']),
  countStatuses: z.array(whole(100, 599)).min(1, 'must hold 1 to 10 statuses').max(10, 'must hold 1 to 10 statuses').transform(unique).nullable().default(null)
    .meta({ description: 'Only requests that the origin answered so are counted; null: all.' }),
  requests: whole(1, 1_000_000).default(20), periodSeconds: whole(1, 86_400).default(60),
  action: z.enum(['block', 'challenge', 'log']).default('block'), durationSeconds: whole(0, 86_400).default(300),
});

const network = text.pipe(z.string().refine((given) => parseNetwork(given) !== null, 'must be an IP address or a CIDR network'));
const ipList = z.array(network).default([]);
const ipLists = z.strictObject({ allow: ipList, deny: ipList });

const country = z.string().toUpperCase().refine((code) => countryCodes.has(code), 'must be a country of ISO 3166-1 alpha-2');
const geo = z.strictObject({
  mode: z.enum(['off', 'deny', 'allow']).default('off'), countries: z.array(country).max(250, 'must hold at most 250 countries').transform(unique).default([]),
  denyAsns: z.array(whole(1, 4_294_967_295)).max(500, 'must hold at most 500 numbers').transform(unique).default([]),
}).refine(({ mode, countries }) => mode !== 'allow' || countries.length > 0, { path: ['countries'], message: 'must name at least one country when only those are let in' });

const bots = z.strictObject({ mode: z.enum(['off', 'monitor', 'challenge', 'block']).default('off'), allowVerified: z.boolean().default(true), blockEmptyUserAgent: z.boolean().default(false), blockKnownScanners: z.boolean().default(true) });
const challenge = z.strictObject({ type: z.literal('pow').default('pow'), difficulty: whole(8, 22).default(16), validSeconds: whole(60, 604_800).default(3_600) });
const hsts = z.strictObject({ enabled: z.boolean().default(false), maxAgeSeconds: whole(0, 63_072_000).default(15_552_000), includeSubDomains: z.boolean().default(false), preload: z.boolean().default(false) })
  .refine((given) => !given.preload || (given.includeSubDomains && given.maxAgeSeconds >= 31_536_000), { path: ['preload'], message: 'needs includeSubDomains and maxAgeSeconds of at least 31536000' });
const transport = z.strictObject({ httpsRedirect: z.boolean().default(false), minTlsVersion: z.enum(['1.2', '1.3']).default('1.2'), hsts: hsts.prefault({}) });

const head = { mode: z.enum(modes), onEngineError: z.enum(['open', 'closed']).default('open') };
const tail = {
  customRules: entries(customRule), rateLimits: entries(rateLimit), ipLists: ipLists.prefault({}), geo: geo.prefault({}), bots: bots.prefault({}),
  challenge: challenge.prefault({}), transport: transport.prefault({}),
};
const ignored = z.unknown().optional().meta({ description: 'Accepted as it was read, and ignored.' });
const ignoredTime = ignored.meta({ format: 'date-time' });
const read = { id: ignored, zoneId: ignored, version: ignored, updatedBy: ignored, createdAt: ignoredTime, updatedAt: ignoredTime };

/** The body of PUT: the bare policy, whole. Only `mode` is required; what is missing takes its default. `ruleSet` absent: the operator's. */
export const policyBody = z.strictObject({ ...read, ...head, managedRules: managedBody.prefault({}), ...tail })
  .transform(({ id: _id, zoneId: _zone, version: _version, updatedBy: _by, createdAt: _created, updatedAt: _updated, ...policy }) => policy)
  .meta({ id: 'PutGatewayPolicy' });
export type PolicyBody = z.infer<typeof policyBody>;

/** What is kept and enforced. Missing members take their defaults, so documents written by an older version stay readable. */
export const policySchema = z.object({ ...head, managedRules: managedBody.prefault({}).transform(({ ruleSet: set = 'base', ...rest }) => ({ ...rest, ruleSet: set })), ...tail });
export type Policy = z.infer<typeof policySchema>;
export type CustomRule = Policy['customRules'][number];
export type RateLimit = Policy['rateLimits'][number];
export type Exclusion = Policy['managedRules']['exclusions'][number];
