import type { BounceClass, Reply, TransportResult } from '../ports';
import type { StatusReason } from '../state';
import { applies, type FactType, type RecipientRow } from './recipients';
import { bounceClass, diagnosticOf, enhancedCodeOf } from './replies';

/** Something reported of a recipient that may become what it is. */
export type ReportedFact = {
  type: FactType; eventId: string; occurredAt: Date; reply?: Reply | undefined; statusReason?: StatusReason | undefined;
  bounce?: { class: BounceClass; subType?: string | undefined } | undefined; complaint?: { feedbackType?: string | undefined } | undefined;
};

export type ReplyFields = Pick<RecipientRow, 'mxHost' | 'tls' | 'smtpCode' | 'enhancedCode' | 'diagnostic'>;

export function replyFields(reply: Reply | undefined): ReplyFields {
  return {
    mxHost: reply?.mxHost?.slice(0, 255) ?? null, tls: reply?.tls ?? null, smtpCode: reply?.code ?? null,
    enhancedCode: enhancedCodeOf(reply?.enhancedCode), diagnostic: diagnosticOf(reply?.text),
  };
}

/**
 * The recipient after the fact, or the very same row when it changes nothing. All that is shown of an outcome comes from
 * the one fact that stands, so no order of facts can leave traces of another.
 */
export function withFact(row: RecipientRow, fact: ReportedFact): RecipientRow {
  if (!applies({ status: row.status, retryOwner: row.retryOwner, factAt: row.factAt, factId: row.factEventId }, fact)) return row;
  const bounced = fact.type === 'bounced';
  const complained = fact.type === 'complained';
  return {
    ...row, ...replyFields(fact.reply), status: fact.type, statusReason: fact.statusReason ?? null, retryOwner: fact.type === 'deferred' ? 'provider' : 'us',
    leaseUntil: null, nextAttemptAt: null, factAt: fact.occurredAt, factEventId: fact.eventId,
    deliveredAt: fact.type === 'delivered' ? fact.occurredAt : null,
    bounceClass: bounced ? fact.bounce?.class ?? bounceClass(fact.reply ?? {}) : null, bounceSubType: bounced ? fact.bounce?.subType ?? null : null,
    complainedAt: complained ? fact.occurredAt : null, feedbackType: complained ? fact.complaint?.feedbackType ?? null : null,
  };
}

/** The fact in a transport's answer; null for a deferral, which is a place in our own loop. */
export function factOf(result: TransportResult, acceptedMeans: 'delivered' | 'sent', at: { eventId: string; now: Date }): ReportedFact | null {
  const fact = { eventId: at.eventId, occurredAt: at.now, reply: result };
  switch (result.outcome) {
    case 'accepted': return { ...fact, type: acceptedMeans };
    case 'refused': return { ...fact, type: 'bounced', bounce: { class: bounceClass(result) } };
    case 'rejected': return { ...fact, type: 'failed', statusReason: 'provider_rejected' };
    case 'deferred':
    case 'interrupted': return null;
  }
}
