import type { DnsDeps } from './deps';
import { requiredElsewhere } from './external';
import type { Observation } from './observation';
import type { ZoneRow } from './store/zones';
import type { SyncReport } from './sync-report';
import { publishedVersionOf } from './view';

type ReportDeps = Pick<DnsDeps, 'db' | 'dnsPlatform'>;
type Outcome = Pick<SyncReport, 'status' | 'dryRun' | 'durationMs'>;

/** What was found to differ and what became of it. `before`: as it was found; `now`: as it is left. */
export async function reportOf(deps: ReportDeps, before: Observation, now: Observation, { status, dryRun, durationMs }: Outcome): Promise<SyncReport> {
  const { create, update, delete: gone } = before.changes;
  const { zone, wanted } = now;
  return {
    status, dryRun, cached: false, drift: !before.inSync, changes: before.changes, counts: { create: create.length, update: update.length, delete: gone.length },
    required: await requiredElsewhere(deps, zone), versionBefore: before.inSync ? before.wanted.version : Math.min(before.wanted.version, publishedVersionOf(before.zone)), versionAfter: wanted.version,
    serial: wanted.serial, servers: now.servers, durationMs,
  };
}

/** Of a zone whose servers could not be looked at. */
export async function unreachedReport(deps: ReportDeps, zone: ZoneRow, { status, dryRun, durationMs }: Outcome): Promise<SyncReport> {
  const published = publishedVersionOf(zone);
  return {
    status, dryRun, cached: false, drift: published < zone.version, changes: { create: [], update: [], delete: [] }, counts: { create: 0, update: 0, delete: 0 },
    required: await requiredElsewhere(deps, zone), versionBefore: published, versionAfter: zone.version, serial: zone.serial, servers: [], durationMs,
  };
}
