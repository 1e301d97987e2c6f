import { nameserversOf, ownNameservers, type Platform } from './rules/platform';
import { factsOf } from './rules/change-set';
import { effectiveRecord } from './rules/effective';
import { fqdnOf } from './rules/names';
import { isProxiableName } from './rules/values';
import { shownZoneStatus } from './state';
import type { RecordRow } from './store/records';
import type { ZoneRow } from './store/zones';
import type { RecordView, ZoneView } from './schemas';

const dayMs = 86_400_000;

export type ZoneShown = { platform: Platform; recordLimit: number | null; report?: unknown; days: { pending: number; moved: number } };

export function viewZone(zone: ZoneRow, { platform, recordLimit, report, days }: ZoneShown): ZoneView {
  const publishedVersion = publishedVersionOf(zone);
  const published = publishedVersion >= zone.version;
  const error = zone.syncErrorCode === null ? null : { code: zone.syncErrorCode, message: zone.syncErrorMessage ?? '' };
  return {
    id: zone.id, domain: zone.domain, unicodeDomain: zone.unicodeDomain, mode: zone.mode,
    status: shownZoneStatus(zone), statusReason: zone.suspendedAt && !zone.deletedAt ? zone.suspendedReason : zone.statusReason, served: zone.served,
    nameservers: zone.mode === 'external' ? zone.seenNameservers : nameserversOf(platform, zone),
    customNameservers: zone.customNameservers, glue: glueOf(zone, platform), cnameTarget: zone.cnameToken === null ? null : `${zone.cnameToken}.${platform.edgeSuffix}`,
    verification: {
      method: zone.mode === 'external' ? 'txt' : 'nameservers',
      record: zone.mode === 'external' || zone.customNameservers.length > 0 ? verificationRecord(zone) : null,
      provenAt: iso(zone.provenAt), lastCheckedAt: iso(zone.lastCheckedAt), nextCheckAt: iso(zone.nextCheckAt), failures: zone.checkFailures, report: report ?? null,
    },
    version: zone.version, serial: zone.serial,
    publication: { publishedVersion, published, publishedAt: published && zone.served ? iso(zone.ackedAt) : null },
    sync: { status: zone.syncBlocked ? 'blocked' : error ? 'failed' : published ? 'synced' : 'pending', lastSyncedAt: iso(zone.lastSyncedAt), lastError: error },
    dnssec: { status: 'off', ds: [] }, gatewayMode: zone.gatewayMode,
    recordCount: zone.recordCount, proxiedCount: zone.proxiedCount, recordLimit,
    createdAt: zone.createdAt.toISOString(), updatedAt: zone.updatedAt.toISOString(), activatedAt: iso(zone.activatedAt), expiresAt: iso(expiryOf(zone, days)),
    deletedAt: iso(zone.deletedAt), purgeAt: iso(zone.purgeAt),
  };
}

/** The TXT record that proves a claim whose delegation cannot (contract dns.md §1.1). */
export function verificationRecord(zone: Pick<ZoneRow, 'domain' | 'verifyToken'>): { type: 'TXT'; name: string; value: string } {
  return { type: 'TXT', name: `_holdfast-verify.${zone.domain}`, value: `holdfast-verify=${zone.verifyToken}` };
}

/** What nobody answers has nothing to publish. */
export function publishedVersionOf(zone: Pick<ZoneRow, 'served' | 'version' | 'ackedVersion'>): number {
  return zone.served ? Math.min(zone.version, zone.ackedVersion ?? 0) : zone.version;
}

/** Addresses to register for custom names inside the zone: those of our servers in their order. */
export function glueOf(zone: Pick<ZoneRow, 'domain' | 'mode' | 'customNameservers'>, platform: Platform): { name: string; ipv4: string[]; ipv6: string[] }[] {
  return ownNameservers(platform, zone).map(({ name, addresses }) => (
    { name, ipv4: addresses.filter((address) => !address.includes(':')), ipv6: addresses.filter((address) => address.includes(':')) }
  ));
}

/** `isGlue`: the address of a name server that a delegation names; such are never proxied. */
export function viewRecord(record: RecordRow, zone: ZoneRow, platform: Platform, isGlue: boolean): RecordView {
  const deleted = record.deletedAt !== null;
  return {
    id: record.id, zoneId: record.zoneId, type: record.type, name: record.name, fqdn: fqdnOf(record.name, zone.domain), value: record.value, ttl: record.ttl,
    priority: record.priority, proxied: record.proxied, proxiable: isProxiableName(record.type, record.name) && !isGlue, originProtocol: record.originProtocol,
    originPort: record.originPort, originPath: record.originPath, originHostHeader: record.originHostHeader, comment: record.comment, managed: record.managed,
    effective: effectiveRecord(factsOf(zone, platform), record, zone.served && !deleted), status: deleted ? 'deleted' : 'active', version: record.version,
    published: record.version <= publishedVersionOf(zone), createdAt: record.createdAt.toISOString(), updatedAt: record.updatedAt.toISOString(), deletedAt: iso(record.deletedAt),
  };
}

function expiryOf(zone: ZoneRow, days: ZoneShown['days']): Date | null {
  if (zone.deletedAt) return null;
  if (zone.status === 'pending') return new Date(zone.pendingSince.getTime() + days.pending * dayMs);
  return zone.status === 'moved' && zone.movedAt ? new Date(zone.movedAt.getTime() + days.moved * dayMs) : null;
}

function iso(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}
