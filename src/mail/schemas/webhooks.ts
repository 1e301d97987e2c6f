import { z } from 'zod';
import { text, time } from '../../core/fields';
import { pageAnswer, pageQuery } from '../../core/page';
import { deliveryStates, webhookDisabledReasons, webhookStatuses } from '../state';

/** What webhooks can be told of (contract mail.md §6). */
export const webhookEventTypes = [
  'message.sent', 'message.delivered', 'message.deferred', 'message.bounced', 'message.complained', 'message.failed', 'message.suppressed', 'message.cancelled',
  'domain.verified', 'domain.degraded', 'domain.failed', 'suppression.created', 'suppression.deleted', 'service.warning', 'service.suspended', 'service.resumed',
  'quota.warning', 'quota.reached', 'webhook.test',
] as const;
export type WebhookEventType = (typeof webhookEventTypes)[number];

const url = text.pipe(z.string().min(1, 'must not be empty').max(2_048, 'must be at most 2048 characters'))
  .meta({ description: 'https at port 443 or 8443, without credentials, at a public address.' });
const events = z.array(z.enum(webhookEventTypes)).min(1, 'must name at least one event').max(webhookEventTypes.length)
  .refine((list) => new Set(list).size === list.length, 'must not name an event twice');
const description = text.pipe(z.string().max(200, 'must be at most 200 characters')).nullable();

export const createWebhookBody = z.strictObject({ url, events, description: description.optional() }).meta({ id: 'CreateMailWebhook' });
export const updateWebhookBody = z.strictObject({
  url: url.optional(), events: events.optional(), description: description.optional(), status: z.enum(webhookStatuses).optional(),
}).refine((body) => Object.values(body).some((field) => field !== undefined), 'give at least one field to change').meta({ id: 'UpdateMailWebhook' });

export const webhookSchema = z.object({
  id: z.string(), mailServiceId: z.string(), url: z.string(), events: z.array(z.enum(webhookEventTypes)), description: z.string().nullable(),
  status: z.enum(webhookStatuses), disabledReason: z.enum(webhookDisabledReasons).nullable(), lastSuccessAt: time.nullable(), lastFailureAt: time.nullable(),
  createdAt: time, updatedAt: time,
}).meta({ id: 'MailWebhook' });
export type WebhookView = z.infer<typeof webhookSchema>;

export const deliverySchema = z.object({
  id: z.string(), webhookId: z.string(), type: z.enum(webhookEventTypes), state: z.enum(deliveryStates), attempts: z.number(), nextAttemptAt: time.nullable(),
  lastStatus: z.number().nullable(), lastError: z.string().nullable(), responseExcerpt: z.string().nullable(), createdAt: time, updatedAt: time,
}).meta({ id: 'MailWebhookDelivery' });
export type DeliveryView = z.infer<typeof deliverySchema>;

const secret = z.string().meta({ description: 'whsec_…; shown once. Signs every delivery (Standard Webhooks).' });
export const webhookAnswer = z.object({ webhook: webhookSchema });
export const webhookSecretAnswer = webhookAnswer.extend({ secret });
export const deletedWebhookAnswer = z.object({ deleted: z.literal(true), webhookId: z.string(), webhook: webhookSchema });
export const listWebhooksAnswer = z.object({ webhooks: z.array(webhookSchema), ...pageAnswer });
export const listWebhooksQuery = z.object(pageQuery);
export const deliveryAnswer = z.object({ delivery: deliverySchema });
export const listDeliveriesAnswer = z.object({ deliveries: z.array(deliverySchema), ...pageAnswer });
export const listDeliveriesQuery = z.object({ ...pageQuery, state: z.enum(deliveryStates).optional() });
