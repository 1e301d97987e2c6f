import type { Db } from '../../db/client';
import { insertDeliveries } from '../store/webhook-deliveries';
import type { WebhookEventType } from '../schemas/webhooks';

/** What customers are told; members that do not apply are left out and shown as null. */
export interface WebhookEvent {
  /** `evt_…` of the event; the delivery's id at every webhook. */
  readonly eventId: string;
  readonly type: WebhookEventType;
  readonly mailServiceId: string;
  readonly occurredAt: Date;
  readonly messageId?: string | undefined;
  readonly recipient?: string | undefined;
  /** Of the recipient, the domain, the service. */
  readonly status?: string | undefined;
  readonly sequence?: number | undefined;
  readonly smtp?: { code: number | null; enhancedCode: string | null; diagnostic: string | null } | null | undefined;
  readonly bounce?: { class: string; subType: string | null } | null | undefined;
  readonly metadata?: unknown;
  /** Facts of events without a message: `domainId`, `domain`, `suppressionId`, `address`, `limit`, `used`, …. */
  readonly more?: Readonly<Record<string, unknown>> | undefined;
}

const bodyMax = 20 * 1024;

/**
 * A pending delivery at every active webhook of the service that wants this type, in the transaction of the event itself:
 * they are told if and only if it happened. One statement for all events; for the same event twice there is one delivery.
 */
export async function tellWebhooks(tx: Db, events: readonly WebhookEvent[]): Promise<void> {
  if (events.length === 0) return;
  await insertDeliveries(tx, events.map((event) => ({
    eventId: event.eventId, type: event.type, mailServiceId: event.mailServiceId, messageId: event.messageId ?? null, body: webhookBody(event),
  })));
}

/** The exact bytes that are signed and sent, ≤ 20 KiB: metadata that is too long is left out. */
export function webhookBody(event: WebhookEvent): string {
  const whole = bodyOf(event);
  return Buffer.byteLength(whole) <= bodyMax ? whole : bodyOf({ ...event, metadata: null });
}

function bodyOf({ eventId, type, mailServiceId, occurredAt, messageId, recipient, status, sequence, smtp, bounce, metadata, more }: WebhookEvent): string {
  return JSON.stringify({
    type, timestamp: occurredAt.toISOString(),
    data: {
      eventId, mailServiceId, messageId: messageId ?? null, recipient: recipient ?? null, status: status ?? null, sequence: sequence ?? null,
      smtp: smtp ?? null, bounce: bounce ?? null, metadata: metadata ?? null, ...more,
    },
  });
}
