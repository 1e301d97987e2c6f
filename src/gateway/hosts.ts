import { findZone, loadProxiedNames, loadProxyRoutes, requireZone, type ProxyRoute, type ZoneRow } from '../dns/service';
import type { GatewayDeps } from './deps';
import { certificateFor } from './rules/certificate-names';
import type { hostReasons } from './schemas';
import { listCertificates } from './store/certificates';
import { readOriginHealth, type OriginHealth } from './store/origins';
import { readHostRequests } from './store/summary';

export type HostView = {
  fqdn: string; recordIds: string[]; served: boolean; reason: (typeof hostReasons)[number] | null; certificateId: string | null;
  origins: { address: string; healthy: boolean; lastError: string | null; checkedAt: string | null }[]; requestsLastHour: number;
};

const certificatesMax = 1_000;

/** Every proxied name of a zone, sorted, with what the gateway makes of it. Errors: `not_found`. */
export async function listHosts({ db }: Pick<GatewayDeps, 'db'>, projectId: string, zoneId: string): Promise<HostView[]> {
  const zone = requireZone(await findZone(db.prisma, projectId, zoneId));
  const [names, routes, certificates, health, requests] = await Promise.all([
    loadProxiedNames(db.prisma, zone), loadProxyRoutes(db.prisma, zone.id), listCertificates(db.prisma, zone.id, { after: null, limit: certificatesMax }),
    readOriginHealth(db.prisma, zone.id), readHostRequests(db.prisma, zone.id),
  ]);
  const served = new Set(routes.map(({ hostname }) => hostname));
  const counts = new Map(requests.map(({ host, requests: count }) => [host, count]));
  return names.map((route) => ({
    fqdn: route.hostname, recordIds: route.origins.map(({ recordId }) => recordId), served: served.has(route.hostname), reason: reasonOf(zone, route, served),
    certificateId: certificateFor(certificates, route.hostname)?.id ?? null, origins: originsOf(route, health), requestsLastHour: counts.get(route.hostname) ?? 0,
  }));
}

function reasonOf(zone: ZoneRow, { hostname }: ProxyRoute, served: ReadonlySet<string>): HostView['reason'] {
  if (served.has(hostname)) return null;
  if (zone.status === 'pending') return 'zone_pending';
  return served.size === 0 ? 'zone_not_held' : 'zone_below';
}

/** What the workers have found; an origin nobody has asked yet counts as healthy. */
function originsOf(route: ProxyRoute, health: readonly OriginHealth[]): HostView['origins'] {
  const found = health.filter(({ hostname }) => hostname === route.hostname);
  const asked = found.map(({ address, healthy, lastError, checkedAt }) => ({ address, healthy, lastError, checkedAt: checkedAt.toISOString() }));
  const unasked = [...new Set(route.origins.map(({ value }) => value))].filter((value) => !asked.some(({ address }) => address === value));
  return [...asked, ...unasked.map((address) => ({ address, healthy: true, lastError: null, checkedAt: null }))];
}
