import { z } from 'zod';
import type { CanonicalEvent, ProviderEvents } from '../../mail/ports';
import { bounceClasses } from '../../mail/state';
import { eventOf, readBody, replyOf } from './fields';
import { header, isStandardWebhook } from './signatures';

const eventsMax = 100;
const id = z.string().min(1).max(255);
const text = z.string().max(2_000);

const event = z.object({
  id: id.optional(), type: z.enum(['delivered', 'deferred', 'bounced', 'complained', 'rejected']), messageId: id.optional(), providerMessageId: id.optional(),
  recipient: z.string().max(320).nullish(), occurredAt: z.iso.datetime({ offset: true }).nullish(),
  smtp: z.object({ code: z.number().int().min(200).max(599).nullish(), enhancedCode: text.nullish(), diagnostic: text.nullish(), mxHost: z.string().max(255).nullish() }).nullish(),
  bounce: z.object({ class: z.enum(bounceClasses), subType: z.string().max(100).nullish() }).nullish(),
  complaint: z.object({ feedbackType: z.string().max(100).nullish() }).nullish(),
}).refine(({ messageId, providerMessageId }) => messageId !== undefined || providerMessageId !== undefined, { path: ['messageId'], message: 'messageId or providerMessageId must be given' });
const several = z.object({ events: z.array(event).min(1).max(eventsMax) });

/** Anybody who speaks Standard Webhooks (contract mail.md §6): one event, or `{"events": […]}`. */
export const genericEvents: ProviderEvents = {
  provider: 'generic',
  verify: (raw, headers, secrets, now) => isStandardWebhook(raw, headers, { secrets, now, prefixes: ['webhook', 'svix'] }),
  parse(body, headers = {}) {
    const batch = typeof body === 'object' && body !== null && 'events' in body;
    const events = batch ? readBody(several, body).events : [readBody(event, body)];
    const delivery = header(headers, 'webhook-id') ?? header(headers, 'svix-id') ?? '';
    return events.map((one, i) => canonical(one, one.id ?? `${delivery}#${i}`));
  },
};

function canonical({ type, messageId, providerMessageId, recipient, occurredAt, smtp, bounce, complaint }: z.output<typeof event>, providerEventId: string): CanonicalEvent {
  return eventOf({
    providerEventId, type, messageId, providerMessageId, recipient: recipient ?? undefined, occurredAt: occurredAt ? new Date(occurredAt) : undefined,
    reply: smtp ? replyOf({ code: smtp.code ?? undefined, enhancedCode: smtp.enhancedCode ?? undefined, text: smtp.diagnostic ?? undefined, mxHost: smtp.mxHost ?? undefined }) : undefined,
    bounce: bounce ? { class: bounce.class, ...(bounce.subType ? { subType: bounce.subType } : {}) } : undefined,
    complaint: complaint ? (complaint.feedbackType ? { feedbackType: complaint.feedbackType } : {}) : undefined,
  });
}
