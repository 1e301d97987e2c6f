import type { BounceClass } from '../ports';
import type { RecipientStatus, StatusReason } from '../state';

/** Whose turn it is while a recipient is deferred: ours, or the provider's after hand-over. */
export const retryOwners = ['us', 'provider'] as const;
export type RetryOwner = (typeof retryOwners)[number];

/** What a recipient may become; `fact` stands for whatever is reported about it, by rank. */
export const recipientTransitions = {
  queued: ['sending', 'suppressed', 'cancelled', 'failed', 'deferred', 'sent', 'delivered', 'bounced', 'complained'],
  sending: ['deferred', 'cancelled', 'failed', 'sent', 'delivered', 'bounced', 'complained'],
  deferred: ['sending', 'suppressed', 'cancelled', 'failed', 'sent', 'delivered', 'bounced', 'complained'],
  sent: ['deferred', 'failed', 'delivered', 'bounced', 'complained'],
  delivered: ['bounced', 'complained'],
  failed: ['delivered', 'bounced', 'complained'],
  bounced: ['complained'],
  complained: [],
  suppressed: [],
  cancelled: [],
} as const satisfies Record<RecipientStatus, readonly RecipientStatus[]>;

/** The first of these that some recipient has is the message's status: what most needs to be looked at. */
export const worstFirst = ['complained', 'bounced', 'failed', 'deferred', 'sending', 'queued', 'sent', 'delivered', 'suppressed', 'cancelled'] as const satisfies readonly RecipientStatus[];

/** The status of a message with these recipients; with one recipient it is that one's. */
export function messageStatus(recipients: readonly { status: RecipientStatus }[]): RecipientStatus {
  return worstFirst.find((status) => recipients.some((recipient) => recipient.status === status)) ?? 'queued';
}

/** Whether we have nothing left to do for this recipient. */
export function isRecipientSettled({ status, retryOwner }: { status: RecipientStatus; retryOwner: RetryOwner }): boolean {
  return status !== 'queued' && status !== 'sending' && !(status === 'deferred' && retryOwner === 'us');
}

/** Whether we have nothing left to do for the message: no recipient is queued, sending or deferred with the retry ours. */
export function isSettled(recipients: readonly { status: RecipientStatus; retryOwner: RetryOwner }[]): boolean {
  return recipients.every(isRecipientSettled);
}

/** What somebody reports of a recipient: our own attempt, a provider, a delivery status notification, a feedback loop. */
export const factTypes = ['sent', 'deferred', 'failed', 'delivered', 'bounced', 'complained'] as const;
export type FactType = (typeof factTypes)[number];

const ranks = { deferred: 2, sent: 2, failed: 3, delivered: 4, bounced: 5, complained: 6 } as const satisfies Record<FactType, number>;

/** `deferred` is the provider's after hand-over; a deferral of our own is no fact but a place in our loop. */
export type Fact = { type: FactType; occurredAt: Date; eventId: string };

/** What a recipient is by now. `factAt` and `factId` are of the fact it rests on, null while it rests on none. */
export type Standing = { status: RecipientStatus; retryOwner: RetryOwner; factAt: Date | null; factId: string | null };

/** 6 complained, 5 bounced, 4 delivered, 3 failed, 2 sent and deferred by a provider, 1 what our own loop says. */
export function rankOf({ status, retryOwner }: Pick<Standing, 'status' | 'retryOwner'>): number {
  if (status === 'queued' || status === 'sending' || (status === 'deferred' && retryOwner === 'us')) return 1;
  return status === 'suppressed' || status === 'cancelled' ? Infinity : ranks[status];
}

/**
 * Whether the fact becomes what the recipient rests on: the highest rank does; of equal ranks the later `occurredAt`, then
 * the greater event id, where the outcome is open (rank 2), and the first told where it is known, so that a repetition
 * changes nothing. A maximum over a total order: neither the order nor the repetition of facts matters.
 */
export function applies(standing: Standing, fact: Fact): boolean {
  const rank = rankOf(standing);
  const own = ranks[fact.type];
  if (own !== rank) return own > rank;
  const later = compare(fact, standing);
  return own === 2 ? later > 0 : later < 0;
}

/** The recipient after the fact; the same one when that changes nothing. */
export function merge(standing: Standing, fact: Fact): Standing {
  if (!applies(standing, fact)) return standing;
  return { status: fact.type, retryOwner: fact.type === 'deferred' ? 'provider' : 'us', factAt: fact.occurredAt, factId: fact.eventId };
}

function compare(fact: Fact, { factAt, factId }: Standing): number {
  const byTime = fact.occurredAt.getTime() - (factAt?.getTime() ?? -Infinity);
  if (byTime !== 0) return byTime;
  return fact.eventId === factId ? 0 : fact.eventId > (factId ?? '') ? 1 : -1;
}

/** What may change about a recipient. */
export type RecipientState = {
  status: RecipientStatus; statusReason: StatusReason | null; retryOwner: RetryOwner; attemptNo: number; fence: number; leaseUntil: Date | null;
  nextAttemptAt: Date | null; lastAttemptAt: Date | null; factAt: Date | null; factEventId: string | null; mxHost: string | null; tls: string | null;
  smtpCode: number | null; enhancedCode: string | null; diagnostic: string | null; deliveredAt: Date | null; bounceClass: BounceClass | null;
  bounceSubType: string | null; complainedAt: Date | null; feedbackType: string | null; provider: string | null; providerMessageId: string | null;
};
export type RecipientRow = RecipientState & { id: string; messageId: string; mailServiceId: string; position: number; kind: 'to' | 'cc' | 'bcc'; address: string; addressKey: string };
