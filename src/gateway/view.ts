import type { CertificateRow } from './store/certificates';
import type { EventRow } from './store/events';
import type { CertificateView, EventView, Policy, PolicyView } from './schemas';
import type { PolicyRow } from './store/policies';

type Times = { createdAt: Date; updatedAt: Date };

/** A zone that was never written has version 0 and its own times. */
export function viewPolicy(zone: { id: string } & Times, row: Pick<PolicyRow, 'version' | 'updatedBy' | 'createdAt' | 'updatedAt'> | null, policy: Policy): PolicyView {
  const { createdAt, updatedAt } = row ?? zone;
  return {
    id: zone.id, zoneId: zone.id, version: row?.version ?? 0, ...policy, updatedBy: row?.updatedBy ?? null, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString(),
  };
}

export function viewEvent({ retentionDays: _, asn, bytesIn, createdAt, updatedAt, ...event }: EventRow): EventView {
  return { ...event, asn: asn === null ? null : Number(asn), bytesIn: Number(bytesIn), createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

/** Never a key. */
export function viewCertificate(row: CertificateRow): CertificateView {
  const iso = (time: Date | null) => time?.toISOString() ?? null;
  return {
    id: row.id, zoneId: row.zoneId, hostnames: row.hostnames, status: row.status, issuer: row.issuer, method: row.method, serialNumber: row.serialNumber,
    notBefore: iso(row.notBefore), notAfter: iso(row.notAfter), renewAt: iso(row.renewAt), attempts: row.attempts, nextAttemptAt: iso(row.nextAttemptAt),
    lastError: row.lastErrorCode === null ? null : { code: row.lastErrorCode, message: row.lastErrorMessage ?? '' }, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}
