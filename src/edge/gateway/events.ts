import { setTimeout as pause } from 'node:timers/promises';
import { isId } from '../../core/ids';
import { systemCode } from '../../core/files';
import type { Log } from '../../core/log';
import type { Decision, EventSink, FinishedRequest, RequestFacts } from '../../gateway/ports';
import type { EventBatch } from '../../gateway/store/batches';
import { EventRows } from './collapse';
import { BatchBuilder } from './event-batch';
import { Spool, spoolBytesMax } from './spool';

export interface EventsOptions {
  /** Of this worker; (instanceId, number) names a batch for ever. */
  readonly instanceId: string;
  /** Where batches wait while the database is away: nobody else uses it while this worker lives. */
  readonly directory: string;
  /** Directories of workers that are gone; what is in them is stored too. */
  readonly adopted?: readonly string[];
  /** Stores a batch once; rejects while the database is away. */
  readonly store: (batch: EventBatch) => Promise<unknown>;
  readonly log: Log;
  readonly now?: () => number;
  readonly flushMs?: number;
  readonly spoolBytesMax?: number;
  /** How long `close` waits for a database that is away. */
  readonly closeMs?: number;
}

export const flushMs = 250;
const rowsPerBatch = 500;
const retryMs = { first: 250, most: 2_000 };
const refusalsMax = 3;
const closeMs = 3_000;

/**
 * What happened to requests, on its way to the database (contract gateway.md §4.6): a batch every 250 ms or 500 rows. Never
 * waits and never throws; while the database is away batches go to disk and are stored in their order afterwards.
 */
export class Events implements EventSink {
  private readonly rows = new EventRows();
  private readonly spool: Spool;
  private builder = new BatchBuilder();
  /** Ids of rows that have left in batches, of this minute and the one before. */
  private sent: [Set<string>, Set<string>] = [new Set(), new Set()];
  private sentMinute = 0;
  private lastSeq = 0;
  private flushing: Promise<void> | null = null;
  private retryAtMs = 0;
  private waitMs = 0;
  private refusals = { seq: 0, count: 0 };
  private readonly timer: NodeJS.Timeout;
  private readonly now: () => number;

  private constructor(private readonly options: EventsOptions) {
    this.now = options.now ?? Date.now;
    this.spool = new Spool({
      directory: options.directory, bytesMax: options.spoolBytesMax ?? spoolBytesMax, log: options.log, onLost: (events, fromMs, toMs) => this.builder.lose(events, fromMs, toMs),
    });
    this.timer = setInterval(() => void this.tick(), options.flushMs ?? flushMs);
  }

  /** Takes up what was left behind, then counts. */
  static async open(options: EventsOptions): Promise<Events> {
    const events = new Events(options);
    await events.spool.load([options.directory, ...options.adopted ?? []]);
    events.lastSeq = events.spool.lastSeq;
    return events;
  }

  /** Batches that wait for the database, and their bytes. */
  get backlog(): { batches: number; bytes: number } {
    return { batches: this.spool.waiting, bytes: this.spool.bytes };
  }

  reserve(facts: RequestFacts, decision: Decision): string | null {
    return decision.outcome === 'clean' ? null : this.rows.choose(facts, decision, this.now());
  }

  record(request: FinishedRequest, eventId: string | null): void {
    try {
      const id = isId('gwe', eventId) && request.decision.outcome !== 'clean' ? eventId : request.decision.outcome === 'clean' ? null : this.rows.choose(request.facts, request.decision, this.now());
      this.builder.add(request, id, (row) => this.sent.some((ids) => ids.has(row)));
      if (this.builder.rowCount >= rowsPerBatch) void this.tick();
    } catch (error) {
      this.options.log.error({ err: error }, 'a request could not be counted');
    }
  }

  /** What is counted is stored, or on disk when the database is away or slow. Nothing may be recorded afterwards. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    this.seal();
    const end = performance.now() + (this.options.closeMs ?? closeMs);
    await this.flushWithin(retryMs.first);
    await this.spool.persist();
    while (this.spool.waiting > 0 && performance.now() < end) {
      await pause(retryMs.first);
      await this.flushWithin(end - performance.now());
    }
  }

  private async flushWithin(ms: number): Promise<void> {
    await Promise.race([this.flush(), pause(ms, undefined, { ref: false })]);
  }

  /** Never rejects. What the database did not take by the time of the next batch goes to disk. */
  private async tick(): Promise<void> {
    this.seal();
    if (this.flushing || this.now() < this.retryAtMs) await this.spool.persist();
    else await this.flush();
  }

  private seal(): void {
    if (this.builder.isEmpty) return;
    const minute = Math.floor(this.now() / 60_000);
    if (minute !== this.sentMinute) this.sent = [new Set(), this.sent[0]];
    this.sentMinute = minute;
    for (const id of this.builder.rowIds) this.sent[0].add(id);
    this.lastSeq = Math.max(this.now() * 1_000, this.lastSeq + 2); // two numbers: a pause divides a batch
    const batch = { instanceId: this.options.instanceId, seq: this.lastSeq, ...this.builder.build() };
    this.builder = new BatchBuilder();
    this.spool.push(batch, this.waitMs > 0);
  }

  /** One at a time: all that waits, in order, until the database refuses. */
  private flush(): Promise<void> {
    return (this.flushing ??= this.storeAll().finally(() => {
      this.flushing = null;
    }));
  }

  private async storeAll(): Promise<void> {
    for (let batch = await this.spool.head(); batch; batch = await this.spool.head()) {
      try {
        await this.options.store(batch);
      } catch (error) {
        return this.failed(batch.seq, error);
      }
      if (this.waitMs > 0) this.options.log.info({ waiting: this.spool.waiting }, 'gateway events are stored again');
      this.waitMs = this.retryAtMs = 0;
      await this.spool.done();
    }
  }

  private async failed(seq: number, error: unknown): Promise<void> {
    if (this.waitMs === 0) this.options.log.warn({ err: error }, 'gateway events wait for the database');
    this.waitMs = Math.min(retryMs.most, Math.max(retryMs.first, this.waitMs * 2));
    this.retryAtMs = this.now() + this.waitMs;
    // Classes 22 and 23: the data is at fault and will be for ever.
    if (/^2[23]/.test(systemCode(error) ?? '')) {
      this.refusals = this.refusals.seq === seq ? { seq, count: this.refusals.count + 1 } : { seq, count: 1 };
      if (this.refusals.count >= refusalsMax) {
        this.options.log.error({ err: error, seq }, 'the database refuses a batch of the gateway');
        this.refusals = { seq, count: 0 };
        await this.spool.refuse();
      }
    }
    await this.spool.persist();
  }
}
