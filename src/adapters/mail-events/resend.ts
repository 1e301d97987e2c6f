import { z } from 'zod';
import type { BounceClass, CanonicalEvent, ProviderEvents } from '../../mail/ports';
import { eventOf, messageIdOf, moment, readBody, replyOf, words } from './fields';
import { header, isStandardWebhook } from './signatures';

const tags = z.union([z.record(z.string(), z.unknown()), z.array(z.object({ name: z.string(), value: z.unknown() })).transform((list) => Object.fromEntries(list.map(({ name, value }) => [name, value])))])
  .optional().catch(undefined);
const payload = z.object({
  type: z.string(), created_at: moment,
  data: z.object({
    email_id: words, to: z.array(z.string()).optional().catch(undefined), tags,
    bounce: z.object({ type: words, subType: words, message: words }).optional().catch(undefined),
    failed: z.object({ reason: words }).optional().catch(undefined), suppressed: z.object({ message: words }).optional().catch(undefined),
  }),
});

const types: Readonly<Record<string, CanonicalEvent['type']>> = {
  'email.delivered': 'delivered', 'email.delivery_delayed': 'deferred', 'email.bounced': 'bounced', 'email.complained': 'complained', 'email.failed': 'rejected', 'email.suppressed': 'rejected',
};
const classes: Readonly<Record<string, BounceClass>> = { permanent: 'hard', transient: 'soft' };

/** Webhooks of Resend, which Svix signs. We send one mail per recipient, so its one `to` is the recipient. */
export const resendEvents: ProviderEvents = {
  provider: 'resend',
  verify: (raw, headers, secrets, now) => isStandardWebhook(raw, headers, { secrets, now, prefixes: ['svix'] }),
  parse(body, headers = {}) {
    const { type, created_at: occurredAt, data } = readBody(payload, body);
    const known = types[type] ?? 'other';
    return [eventOf({
      providerEventId: header(headers, 'svix-id') ?? `${data.email_id ?? ''}:${type}:${occurredAt?.toISOString() ?? ''}`, type: known,
      messageId: messageIdOf(data.tags?.['holdfast_message']), providerMessageId: data.email_id, recipient: data.to?.length === 1 ? data.to[0] : undefined, occurredAt,
      reply: replyOf({ text: data.bounce?.message ?? data.failed?.reason ?? data.suppressed?.message }),
      bounce: known === 'bounced' ? bounceOf(data.bounce) : undefined, complaint: known === 'complained' ? {} : undefined,
    })];
  },
};

function bounceOf(bounce: { type?: string | undefined; subType?: string | undefined } | undefined): NonNullable<CanonicalEvent['bounce']> {
  return { class: classes[bounce?.type?.toLowerCase() ?? ''] ?? 'undetermined', ...(bounce?.subType ? { subType: bounce.subType } : {}) };
}
