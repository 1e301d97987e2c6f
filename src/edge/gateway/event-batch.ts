import { timeOfId, type Id } from '../../core/ids';
import type { FinishedRequest } from '../../gateway/ports';
import { topKeysMax, type BatchCounts, type BatchDetails, type EventRaise, type EventRecord, type MinuteCount, type TopCount } from '../../gateway/store/batches';
import { eventRecord, topKeys } from './event-record';

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** What is counted between two batches. Every request is counted once; the rows are of those that are not clean. */
export class BatchBuilder {
  private requests = 0;
  private eventsLost = 0;
  private firstMs = Infinity;
  private lastMs = -Infinity;
  private readonly minutes = new Map<string, MinuteCount>();
  private readonly tops = new Map<string, TopCount>();
  private readonly rows = new Map<string, EventRecord>();
  private readonly raises = new Map<string, EventRaise>();

  get isEmpty(): boolean {
    return this.requests === 0 && this.eventsLost === 0;
  }

  get rowCount(): number {
    return this.rows.size;
  }

  get rowIds(): IterableIterator<string> {
    return this.rows.keys();
  }

  /** `isStored`: whether a row of this id was handed out in an earlier batch. */
  add(request: FinishedRequest, eventId: Id<'gwe'> | null, isStored: (id: string) => boolean): void {
    const { facts, decision, bytesIn } = request;
    this.requests += 1;
    this.span(facts.receivedAt, facts.receivedAt);
    const source = decision.outcome === 'clean' ? '' : decision.source ?? 'protocol';
    const minute = facts.receivedAt - (facts.receivedAt % minuteMs);
    const place = `${facts.zoneId} ${minute} ${decision.outcome} ${source}`;
    const count = this.minutes.get(place);
    if (count) Object.assign(count, { requests: count.requests + 1, bytes: count.bytes + bytesIn });
    else this.minutes.set(place, { zone_id: facts.zoneId, minute: new Date(minute).toISOString(), outcome: decision.outcome, source, requests: 1, bytes: bytesIn });
    this.top(request, 'host', facts.host);
    if (eventId === null) return;
    for (const [dimension, key] of topKeys(request)) if (key !== null && key !== '') this.top(request, dimension, key);
    this.event(request, eventId, isStored);
  }

  /** Details of so many requests between two instants were given up. */
  lose(events: number, fromMs: number, toMs: number): void {
    this.eventsLost += events;
    this.span(fromMs, toMs);
  }

  build(): { counts: BatchCounts; details: BatchDetails } {
    return {
      counts: {
        requests: this.requests, eventsLost: this.eventsLost, firstAt: new Date(this.firstMs).toISOString(), lastAt: new Date(this.lastMs).toISOString(), minutes: [...this.minutes.values()], tops: [...this.tops.values()],
      },
      details: { rows: [...this.rows.values()], raises: [...this.raises.values()] },
    };
  }

  private span(fromMs: number, toMs: number): void {
    this.firstMs = Math.min(this.firstMs, fromMs);
    this.lastMs = Math.max(this.lastMs, toMs);
  }

  private event(request: FinishedRequest, id: Id<'gwe'>, isStored: (id: string) => boolean): void {
    const row = this.rows.get(id) ?? this.raises.get(id);
    const updatedAt = new Date(request.facts.receivedAt).toISOString();
    if (row) Object.assign(row, { count: row.count + 1, updated_at: row.updated_at > updatedAt ? row.updated_at : updatedAt });
    else if (isStored(id)) this.raises.set(id, { id, zone_id: request.facts.zoneId, created_at: timeOfId(id).toISOString(), updated_at: updatedAt, count: 1 });
    else this.rows.set(id, eventRecord(request, id));
  }

  private top({ facts, decision }: FinishedRequest, dimension: string, key: string): void {
    const hour = facts.receivedAt - (facts.receivedAt % hourMs);
    const place = `${facts.zoneId} ${hour} ${dimension} ${key}`;
    const count = this.tops.get(place);
    const seen = new Date(facts.receivedAt).toISOString();
    if (count) {
      count.requests += 1;
      if (seen > count.last_seen_at) count.last_seen_at = seen;
      return;
    }
    const isIp = dimension === 'ip';
    this.tops.set(place, {
      zone_id: facts.zoneId, hour: new Date(hour).toISOString(), dimension, key, name: dimension === 'rule' ? decision.ruleName : null,
      country: isIp ? facts.country : null, asn: isIp ? facts.asn : null, requests: 1, last_seen_at: seen,
    });
  }
}

/** The sum of counts, with at most 200 keys of a zone, hour and dimension: the others are added up under ''. */
export function mergeCounts(all: readonly BatchCounts[]): BatchCounts {
  const minutes = new Map<string, MinuteCount>();
  const tops = new Map<string, TopCount>();
  const keys = new Map<string, number>();
  for (const { minutes: given } of all) for (const count of given) {
    const place = `${count.zone_id} ${count.minute} ${count.outcome} ${count.source}`;
    const sum = minutes.get(place);
    minutes.set(place, sum ? { ...sum, requests: sum.requests + count.requests, bytes: sum.bytes + count.bytes } : count);
  }
  for (const { tops: given } of all) for (const count of given) {
    const group = `${count.zone_id} ${count.hour} ${count.dimension}`;
    const held = keys.get(group) ?? 0;
    const isKnown = tops.has(`${group} ${count.key}`);
    const kept = isKnown || count.key === '' || held < topKeysMax ? count : { ...count, key: '', name: null, country: null, asn: null };
    if (!isKnown && kept.key !== '') keys.set(group, held + 1);
    const sum = tops.get(`${group} ${kept.key}`);
    tops.set(`${group} ${kept.key}`, sum ? { ...sum, requests: sum.requests + kept.requests, last_seen_at: sum.last_seen_at > kept.last_seen_at ? sum.last_seen_at : kept.last_seen_at } : kept);
  }
  return {
    requests: sum(all, 'requests'), eventsLost: sum(all, 'eventsLost'), firstAt: ends(all, 'firstAt').at(0) ?? null, lastAt: ends(all, 'lastAt').at(-1) ?? null,
    minutes: [...minutes.values()], tops: [...tops.values()],
  };
}

function sum(all: readonly BatchCounts[], member: 'requests' | 'eventsLost'): number {
  return all.reduce((total, counts) => total + counts[member], 0);
}

function ends(all: readonly BatchCounts[], member: 'firstAt' | 'lastAt'): string[] {
  return all.flatMap((counts) => counts[member] ?? []).sort();
}
