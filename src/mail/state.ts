/** Statuses of mail and how they follow each other (contract mail.md §2). Pure: workflows import this file; every CHECK in the database equals it. */

export const serviceStatuses = ['active', 'suspended', 'deleting', 'removed'] as const;
export type ServiceStatus = (typeof serviceStatuses)[number];
export const suspendedReasons = ['reputation', 'payment', 'admin'] as const;
export type SuspendedReason = (typeof suspendedReasons)[number];

/** What each service status may become (contract §2.3). */
export const serviceTransitions = {
  active: ['suspended', 'deleting'],
  suspended: ['active', 'deleting'],
  deleting: ['removed'],
  removed: [],
} as const satisfies Record<ServiceStatus, readonly ServiceStatus[]>;

export const domainStatuses = ['pending', 'verified', 'degraded', 'failed', 'suspended'] as const;
export type DomainStatus = (typeof domainStatuses)[number];
export const domainFailureReasons = ['window_expired', 'records_lost'] as const;
export type DomainFailureReason = (typeof domainFailureReasons)[number];
/** Statuses mail may be sent in. */
export const sendingDomainStatuses = ['verified', 'degraded'] as const satisfies readonly DomainStatus[];

export function canSend(status: DomainStatus): boolean {
  return sendingDomainStatuses.some((sending) => sending === status);
}

export const recordPurposes = ['ownership', 'dkim', 'return_path', 'dmarc'] as const;
export type RecordPurpose = (typeof recordPurposes)[number];
export const recordStatuses = ['pending', 'ok', 'missing', 'mismatch', 'unknown'] as const;
export type RecordStatus = (typeof recordStatuses)[number];
export const domainKeyStates = ['current', 'next', 'former'] as const;

/** Of recipients, and of messages by their recipients. */
export const recipientStatuses = ['queued', 'sending', 'deferred', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled'] as const;
export type RecipientStatus = (typeof recipientStatuses)[number];
export const statusReasons = [
  'expired', 'domain_not_verified', 'service_deleted', 'provider_rejected', 'suppressed_bounce', 'suppressed_complaint', 'suppressed_manual',
] as const;
export type StatusReason = (typeof statusReasons)[number];

/** What may become of a recipient, and `interrupted`: the line broke after the final dot. */
export const messageEventTypes = ['sent', 'delivered', 'deferred', 'bounced', 'complained', 'failed', 'suppressed', 'cancelled', 'interrupted'] as const;
/** Events without a message. */
export const otherEventTypes = [
  'domain.verified', 'domain.degraded', 'domain.failed', 'suppression.created', 'suppression.deleted', 'service.warning', 'service.suspended', 'service.resumed',
  'quota.warning', 'quota.reached', 'webhook.test',
] as const;
export const eventTypes = [...messageEventTypes, ...otherEventTypes] as const;
export type EventType = (typeof eventTypes)[number];

export const transportNames = ['capture', 'smtp_relay', 'direct_mx', 'resend', 'mailgun'] as const;
export const keyModes = ['live', 'test'] as const;
export const bounceClasses = ['hard', 'soft', 'policy', 'undetermined'] as const;
export const suppressionReasons = ['bounce', 'complaint', 'manual'] as const;
export const webhookStatuses = ['active', 'disabled'] as const;
export const webhookDisabledReasons = ['gone', 'failing', 'manual'] as const;
export const deliveryStates = ['pending', 'succeeded', 'failed'] as const;
