import type { Db } from '../db/client';
import { proxyRoutes, type ProxyRoute } from './rules/proxy-routes';
import { findRoutedDomain, listHeldBelow, readRouteRecords, readZoneVersion } from './store/routes';

/**
 * The names for which DNS may answer the gateway's addresses, each with its origins; none while the zone is pending, deleted
 * or held by another claim. A name of a zone below belongs to that zone. Announced on the channel `dns_zone`.
 */
export async function loadProxyRoutes(db: Db, zoneId: string): Promise<ProxyRoute[]> {
  const domain = await findRoutedDomain(db, zoneId);
  if (domain === null) return [];
  const [records, heldBelow] = await Promise.all([readRouteRecords(db, zoneId), listHeldBelow(db, domain)]);
  return proxyRoutes(domain, records, heldBelow);
}

/**
 * A zone as the gateway serves it, with the version its routes are at least of; null when nobody is led there. What changes after
 * the version was read is announced once more.
 */
export async function loadProxyZone(db: Db, zoneId: string): Promise<{ domain: string; version: number; routes: ProxyRoute[] } | null> {
  const zone = await readZoneVersion(db, zoneId);
  if (!zone) return null;
  const routes = await loadProxyRoutes(db, zoneId);
  return routes.length > 0 ? { ...zone, routes } : null;
}

/** Every proxied name of a zone, whoever answers for it. */
export async function loadProxiedNames(db: Db, zone: { id: string; domain: string }): Promise<ProxyRoute[]> {
  return proxyRoutes(zone.domain, await readRouteRecords(db, zone.id), []);
}
