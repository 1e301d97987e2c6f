import { z } from 'zod';
import { time } from '../../core/fields';
import { pageAnswer } from '../../core/page';
import { operationSchema } from '../../operations/view';
import { eventOutcomes, eventSources } from '../rules/summary';
import { warningCodes } from '../rules/warnings';
import { certificateStatuses } from '../state';
import { matchFields, opsOf, type Match } from './match';
import { modes, ruleSets } from './policy';

/** What the gateway's operations answer (contract gateway.md §1). */
const comparison = z.object({
  field: z.enum(matchFields), op: z.enum([...opsOf.string, 'gt', 'lt']), value: z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.array(z.number())]),
  key: z.string().exactOptional(), ignoreCase: z.literal(true).exactOptional(),
});
const condition: z.ZodType<Match, Match> = z.lazy(() => z.union([z.object({ all: z.array(condition) }), z.object({ any: z.array(condition) }), z.object({ not: condition }), comparison]))
  .meta({ id: 'GatewayCondition' });
const ip = z.string();
const shownPolicy = z.object({
  id: z.string(), zoneId: z.string(), version: z.number().meta({ description: '0: never written.' }), mode: z.enum(modes), onEngineError: z.enum(['open', 'closed']),
  managedRules: z.object({
    enabled: z.boolean(), ruleSet: z.enum(ruleSets), paranoiaLevel: z.number(), detectionParanoiaLevel: z.number(), inboundThreshold: z.number(), outboundThreshold: z.number(),
    inspectResponse: z.boolean(), maxBodyBytes: z.number(), bodyLimitAction: z.enum(['partial', 'block']), disabledRules: z.array(z.string()), logOnlyRules: z.array(z.string()),
    exclusions: z.array(z.object({
      id: z.string(), ruleId: z.string().nullable(), tag: z.string().nullable(), target: z.string(), pathPrefix: z.string().nullable(), note: z.string().nullable(), expiresAt: time.nullable(),
    })),
  }),
  customRules: z.array(z.object({
    id: z.string(), name: z.string(), enabled: z.boolean(), match: condition, action: z.enum(['allow', 'skip', 'block', 'challenge', 'log']), status: z.number().nullable(),
    skip: z.array(z.enum(['rateLimits', 'bots', 'managed'])),
  })),
  rateLimits: z.array(z.object({
    id: z.string(), name: z.string(), enabled: z.boolean(), match: condition.nullable(), key: z.array(z.string()), countStatuses: z.array(z.number()).nullable(),
    requests: z.number(), periodSeconds: z.number(), action: z.enum(['block', 'challenge', 'log']), durationSeconds: z.number(),
  })),
  ipLists: z.object({ allow: z.array(z.string()), deny: z.array(z.string()) }),
  geo: z.object({ mode: z.enum(['off', 'deny', 'allow']), countries: z.array(z.string()), denyAsns: z.array(z.number()) }),
  bots: z.object({ mode: z.enum(['off', 'monitor', 'challenge', 'block']), allowVerified: z.boolean(), blockEmptyUserAgent: z.boolean(), blockKnownScanners: z.boolean() }),
  challenge: z.object({ type: z.literal('pow'), difficulty: z.number(), validSeconds: z.number() }),
  transport: z.object({
    httpsRedirect: z.boolean(), minTlsVersion: z.enum(['1.2', '1.3']),
    hsts: z.object({ enabled: z.boolean(), maxAgeSeconds: z.number(), includeSubDomains: z.boolean(), preload: z.boolean() }),
  }),
  updatedBy: z.string().nullable(), createdAt: time, updatedAt: time,
}).meta({ id: 'GatewayPolicy' });
export type PolicyView = z.infer<typeof shownPolicy>;

const changes = z.array(z.object({ path: z.string(), from: z.unknown(), to: z.unknown() }));
const propagation = z.object({
  version: z.number(), instances: z.number().meta({ description: 'Gateway workers that are up.' }), applied: z.number(), appliedAt: time.nullable(), ms: z.number().nullable().meta({ description: 'From the write until all of them judged by it.' }),
});
export type Propagation = z.infer<typeof propagation>;
const warnings = z.array(z.object({ code: z.enum(warningCodes), path: z.string(), message: z.string() }));
export const policyAnswer = z.object({ policy: shownPolicy });
export const policyWrittenAnswer = z.object({
  policy: shownPolicy, warnings,
  propagation: propagation.optional().meta({ description: 'Not of a dry run.' }), changes: changes.optional().meta({ description: 'Of a dry run.' }),
});
export const versionsAnswer = z.object({ versions: z.array(z.object({ version: z.number(), updatedBy: z.string().nullable(), createdAt: time, changes })), ...pageAnswer });

const ruleMatch = z.object({
  id: z.string(), message: z.string(), severity: z.string().nullable(), score: z.number(), paranoiaLevel: z.number(), tags: z.array(z.string()), variable: z.string(), matched: z.string(),
});
const eventSchema = z.object({
  id: z.string(), zoneId: z.string(), createdAt: time, updatedAt: time, count: z.number(), action: z.enum(eventOutcomes), wouldHave: z.enum(['block', 'rate_limit', 'challenge']).nullable(),
  mode: z.enum(modes), policyVersion: z.number(), ruleSetVersion: z.string().nullable(), source: z.enum(eventSources), ruleId: z.string().nullable(), ruleName: z.string().nullable(),
  rules: z.array(ruleMatch), anomalyScore: z.number().nullable(), threshold: z.number().nullable(),
  suggestedExclusion: z.object({ ruleId: z.string(), target: z.string(), pathPrefix: z.string().nullable() }).nullable(),
  ip, country: z.string().nullable(), asn: z.number().nullable(), requestId: z.string(), method: z.string(), scheme: z.string(), host: z.string(), path: z.string(), query: z.string().nullable(),
  httpVersion: z.string(), tlsVersion: z.string().nullable(), userAgent: z.string().nullable(), referer: z.string().nullable(),
  status: z.number(), originStatus: z.number().nullable(), durationMs: z.number(), bytesIn: z.number(),
}).meta({ id: 'GatewayEvent' });
export type EventView = z.infer<typeof eventSchema>;
export const eventAnswer = z.object({ event: eventSchema });
export const eventsAnswer = z.object({ events: z.array(eventSchema), ...pageAnswer, range: z.object({ from: time, to: time, retentionFrom: time }) });

const counts = {
  requests: z.number(), clean: z.number(), allowed: z.number(), logged: z.number(), monitored: z.number(), challenged: z.number(), challengePassed: z.number(),
  challengeFailed: z.number(), rateLimited: z.number(), blocked: z.number(),
};
const tops = z.array(z.object({ key: z.string(), name: z.string().nullable(), country: z.string().nullable(), asn: z.number().nullable(), count: z.number(), lastSeenAt: time.nullable() }));
const summarySchema = z.object({
  hours: z.number(), from: time, to: time, bucketSeconds: z.number(), totals: z.object({ ...counts, events: z.number().meta({ description: 'requests − clean' }) }),
  byAction: z.record(z.enum(eventOutcomes), z.number()), bySource: z.record(z.enum(eventSources), z.number()),
  topRules: tops, topIps: tops, topPaths: tops, topCountries: tops, topUserAgents: tops,
  series: z.array(z.object({ start: time, end: time, ...counts })), estimated: z.boolean().meta({ description: 'A top list was cut, or events were lost.' }),
}).meta({ id: 'GatewaySummary' });
export type SummaryView = z.infer<typeof summarySchema>;
export const summaryAnswer = z.object({ summary: summarySchema });

export const evaluationAnswer = z.object({
  evaluation: z.object({
    outcome: z.enum([...eventOutcomes, 'clean']), wouldHave: z.enum(['block', 'rate_limit', 'challenge']).nullable(), steps: z.array(z.object({ stage: z.string(), ruleId: z.string().nullable(), result: z.string() })),
    rules: z.array(ruleMatch), anomalyScore: z.number().nullable(), durationMicros: z.number(),
  }),
});
export const rulesAnswer = z.object({
  rules: z.array(z.object({ id: z.string(), message: z.string(), severity: z.string().nullable(), paranoiaLevel: z.number(), phase: z.number(), tags: z.array(z.string()) })), ...pageAnswer,
});

const certificateSchema = z.object({
  id: z.string(), zoneId: z.string(), hostnames: z.array(z.string()), status: z.enum(certificateStatuses), issuer: z.enum(['self_signed', 'acme']), method: z.enum(['dns01', 'http01']).nullable(),
  serialNumber: z.string().nullable(), notBefore: time.nullable(), notAfter: time.nullable(), renewAt: time.nullable(), attempts: z.number(), nextAttemptAt: time.nullable(),
  lastError: z.object({ code: z.string(), message: z.string() }).nullable(), createdAt: time, updatedAt: time,
}).meta({ id: 'GatewayCertificate' });
export type CertificateView = z.infer<typeof certificateSchema>;
export const certificatesAnswer = z.object({ certificates: z.array(certificateSchema), ...pageAnswer });
export const renewedAnswer = z.object({ certificate: certificateSchema, operation: operationSchema });
/** The zone is not proven yet; visitors are led elsewhere; the name belongs to a zone of its own. */
export const hostReasons = ['zone_pending', 'zone_not_held', 'zone_below'] as const;
export const hostsAnswer = z.object({
  hosts: z.array(z.object({
    fqdn: z.string(), recordIds: z.array(z.string()), served: z.boolean(), reason: z.enum(hostReasons).nullable().meta({ description: 'Why it is not served.' }), certificateId: z.string().nullable(),
    origins: z.array(z.object({ address: z.string(), healthy: z.boolean(), lastError: z.string().nullable(), checkedAt: time.nullable() })), requestsLastHour: z.number(),
  })),
  ...pageAnswer,
});
