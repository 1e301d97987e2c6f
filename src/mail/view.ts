import type { ApiKeyRow } from '../identity/service';
import { recipientMaxima, type DomainView, type KeyView, type ServiceView } from './schemas';
import { canSend } from './state';
import type { RecordRow } from './store/domain-records';
import type { DomainRow } from './store/domains';
import type { ServiceRow } from './store/services';
import type { SuppressionRow } from './store/suppressions';
import type { UsageRow } from './store/usage';

/** What is shown of a service and stands in other rows. */
export type ServiceFacts = { limits: Readonly<Record<string, number>>; usage: UsageRow };

export function viewService(row: ServiceRow, { limits, usage }: ServiceFacts, transport: ServiceView['transport']): ServiceView {
  return {
    id: row.id, mailServiceId: row.id, displayName: row.displayName, plan: row.plan, status: row.status === 'removed' ? 'deleting' : row.status,
    suspendedReason: row.suspendedReason, transport,
    limits: {
      recipientsPerMonth: usage.included, sendsPerSecond: row.sendsPerSecond, domains: limits['mail.domains'] ?? null, apiKeys: limits['mail.api_keys'] ?? null,
      webhooks: limits['mail.webhooks'] ?? null, ...recipientMaxima,
    },
    usage: { recipients: usage.recipients, periodStart: usage.periodStart.toISOString(), periodEnd: usage.periodEnd.toISOString() },
    counts: { domains: row.domainCount, apiKeys: row.apiKeyCount, webhooks: row.webhookCount },
    createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewDomain(row: DomainRow, records: readonly RecordRow[]): DomainView {
  return {
    id: row.id, domainId: row.id, domain: row.domain, mailServiceId: row.mailServiceId, status: row.status, canSend: canSend(row.status), failureReason: row.failureReason,
    hostedZoneId: row.hostedZoneId, checkCount: row.checkCount, lastCheckedAt: timeOf(row.lastCheckedAt), nextCheckAt: timeOf(row.nextCheckAt),
    verifiedAt: timeOf(row.verifiedAt), degradedAt: timeOf(row.degradedAt), verificationDeadline: row.verificationDeadline.toISOString(), dmarcPolicy: row.dmarcPolicy,
    records: records.filter(({ domainId }) => domainId === row.id)
      .map(({ purpose, required, type, name, value, ttl, status, found, published }) => ({ purpose, required, type, name, value, ttl, status, found, published })),
    createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewKey(row: ApiKeyRow): KeyView {
  return {
    id: row.id, apiKeyId: row.id, mailServiceId: row.serviceId, name: row.name, mode: row.mode, prefix: row.prefix, last4: row.last4, scopes: row.scopes,
    allowedDomains: row.allowedDomains, status: row.status, expiresAt: timeOf(row.expiresAt), lastUsedAt: timeOf(row.lastUsedAt), replacedBy: row.replacedBy,
    graceUntil: timeOf(row.graceUntil), revokedAt: timeOf(row.revokedAt), createdBy: row.createdBy, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewSuppression(row: SuppressionRow) {
  const { id, address, reason, sourceMessageId, note } = row;
  return { id, address, reason, sourceMessageId, note, expiresAt: timeOf(row.expiresAt), createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString() };
}

function timeOf(at: Date | null): string | null {
  return at?.toISOString() ?? null;
}
