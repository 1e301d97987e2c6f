import { findZone, requireZone } from '../dns/service';
import type { GatewayDeps } from './deps';
import { summaryWindow } from './rules/buckets';
import { summarise } from './rules/summary';
import type { SummaryView } from './schemas';
import { hasLostEvents, readCounts, readTops, type TopRow } from './store/summary';

const topMax = 10;

/** Requests of a zone over the last hours. Errors: `not_found`. */
export async function readSummary(deps: Pick<GatewayDeps, 'db' | 'clock'>, projectId: string, zoneId: string, hours: number): Promise<SummaryView> {
  const zone = requireZone(await findZone(deps.db.prisma, projectId, zoneId));
  const window = summaryWindow(hours, deps.clock.now().getTime());
  const [from, to] = [new Date(window.fromMs), new Date(window.toMs)];
  const [counts, { tops, truncated }, lost] = await Promise.all([
    readCounts(deps.db, { zoneId: zone.id, from, to, bucketSeconds: window.bucketSeconds }), readTops(deps.db, { zoneId: zone.id, from, to }), hasLostEvents(deps.db.prisma, from, to),
  ]);
  return {
    hours, from: from.toISOString(), to: to.toISOString(), bucketSeconds: window.bucketSeconds, ...summarise(window, counts),
    topRules: topsOf(tops, 'rule'), topIps: topsOf(tops, 'ip'), topPaths: topsOf(tops, 'path'), topCountries: topsOf(tops, 'country'), topUserAgents: topsOf(tops, 'user_agent'),
    estimated: truncated || lost,
  };
}

function topsOf(tops: readonly TopRow[], dimension: string): SummaryView['topRules'] {
  return tops.filter((top) => top.dimension === dimension).slice(0, topMax)
    .map(({ key, name, country, asn, count, lastSeenAt }) => ({ key, name, country, asn, count, lastSeenAt: lastSeenAt.toISOString() }));
}
