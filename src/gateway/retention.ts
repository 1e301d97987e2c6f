import { limit } from '../billing/service';
import type { Database } from '../db/client';
import { listZoneOwners } from './store/batches';

const keptMs = 60_000;
const zonesMax = 10_000;
/** Events are kept in one of these classes of days; the partitions are made for them. */
const classes = [1, 7, 30] as const;

/**
 * How many days events of these zones are kept: what the organisation's plan says, at most a minute old. A zone that is gone is
 * not in the answer.
 */
export function createRetentionOf(db: Database, nowMs: () => number = Date.now): (zoneIds: readonly string[]) => Promise<ReadonlyMap<string, number>> {
  const known = new Map<string, { days: number; untilMs: number }>();
  return async (zoneIds) => {
    const unknown = zoneIds.filter((zoneId) => (known.get(zoneId)?.untilMs ?? 0) <= nowMs());
    const owners = unknown.length === 0 ? [] : await listZoneOwners(db.prisma, unknown);
    const days = new Map<string, number>();
    for (const orgId of new Set(owners.map((owner) => owner.orgId))) {
      const given = await limit(db.prisma, { orgId }, 'gateway.event_retention_days') ?? 30;
      days.set(orgId, classes.find((kept) => kept >= given) ?? 30);
    }
    if (known.size > zonesMax) known.clear();
    for (const { zoneId, orgId } of owners) known.set(zoneId, { days: days.get(orgId) ?? 1, untilMs: nowMs() + keptMs });
    return new Map(zoneIds.flatMap((zoneId) => {
      const found = known.get(zoneId);
      return found ? [[zoneId, found.days] as const] : [];
    }));
  };
}
