/**
 * What other products call (contract dns.md §6.2), inside their own transactions where they take `tx`.
 */
export { requestDeletion, suspendForPayment, resumeFromPayment } from './zones';
export { ensureManagedRecords, findHostedZone, removeManagedRecords } from './managed';
export { findRecordsPointingAt } from './store/managed';
export { countZones, findZone, knownZoneIds, loadZone, type ZoneRow } from './store/zones';
export { requireVersion, requireWritable, requireZone } from './faults';
export { ensureChecked } from './checks';
export { endSync, ensurePublished, ensureSynced } from './sync';
export { listDrifted } from './drift';
export { startSyncRelay, type StartSync } from './sync-relay';
export { applyRetention, purgeZone, removeZoneContent, type Retained } from './retention';
export { followPlatform } from './platform-change';
export type { DnsDeps } from './deps';
export { notifyServers, readServers } from './store/sync';
export { startFlattening } from './flattening';
export { ensureChallenge, removeChallenge } from './challenges';
export { loadProxiedNames, loadProxyRoutes, loadProxyZone } from './proxying';
export { listProxyVersions } from './store/routes';
export type { ProxyOrigin, ProxyRoute } from './rules/proxy-routes';
