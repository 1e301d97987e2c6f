import { z } from 'zod';
import { text, time } from '../../core/fields';
import { digits, pageAnswer, pageQuery } from '../../core/page';
import { bounceClasses, keyModes, messageEventTypes, recipientStatuses, statusReasons, transportNames, type RecipientStatus } from '../state';

const status = z.enum(recipientStatuses);
const statusReason = z.enum(statusReasons).nullable();
const smtp = { smtpCode: z.number().nullable(), enhancedCode: z.string().nullable(), diagnostic: z.string().nullable() };

export const recipientSchema = z.object({
  id: z.string(), address: z.string(), kind: z.enum(['to', 'cc', 'bcc']), status, statusReason, attempts: z.number(), lastAttemptAt: time.nullable(),
  nextAttemptAt: time.nullable(), mxHost: z.string().nullable(), tls: z.string().nullable(), ...smtp, deliveredAt: time.nullable(),
  bounce: z.object({ class: z.enum(bounceClasses), subType: z.string().nullable() }).nullable(),
  complaint: z.object({ feedbackType: z.string().nullable() }).nullable(), createdAt: time, updatedAt: time,
}).meta({ id: 'MailRecipient' });

export const messageEventSchema = z.object({
  id: z.string(), type: z.enum(messageEventTypes), recipientId: z.string(), recipient: z.string(), attempt: z.number().nullable(), sequence: z.number(),
  applied: z.boolean().meta({ description: 'false: it came late and changed nothing.' }),
  source: z.string().meta({ description: '`delivery`, `provider:<name>`, `dsn`, `arf`, `api`' }), occurredAt: time, receivedAt: time, ...smtp, createdAt: time, updatedAt: time,
}).meta({ id: 'MailMessageEvent' });

const rowFields = {
  id: z.string(), messageId: z.string(), mailServiceId: z.string(), apiKeyId: z.string(), mode: z.enum(keyModes), transport: z.enum(transportNames), status, statusReason,
  from: z.string(), to: z.array(z.string()), cc: z.array(z.string()), replyTo: z.string().nullable(), subject: z.string(), metadata: z.record(z.string(), z.unknown()).nullable(),
  hasText: z.boolean(), hasHtml: z.boolean(), sizeBytes: z.number(), rfcMessageId: z.string(), recipientCounts: z.record(status, z.number()),
  firstAttemptAt: time.nullable(), settledAt: time.nullable(), expiresAt: time, createdAt: time, updatedAt: time,
};
export const messageRowSchema = z.object(rowFields).meta({ id: 'MailMessageRow' });
export const messageSchema = z.object({
  ...rowFields, bcc: z.array(z.string()), recipients: z.array(recipientSchema), events: z.array(messageEventSchema).meta({ description: 'The newest 200, oldest first.' }),
}).meta({ id: 'MailMessage' });
export const contentSchema = z.object({ text: z.string().nullable(), html: z.string().nullable(), mime: z.string().nullable() }).meta({ id: 'MailContent', description: 'Null after retention.' });

export type MessageRowView = z.input<typeof messageRowSchema>;
export type MessageView = z.input<typeof messageSchema>;

export const messageAnswer = z.object({ messageId: z.string(), status, message: messageSchema });
export const messageWithContentAnswer = messageAnswer.extend({ content: contentSchema.optional() });
export const cancelledAnswer = messageAnswer.extend({ cancelled: z.number().meta({ description: 'Recipients that will get nothing.' }) });
export const listMessagesAnswer = z.object({ messages: z.array(messageRowSchema), ...pageAnswer });

const statuses = z.string().transform((value, context): RecipientStatus[] => {
  const given = [...new Set(value.split(',').map((item) => item.trim()))];
  const known = recipientStatuses.filter((one) => given.includes(one));
  if (known.length === given.length) return known;
  context.issues.push({ code: 'custom', message: `must be values of ${recipientStatuses.join(', ')}, separated by commas`, input: value });
  return z.NEVER;
}).meta({ description: `Any of ${recipientStatuses.join(', ')}, separated by commas.` });
const instant = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time' }).transform((value) => new Date(value));

export const listMessagesQuery = z.object({
  ...pageQuery, status: statuses.optional(), recipient: text.pipe(z.string().min(1).max(320)).optional().meta({ description: 'Exactly this address.' }),
  since: instant.optional().meta({ description: 'Accepted then or later.' }), until: instant.optional().meta({ description: 'Accepted before.' }), mode: z.enum(keyModes).optional(),
});
export const messageQuery = z.object({ include: z.enum(['content']).optional().meta({ description: 'content: with the bodies; needs mail:write.' }) });

export const statsQuery = z.object({ hours: digits.pipe(z.number().min(1, 'must be 1 to 720').max(720, 'must be 1 to 720')).default(24) });
const outcomes = {
  accepted: z.number(), sent: z.number(), delivered: z.number(), deferred: z.number(), bounced: z.number(), complained: z.number(), failed: z.number(), suppressed: z.number(), cancelled: z.number(),
};
export const statsSchema = z.object({
  ...outcomes, bounceRate: z.number().meta({ description: 'Hard bounces of attempted live recipients, 0 to 1.' }), complaintRate: z.number(),
  series: z.array(z.object({ hour: time, ...outcomes })),
}).meta({ id: 'MailStats' });
export const statsAnswer = z.object({ stats: statsSchema });
export const outcomeNames = ['accepted', 'sent', 'delivered', 'deferred', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled'] as const;
