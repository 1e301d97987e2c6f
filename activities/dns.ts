import { heartbeat } from '@temporalio/activity';
import { TryLater } from '../src/core/job-errors';
import type { Log } from '../src/core/log';
import { applyRetention, endSync, ensureChecked, ensurePublished, listDrifted, purgeZone, removeZoneContent, type DnsDeps, type Retained, type StartSync } from '../src/dns/service';

export type DnsActivityDeps = Pick<DnsDeps, 'db' | 'clock' | 'dnsPlatform' | 'dnsResolver' | 'dnsBackend' | 'config'> & { log: Log; startSync: StartSync };
export type DnsActivities = ReturnType<typeof createDnsActivities>;
export type ZoneRun = { zoneId: string };

/** A report this young is not asked for again: the request that woke the run has just written it. */
const freshSeconds = 30;
/** Between two checks of a zone whose next one is overdue. */
const pauseMinMs = 10_000;
/** Waiting for somebody else's check, within the 20 s of the activity. */
const budgetMs = 8_000;
/** Of one attempt to publish, within its 30 s. */
const publishMs = 20_000;

/** Activities on the queue `dns`. */
export function createDnsActivities(deps: DnsActivityDeps) {
  return {
    /** The zone has been checked; `delayMs` to the next check, null when the zone is deleted. Errors: TryLater while another check lasts. */
    async ensureZoneChecked({ zoneId }: ZoneRun): Promise<{ delayMs: number | null; status: string | null }> {
      heartbeat();
      const outcome = await ensureChecked(deps, zoneId, { freshSeconds, budgetMs });
      if (outcome === 'busy') throw new TryLater('Another check of the zone has not ended.', { expected: true });
      if (outcome === 'gone' || outcome.zone.deletedAt) return { delayMs: null, status: null };
      const { nextCheckAt, status } = outcome.zone;
      return { delayMs: nextCheckAt ? Math.max(pauseMinMs, nextCheckAt.getTime() - deps.clock.now().getTime()) : null, status };
    },

    /** A deleted zone is served nowhere, and nothing of it is left but its row. Errors: TryLater while a server answers for it. */
    async ensureZoneRemoved({ zoneId }: ZoneRun): Promise<void> {
      await removeZoneContent(deps, zoneId, () => heartbeat());
    },

    /** The zone is 404 for good. */
    async markZonePurged({ zoneId }: ZoneRun): Promise<void> {
      await purgeZone(deps, zoneId);
    },

    /** Deleted records and change sets are gone after their time. */
    async purgeDnsHistory(): Promise<Retained> {
      return applyRetention(deps, () => heartbeat());
    },

    ...createSyncActivities(deps),
  };
}

/** What makes those who answer for zones answer what the zones hold. */
function createSyncActivities(deps: DnsActivityDeps) {
  return {
    /** Whoever answers for the zone has its version, or the guard against mass changes stands between. Errors: TryLater while somebody is behind, or none is there; AppError when the zone is refused. */
    async ensureZonePublished({ zoneId }: ZoneRun): Promise<{ version: number | null }> {
      const beat = setInterval(() => heartbeat(), 3_000);
      try {
        const synced = await ensurePublished(deps, zoneId, { budgetMs: publishMs, freshSeconds });
        if (!synced) await endSync(deps, zoneId, null);
        else if (synced.report.status === 'partial') throw new TryLater('A name server is behind.', { expected: true });
        return { version: synced ? synced.report.versionAfter : null };
      } finally {
        clearInterval(beat);
      }
    },

    /** Nobody waits for it any longer; reconcile starts anew. */
    async markSyncFailed({ zoneId }: ZoneRun): Promise<void> {
      await endSync(deps, zoneId, { code: 'backend_error', message: 'Not every name server has taken the zone.' });
    },

    /** Served zones of one page that are answered otherwise than they are here. */
    async listDriftedZones({ after }: { after: string }): Promise<{ drifted: string[]; next: string | null }> {
      return listDrifted(deps, after, () => heartbeat());
    },

    /** The workflows of these zones have been told to publish them. */
    async requestZoneSyncs({ zoneIds }: { zoneIds: string[] }): Promise<void> {
      for (const zoneId of zoneIds) {
        heartbeat();
        await deps.startSync(zoneId);
      }
    },
  };
}
