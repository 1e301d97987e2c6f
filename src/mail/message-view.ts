import { formatMailbox } from './rules/addresses';
import { outcomeNames, type MessageRowView, type MessageView } from './schemas/messages';
import type { z } from 'zod';
import type { statsSchema } from './schemas/messages';
import type { recipientStatuses } from './state';
import type { HourRow, MessageRow, ShownRecipient, StoredEvent } from './store/messages';

export function viewMessageRow(row: MessageRow): MessageRowView {
  const { parties, counts, createdAt, updatedAt, expiresAt, firstAttemptAt, settledAt, ...rest } = row;
  return {
    ...rest, messageId: row.id, from: formatMailbox(parties.from), to: parties.to.map(formatMailbox), cc: parties.cc.map(formatMailbox),
    replyTo: parties.replyTo === null ? null : formatMailbox(parties.replyTo), recipientCounts: countsOf(counts),
    firstAttemptAt: timeOf(firstAttemptAt), settledAt: timeOf(settledAt), expiresAt: expiresAt.toISOString(), createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString(),
  };
}

export function viewMessage(row: MessageRow, recipients: readonly ShownRecipient[], events: readonly StoredEvent[]): MessageView {
  return {
    ...viewMessageRow(row), bcc: row.parties.bcc.map(formatMailbox), recipients: recipients.map(viewRecipient),
    events: events.map((event) => ({
      ...event, occurredAt: event.occurredAt.toISOString(), receivedAt: event.receivedAt.toISOString(), createdAt: event.receivedAt.toISOString(), updatedAt: event.receivedAt.toISOString(),
    })),
  };
}

function viewRecipient(row: ShownRecipient): MessageView['recipients'][number] {
  const waits = row.status === 'queued' || row.status === 'deferred';
  return {
    id: row.id, address: row.address, kind: row.kind, status: row.status, statusReason: row.statusReason, attempts: row.attemptNo, lastAttemptAt: timeOf(row.lastAttemptAt),
    nextAttemptAt: waits ? timeOf(row.nextAttemptAt) : null, mxHost: row.mxHost, tls: row.tls, smtpCode: row.smtpCode, enhancedCode: row.enhancedCode, diagnostic: row.diagnostic,
    deliveredAt: timeOf(row.deliveredAt), bounce: row.bounceClass === null ? null : { class: row.bounceClass, subType: row.bounceSubType },
    complaint: row.complainedAt === null ? null : { feedbackType: row.feedbackType },
    createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

function countsOf(counts: MessageRow['counts']): MessageRowView['recipientCounts'] {
  const { queued = 0, sending = 0, deferred = 0, sent = 0, delivered = 0, bounced = 0, complained = 0, failed = 0, suppressed = 0, cancelled = 0 } = counts;
  return { queued, sending, deferred, sent, delivered, bounced, complained, failed, suppressed, cancelled } satisfies Record<(typeof recipientStatuses)[number], number>;
}

export function viewStats(hours: readonly HourRow[]): z.input<typeof statsSchema> {
  const sum = (name: Exclude<keyof HourRow, 'hour'>) => hours.reduce((total, hour) => total + hour[name], 0);
  const rate = (name: 'hardBounced' | 'liveComplained') => (sum('attempted') === 0 ? 0 : sum(name) / sum('attempted'));
  const { accepted, sent, delivered, deferred, bounced, complained, failed, suppressed, cancelled } = Object.fromEntries(outcomeNames.map((name) => [name, sum(name)]));
  return {
    accepted: accepted ?? 0, sent: sent ?? 0, delivered: delivered ?? 0, deferred: deferred ?? 0, bounced: bounced ?? 0, complained: complained ?? 0, failed: failed ?? 0,
    suppressed: suppressed ?? 0, cancelled: cancelled ?? 0, bounceRate: rate('hardBounced'), complaintRate: rate('liveComplained'),
    series: hours.map(({ hour, attempted: _, hardBounced: __, liveComplained: ___, ...counts }) => ({ hour: hour.toISOString(), ...counts })),
  };
}

function timeOf(at: Date | null): string | null {
  return at?.toISOString() ?? null;
}
