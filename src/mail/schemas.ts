import { z } from 'zod';
import { scopes } from '../core/caller';
import { displayName, text, time } from '../core/fields';
import { pageAnswer, pageQuery } from '../core/page';
import { operationSchema } from '../operations/view';
import { domainFailureReasons, domainStatuses, keyModes, recordPurposes, recordStatuses, suppressionReasons, suspendedReasons, transportNames } from './state';

export const mailPlans = ['launch', 'growth', 'business'] as const;
const noControls = 'must not hold control characters';

export const createServiceBody = z.strictObject({ displayName, plan: z.enum(mailPlans) }).meta({ id: 'CreateMailService' });
export const updateServiceBody = z.strictObject({ displayName }).meta({ id: 'UpdateMailService' });
export const serviceSchema = z.object({
  id: z.string(), mailServiceId: z.string(), displayName: z.string(), plan: z.enum(mailPlans), status: z.enum(['active', 'suspended', 'deleting']),
  suspendedReason: z.enum(suspendedReasons).nullable(), transport: z.enum(transportNames),
  limits: z.object({
    recipientsPerMonth: z.number(), sendsPerSecond: z.number(), domains: z.number().nullable(), apiKeys: z.number().nullable(), webhooks: z.number().nullable(),
    maxRecipients: z.number(), maxMessageBytes: z.number(),
  }),
  usage: z.object({ recipients: z.number(), periodStart: time, periodEnd: time }),
  counts: z.object({ domains: z.number(), apiKeys: z.number(), webhooks: z.number() }),
  createdAt: time, updatedAt: time,
}).meta({ id: 'MailService' });
export type ServiceView = z.infer<typeof serviceSchema>;
export const listQuery = z.object({ ...pageQuery });
export const listServicesAnswer = z.object({ services: z.array(serviceSchema), ...pageAnswer });
export const serviceAnswer = z.object({ service: serviceSchema });
export const createdServiceAnswer = z.object({ mailServiceId: z.string(), service: serviceSchema });
export const deletedServiceAnswer = z.object({ deleted: z.literal(true), mailServiceId: z.string(), service: serviceSchema, operation: operationSchema });

const domainName = text.pipe(z.string().min(1, 'must not be empty').max(1_000, 'is too long for a domain name'));
export const addDomainBody = z.strictObject({
  domain: domainName.optional().meta({ description: 'The sender domain, in ASCII or Unicode.' }),
  name: domainName.optional().meta({ description: 'The same as domain.' }),
  returnPath: z.string().toLowerCase().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'must be one label of letters, digits and inner hyphens').optional()
    .meta({ description: 'Label below the domain that bounces come to. Default bounce.' }),
}).superRefine(({ domain, name }, context) => {
  if (domain === undefined && name === undefined) context.addIssue({ code: 'custom', path: ['domain'], message: 'is required' });
  if (domain !== undefined && name !== undefined) context.addIssue({ code: 'custom', path: ['name'], message: 'must not be given beside domain' });
}).meta({ id: 'AddMailDomain' });
export const domainRecordSchema = z.object({
  purpose: z.enum(recordPurposes), required: z.boolean(), type: z.enum(['TXT', 'CNAME']), name: z.string(), value: z.string(), ttl: z.number(),
  status: z.enum(recordStatuses), found: z.array(z.string()), published: z.boolean(),
});
export const domainSchema = z.object({
  id: z.string(), domainId: z.string(), domain: z.string(), mailServiceId: z.string(), status: z.enum(domainStatuses), canSend: z.boolean(),
  failureReason: z.enum(domainFailureReasons).nullable(), hostedZoneId: z.string().nullable(), checkCount: z.number(), lastCheckedAt: time.nullable(),
  nextCheckAt: time.nullable(), verifiedAt: time.nullable(), degradedAt: time.nullable(), verificationDeadline: time, dmarcPolicy: z.string().nullable(),
  records: z.array(domainRecordSchema), createdAt: time, updatedAt: time,
}).meta({ id: 'MailDomain' });
export type DomainView = z.infer<typeof domainSchema>;
export const domainAnswer = z.object({ domain: domainSchema });
export const addedDomainAnswer = z.object({ domain: domainSchema, operation: operationSchema.nullable() });
export const listDomainsAnswer = z.object({ domains: z.array(domainSchema), ...pageAnswer });
export const deletedDomainAnswer = z.object({ deleted: z.literal(true), domainId: z.string(), domain: domainSchema });
export const verifiedDomainAnswer = z.object({
  domain: domainSchema, operation: operationSchema.nullable(),
  verification: z.object({ live: z.boolean(), checkedAt: time.nullable(), durationMs: z.number().nullable() }),
});
export const emptyBody = z.strictObject({}).meta({ id: 'EmptyMailBody' });

const keyName = text.transform((value) => value.trim())
  .pipe(z.string().min(1, 'must not be empty').max(80, 'must be at most 80 characters').regex(/^[^\p{Cc}]*$/u, noControls));
const distinct = <T>(items: readonly T[]) => new Set(items).size === items.length;
export const createKeyBody = z.strictObject({
  name: keyName,
  scopes: z.array(z.enum(scopes)).min(1, 'must name at least one scope').max(4, 'must name at most 4 scopes').refine(distinct, 'must not name a scope twice').optional()
    .meta({ description: 'Default: mail:send and mail:read.' }),
  mode: z.enum(keyModes).optional().meta({ description: 'test: mail is captured, never sent, and costs nothing.' }),
  expiresAt: z.iso.datetime({ offset: true }).nullable().optional(),
  allowedDomains: z.array(domainName).max(20, 'must name at most 20 domains').optional().meta({ description: 'Sender domains the key may use; none: all of the service.' }),
}).meta({ id: 'CreateMailApiKey' });
export const rotateKeyBody = z.strictObject({
  graceHours: z.number().int().min(0, 'must be 0 to 168').max(168, 'must be 0 to 168').optional().meta({ description: 'How long the old key goes on working. Default 24.' }),
}).meta({ id: 'RotateMailApiKey' });
export const listKeysQuery = z.object({ ...pageQuery, status: z.enum(['all']).optional().meta({ description: 'all: revoked keys too.' }) });
export const keySchema = z.object({
  id: z.string(), apiKeyId: z.string(), mailServiceId: z.string(), name: z.string(), mode: z.enum(keyModes), prefix: z.string(), last4: z.string(),
  scopes: z.array(z.enum(scopes)), allowedDomains: z.array(z.string()), status: z.enum(['active', 'expired', 'revoked']), expiresAt: time.nullable(),
  lastUsedAt: time.nullable(), replacedBy: z.string().nullable(), graceUntil: time.nullable(), revokedAt: time.nullable(), createdBy: z.string(),
  createdAt: time, updatedAt: time,
}).meta({ id: 'MailApiKey' });
export type KeyView = z.infer<typeof keySchema>;
/** The value is answered once; a replayed answer has null. */
const keyValue = z.string().nullable();
export const createdKeyAnswer = z.object({ apiKey: keySchema, key: keyValue });
export const rotatedKeyAnswer = createdKeyAnswer.extend({ replaced: keySchema });
export const listKeysAnswer = z.object({ apiKeys: z.array(keySchema), ...pageAnswer });
export const revokedKeyAnswer = z.object({ deleted: z.literal(true), apiKeyId: z.string(), apiKey: keySchema });

const address = text.pipe(z.string().min(3, 'must be an address').max(320, 'must be at most 320 octets'));
export const suppressBody = z.strictObject({
  address, note: text.pipe(z.string().max(200, 'must be at most 200 characters').regex(/^[^\p{Cc}]*$/u, noControls)).nullable().optional(),
}).meta({ id: 'CreateMailSuppression' });
export const listSuppressionsQuery = z.object({ ...pageQuery, address: address.optional(), reason: z.enum(suppressionReasons).optional() });
export const suppressionSchema = z.object({
  id: z.string(), address: z.string(), reason: z.enum(suppressionReasons), sourceMessageId: z.string().nullable(), note: z.string().nullable(), expiresAt: time.nullable(),
  createdAt: time, updatedAt: time,
}).meta({ id: 'MailSuppression' });
export const suppressionAnswer = z.object({ suppression: suppressionSchema });
export const listSuppressionsAnswer = z.object({ suppressions: z.array(suppressionSchema), ...pageAnswer });
export const deletedSuppressionAnswer = z.object({ deleted: z.literal(true), suppressionId: z.string(), suppression: suppressionSchema });

/** Of one message, whatever the plan. */
export const recipientMaxima = { maxRecipients: 100, maxMessageBytes: 10 * 1024 ** 2 } as const;
