import { z } from 'zod';
import type { CanonicalEvent, ProviderEvents, Reply } from '../../mail/ports';
import { bounceClass } from '../../mail/rules/replies';
import { eventOf, messageIdOf, moment, number, readBody, replyOf, words } from './fields';
import { isHexHmac } from './signatures';

const toleranceMs = 24 * 3_600_000;
const aheadMs = 5 * 60_000;

const signed = z.object({ signature: z.object({ timestamp: z.coerce.string().regex(/^\d{1,12}$/), token: z.string().min(1).max(200), signature: z.string() }) });
const payload = z.object({
  'event-data': z.object({
    id: z.string().min(1).max(255), event: z.string(), timestamp: moment, recipient: words, severity: words, reason: words,
    'delivery-status': z.object({ code: number, 'enhanced-code': words, message: words, description: words, 'mx-host': words }).optional().catch(undefined),
    message: z.object({ headers: z.object({ 'message-id': words }).optional().catch(undefined) }).optional().catch(undefined),
    'user-variables': z.record(z.string(), z.unknown()).optional().catch(undefined),
  }),
});
type Data = z.output<typeof payload>['event-data'];

/**
 * Webhooks of Mailgun. The signature is in the body and covers a time and a token, not the event: whoever has seen one can
 * write another body under it, so a token belongs to the first event that came with it (`oneTimeToken`).
 */
export const mailgunEvents: ProviderEvents = {
  provider: 'mailgun',
  verify(raw, _headers, secrets, now) {
    const { data } = signed.safeParse(jsonOf(raw));
    if (!data) return false;
    const { timestamp, token, signature } = data.signature;
    const ageMs = now.getTime() - Number(timestamp) * 1_000;
    return isHexHmac(signature, timestamp + token, secrets) && ageMs <= toleranceMs && ageMs >= -aheadMs;
  },
  parse: (body) => [canonical(readBody(payload, body)['event-data'])],
  oneTimeToken: (body) => ({ token: readBody(signed, body).signature.token, eventId: readBody(payload, body)['event-data'].id }),
};

function canonical(data: Data): CanonicalEvent {
  const type = typeOf(data);
  const status = data['delivery-status'];
  const reply = replyOf({ code: status?.code, enhancedCode: status?.['enhanced-code'], text: status?.message || status?.description, mxHost: status?.['mx-host'] });
  return eventOf({
    providerEventId: data.id, type, messageId: messageIdOf(data['user-variables']?.['holdfast_message']),
    providerMessageId: data.message?.headers?.['message-id']?.replace(/^<|>$/g, ''), recipient: data.recipient, occurredAt: data.timestamp, reply,
    bounce: type === 'bounced' ? bounceOf(data, reply) : undefined, complaint: type === 'complained' ? {} : undefined,
  });
}

function typeOf({ event, severity, reason }: Data): CanonicalEvent['type'] {
  switch (event) {
    case 'delivered': case 'complained': case 'rejected': return event;
    case 'failed': return severity === 'temporary' && reason !== gaveUp ? 'deferred' : 'bounced';
    default: return 'other';
  }
}

/** It tried for as long as it does. */
const gaveUp = 'old';

function bounceOf({ reason }: Data, reply: Reply | undefined): NonNullable<CanonicalEvent['bounce']> {
  return { class: reason === gaveUp ? 'soft' : bounceClass(reply ?? {}), ...(reason ? { subType: reason } : {}) };
}

function jsonOf(raw: Buffer): unknown {
  try {
    return JSON.parse(raw.toString());
  } catch {
    return null;
  }
}
