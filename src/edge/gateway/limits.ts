/** What a limit allows (contract gateway.md §4.1). */
export type Allowance = { readonly requests: number; readonly periodSeconds: number; readonly durationSeconds: number };
/** Requests one worker counted of a key in a window; windows are numbered from the epoch. */
export type LimitDelta = { readonly zoneId: string; readonly key: string; readonly periodMs: number; readonly window: number; count: number };
export type LimitPenalty = { readonly zoneId: string; readonly key: string; readonly periodMs: number; readonly untilMs: number };

type Counter = { window: number; current: number; previous: number; penaltyUntilMs: number; periodMs: number };

export const keysPerZone = 10_000;
const sweptPerZone = 1_000;

/**
 * Sliding windows of two counters per key: the running window plus the share of the one before that the period still covers.
 * Refused requests are not counted, so that what is let through is at most what the limit allows. At most 10,000 keys per
 * zone; the least recently used goes first. Counts of other workers are merged in.
 */
export class RateLimits {
  private readonly zones = new Map<string, Map<string, Counter>>();
  private deltas = new Map<string, LimitDelta>();
  /** Told of every penalty at once, so that other workers know it too. */
  onPenalty: (penalty: LimitPenalty) => void = () => undefined;

  /** `shared`: others count too, so that deltas are kept for them. */
  constructor(private readonly options: { shared: boolean } = { shared: false }) {}

  /** Seconds until this key may ask again; null when it may now. What exceeds the limit begins its penalty. */
  excess(zoneId: string, key: string, limit: Allowance, nowMs: number): number | null {
    const counter = this.counter(zoneId, key, limit.periodSeconds * 1_000, nowMs);
    if (counter.penaltyUntilMs > nowMs) return secondsUntil(counter.penaltyUntilMs - nowMs);
    if (estimate(counter, nowMs) + 1 <= limit.requests) return null;
    if (limit.durationSeconds === 0) return secondsUntil(waitMs(counter, limit.requests, nowMs));
    counter.penaltyUntilMs = nowMs + limit.durationSeconds * 1_000;
    this.onPenalty({ zoneId, key, periodMs: counter.periodMs, untilMs: counter.penaltyUntilMs });
    return limit.durationSeconds;
  }

  count(zoneId: string, key: string, limit: Allowance, nowMs: number): void {
    const periodMs = limit.periodSeconds * 1_000;
    const counter = this.counter(zoneId, key, periodMs, nowMs);
    counter.current += 1;
    if (!this.options.shared) return;
    const name = `${zoneId} ${counter.window} ${key}`;
    const delta = this.deltas.get(name);
    if (delta) delta.count += 1;
    else this.deltas.set(name, { zoneId, key, periodMs, window: counter.window, count: 1 });
  }

  /** What this worker counted since the last time. */
  takeDeltas(): LimitDelta[] {
    const taken = [...this.deltas.values()];
    this.deltas = new Map();
    return taken;
  }

  /** Adds what another worker counted. */
  merge(deltas: readonly LimitDelta[]): void {
    for (const { zoneId, key, periodMs, window, count } of deltas) {
      const counter = this.counter(zoneId, key, periodMs, window * periodMs);
      if (window === counter.window) counter.current += count;
      else if (window === counter.window - 1) counter.previous += count;
    }
  }

  /** Takes over a penalty of another worker. */
  penalise({ zoneId, key, periodMs, untilMs }: LimitPenalty, nowMs: number): void {
    const counter = this.counter(zoneId, key, periodMs, nowMs);
    counter.penaltyUntilMs = Math.max(counter.penaltyUntilMs, untilMs);
  }

  /** Forgets what counts no more, oldest first. Call it every few seconds. */
  sweep(nowMs: number): void {
    for (const [zoneId, keys] of this.zones) {
      let seen = 0;
      for (const [key, counter] of keys) {
        if (++seen > sweptPerZone) break;
        if (counter.penaltyUntilMs <= nowMs && (counter.window + 2) * counter.periodMs <= nowMs) keys.delete(key);
      }
      if (keys.size === 0) this.zones.delete(zoneId);
    }
  }

  /** How many keys are held of a zone. */
  size(zoneId: string): number {
    return this.zones.get(zoneId)?.size ?? 0;
  }

  /** The counter of a key in the window of this instant; the most recently used from now on. A clock set back stays in its window. */
  private counter(zoneId: string, key: string, periodMs: number, nowMs: number): Counter {
    const keys = this.zones.get(zoneId) ?? new Map<string, Counter>();
    if (keys.size === 0) this.zones.set(zoneId, keys);
    const window = Math.floor(nowMs / periodMs);
    let counter = keys.get(key);
    if (counter) keys.delete(key);
    else counter = { window, current: 0, previous: 0, penaltyUntilMs: 0, periodMs };
    keys.set(key, counter);
    if (keys.size > keysPerZone) for (const oldest of keys.keys()) {
      keys.delete(oldest);
      break;
    }
    if (counter.periodMs !== periodMs) Object.assign(counter, { window, current: 0, previous: 0, periodMs });
    if (window > counter.window) {
      counter.previous = window === counter.window + 1 ? counter.current : 0;
      counter.current = 0;
      counter.window = window;
    }
    return counter;
  }
}

function estimate({ window, current, previous, periodMs }: Counter, nowMs: number): number {
  const elapsed = Math.min(Math.max(nowMs - window * periodMs, 0), periodMs) / periodMs;
  return current + previous * (1 - elapsed);
}

/** Until one more request fits: in this window while the one before fades, else in the next. */
function waitMs(counter: Counter, requests: number, nowMs: number): number {
  const { window, current, previous, periodMs } = counter;
  const room = requests - 1;
  const elapsedMs = nowMs - window * periodMs;
  if (current <= room) return previous === 0 ? 0 : periodMs * (1 - (room - current) / previous) - elapsedMs;
  return periodMs - elapsedMs + Math.max(0, periodMs * (1 - room / current));
}

function secondsUntil(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1_000 - 1e-6)); // without the dust of floating point
}
