import type { Log } from '../../core/log';

/** What billing stores of a zone's queries in a minute (contract billing.md §1): nothing is priced, and a repeat changes nothing. */
export type QueryFact = { source: string; key: string; metric: 'dns.queries'; orgId: string; resourceId: string; quantity: string; occurredAt: Date };

export type QueryUsageOptions = {
  serverId: string;
  /** Of this run of the server: a later one counts under keys of its own. */
  boot: string;
  takeCounts: () => { zoneId: string; queries: number }[];
  ownersOf: (zoneIds: readonly string[]) => Promise<{ zoneId: string; orgId: string }[]>;
  store: (facts: readonly QueryFact[]) => Promise<unknown>;
  nowMs: () => number;
  log: Log;
};

type Count = { zoneId: string; queries: number; minuteMs: number };

const minuteMs = 60_000;
const factsPerStore = 1_000;
/** About a day of a thousand zones; beyond it the oldest are given up. */
const waitingMax = 1_500_000;

/** Tells billing how often each zone was asked in each minute. While the database is away the counts wait here. */
export class QueryUsage {
  private readonly waiting: Count[] = [];
  private timer: NodeJS.Timeout | undefined;
  private telling: Promise<void> = Promise.resolve();
  private minute: number;

  constructor(private readonly options: QueryUsageOptions) {
    this.minute = this.minuteNow();
    this.schedule();
  }

  /** The running minute is told too. */
  async close(): Promise<void> {
    clearTimeout(this.timer);
    await this.tell();
  }

  /** Takes what was counted since the last time, as of the minute that has ended, and stores all that waits. */
  tell(): Promise<void> {
    const { takeCounts, log } = this.options;
    this.waiting.push(...takeCounts().map((count) => ({ ...count, minuteMs: this.minute })));
    this.minute = this.minuteNow();
    this.telling = this.telling.then(() => this.storeAll()).catch((error: unknown) => log.debug({ err: error }, 'query counts wait for the database'));
    return this.telling;
  }

  private schedule(): void {
    this.timer = setTimeout(() => {
      // A timer may be early, a clock set back: then the minute is still running.
      if (this.minuteNow() > this.minute) void this.tell();
      this.schedule();
    }, minuteMs - (this.options.nowMs() % minuteMs));
    this.timer.unref();
  }

  private minuteNow(): number {
    return Math.floor(this.options.nowMs() / minuteMs) * minuteMs;
  }

  private async storeAll(): Promise<void> {
    this.waiting.splice(0, Math.max(0, this.waiting.length - waitingMax));
    while (this.waiting.length > 0) {
      const batch = this.waiting.slice(0, factsPerStore);
      const owners = new Map((await this.options.ownersOf([...new Set(batch.map(({ zoneId }) => zoneId))])).map(({ zoneId, orgId }) => [zoneId, orgId]));
      await this.options.store(batch.flatMap((count) => this.factOf(count, owners.get(count.zoneId))));
      this.waiting.splice(0, batch.length);
    }
  }

  private factOf({ zoneId, queries, minuteMs: at }: Count, orgId: string | undefined): QueryFact[] {
    if (orgId === undefined) return [];
    const { serverId, boot } = this.options;
    const occurredAt = new Date(at);
    return [{ source: 'dns', key: `dns:${serverId}:${boot}:${zoneId}:${occurredAt.toISOString().slice(0, 16)}`, metric: 'dns.queries', orgId, resourceId: orgId, quantity: String(queries), occurredAt }];
  }
}
