import { z } from 'zod';
import type { CanonicalEvent, ProviderEvents } from '../../mail/ports';
import { eventOf, messageIdOf, moment, readBody, replyOf, words } from './fields';
import { header, isHexHmac } from './signatures';

const address = z.union([z.string().transform((email) => ({ email })), z.object({ email: words })]).optional().catch(undefined);
const reasons = z.object({ reason: words, message: words }).optional().catch(undefined);
/** Both of its forms: the one that tells of the whole email, and the flat one. */
const email = z.union([z.string().transform((recipient) => ({ id: undefined, message: undefined, tags: undefined, recipient: { email: recipient } })), z.object({
  id: words, message: z.object({ id: words }).optional().catch(undefined), tags: z.array(z.string()).nullish().catch(undefined), recipient: address,
})]).optional().catch(undefined);
const payload = z.object({
  type: z.string(), created_at: moment,
  data: z.object({ id: words, email, message_id: words, recipient: address, tags: z.array(z.string()).nullish().catch(undefined), morph: reasons, meta: reasons }).optional().catch(undefined),
});

const types: Readonly<Record<string, CanonicalEvent['type']>> = {
  'activity.delivered': 'delivered', 'activity.soft_bounced': 'deferred', 'activity.hard_bounced': 'bounced', 'activity.spam_complaint': 'complained',
};

/** Webhooks of MailerSend: an HMAC of the raw body, without a time; a repetition is known by the event's id. */
export const mailersendEvents: ProviderEvents = {
  provider: 'mailersend',
  verify: (raw, headers, secrets) => isHexHmac(header(headers, 'signature') ?? '', raw, secrets),
  parse(body) {
    const { type, created_at: occurredAt, data } = readBody(payload, body);
    const known = types[type] ?? 'other';
    const providerMessageId = data?.email?.message?.id ?? data?.message_id;
    return [eventOf({
      providerEventId: data?.id ?? `${providerMessageId ?? ''}:${type}:${occurredAt?.toISOString() ?? ''}`, type: known, providerMessageId, occurredAt,
      messageId: [...(data?.email?.tags ?? []), ...(data?.tags ?? [])].map(messageIdOf).find((id) => id !== undefined),
      recipient: data?.email?.recipient?.email ?? data?.recipient?.email,
      reply: replyOf({ text: data?.morph?.reason ?? data?.meta?.reason ?? data?.morph?.message ?? data?.meta?.message }),
      bounce: known === 'bounced' ? { class: 'hard' } : undefined, complaint: known === 'complained' ? {} : undefined,
    })];
  },
};
