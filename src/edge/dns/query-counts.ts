import type { ZoneChangeSet } from '../../dns/ports';

type ZoneId = NonNullable<ZoneChangeSet['zoneId']>;
export type QueryCounter = { queries: number; loaded: boolean };

/** Queries per zone since they were last taken. A zone that is no longer served is told once more, then forgotten. */
export class QueryCounts {
  private readonly counters = new Map<ZoneId, QueryCounter>();

  /** The counter a loaded zone counts on; zones of the platform count for nobody. */
  load(zoneId: ZoneChangeSet['zoneId']): QueryCounter {
    const counter = (zoneId && this.counters.get(zoneId)) ?? { queries: 0, loaded: true };
    counter.loaded = true;
    if (zoneId) this.counters.set(zoneId, counter);
    return counter;
  }

  /** Counts that another process of the server has taken. */
  add(taken: readonly { zoneId: ZoneId; queries: number }[]): void {
    for (const { zoneId, queries } of taken) {
      const counter = this.counters.get(zoneId) ?? { queries: 0, loaded: false };
      counter.queries += queries;
      this.counters.set(zoneId, counter);
    }
  }

  /** Counts since the last call; taken every minute they are the counts per zone and minute. */
  take(): { zoneId: ZoneId; queries: number }[] {
    const taken: { zoneId: ZoneId; queries: number }[] = [];
    for (const [zoneId, counter] of this.counters) {
      if (counter.queries > 0) taken.push({ zoneId, queries: counter.queries });
      counter.queries = 0;
      if (!counter.loaded) this.counters.delete(zoneId);
    }
    return taken;
  }
}
