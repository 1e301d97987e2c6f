import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../core/log';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import type { ApplyOutcome, ZoneChangeSet, ZoneFeed } from '../../dns/ports';
import { changeSetOf } from '../../dns/rules/change-set';
import type { Platform } from '../../dns/rules/platform';
import { acknowledge, beat, listBehind, readServed, readZone, registerServer, unregisterServer, type ZoneReading } from '../../dns/store/feed';
import { PlatformZones } from './platform-zones';

export type FeedOptions = {
  db: Database; listener: Listener; platform: Platform; serverId: string; addresses: readonly string[]; pollMs: number; log: Log;
  /** Zones to begin with while the database is away; null when nothing is kept. */
  remembered?: () => Promise<readonly ZoneChangeSet[] | null>;
};
type Apply = (changes: ZoneChangeSet) => ApplyOutcome;
type Known = { zoneId: NonNullable<ZoneChangeSet['zoneId']>; version: number; domain: string };

const heartbeatMs = 5_000;
const ackDelayMs = 20;
const recordsPerPage = 20_000;
const retryMs = 1_000;

/**
 * The zones of the database (contract dns.md §6.3): everything at start, then each version as it is committed, heard by
 * NOTIFY and looked for every `pollMs`. While the database is away the server keeps what it has.
 */
export class DatabaseFeed implements ZoneFeed {
  private readonly known = new Map<string, Known>();
  private readonly busy = new Map<string, Promise<void>>();
  private readonly again = new Set<string>();
  private readonly unacked = new Map<string, number | null>();
  private readonly ends: (() => void)[] = [];
  private readonly platformZones: PlatformZones;
  private ackTimer: NodeJS.Timeout | undefined;
  private apply: Apply = () => 'stale';
  private settled: () => Promise<void> = () => Promise.resolve();
  private startedAt: Date | null = null;
  private stopped = false;

  constructor(private readonly options: FeedOptions) {
    this.platformZones = new PlatformZones(options.platform);
  }

  /** Resolves when every zone is there: from the database, or as they are remembered while it is away. Without both it waits for the database. */
  async start(apply: Apply, settled: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    this.apply = apply;
    this.settled = settled;
    try {
      await this.begin();
    } catch (error) {
      const zones = await this.options.remembered?.() ?? null;
      this.options.log.warn({ err: error, remembered: zones?.length ?? null }, 'the database is away at the start of a name server');
      for (const changes of zones ?? []) this.recall(changes);
      const begun = this.beginLater();
      if (zones === null) await begun;
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    for (const end of this.ends) end();
    clearTimeout(this.ackTimer);
    await Promise.allSettled(this.busy.values());
    if (this.startedAt) await unregisterServer(this.options.db.prisma, this.options.serverId, this.startedAt).catch(() => undefined);
  }

  /** Loads everything and goes on with changes. Errors: the database is away; then nothing goes on. */
  private async begin(): Promise<void> {
    const { db, listener, serverId, addresses, pollMs } = this.options;
    this.startedAt = await registerServer(db.prisma, serverId, addresses);
    await this.loadAll();
    if (this.stopped) return;
    this.ends.push(listener.listen('dns_zone', (payload) => this.heard(payload)));
    this.every(pollMs, () => this.catchUp());
    this.every(heartbeatMs, () => this.beat());
  }

  /** Whoever has removed our row has taken us for gone: we say again that we are here, and what we have. */
  private async beat(): Promise<void> {
    const { db, serverId, addresses } = this.options;
    if (await beat(db.prisma, serverId)) return;
    this.startedAt = await registerServer(db.prisma, serverId, addresses);
    for (const [zoneId, { version }] of this.known) this.ack(zoneId, version);
  }

  private async beginLater(): Promise<void> {
    while (!this.stopped) {
      await pause(retryMs, undefined, { ref: false });
      try {
        return await this.begin();
      } catch (error) {
        this.options.log.debug({ err: error }, 'the database is still away');
      }
    }
  }

  /** The next page is read while this one is taken. */
  private async loadAll(): Promise<void> {
    const { db } = this.options;
    await this.platformZones.refresh(db.prisma, this.apply);
    const gone = new Set(this.known.keys());
    for (let page = await readServed(db, '', recordsPerPage); page.length > 0 && !this.stopped;) {
      const next = readServed(db, page.at(-1)?.zone.zoneId ?? '', recordsPerPage);
      for (const { zone, records } of page) {
        this.take(zone.zoneId, { kind: 'full', zone, records });
        gone.delete(zone.zoneId);
      }
      page = await next;
    }
    for (const zoneId of gone) await this.refresh(zoneId);
  }

  private recall(changes: ZoneChangeSet): void {
    if (this.apply(changes) !== 'applied') return;
    if (changes.zoneId) this.known.set(changes.zoneId, { zoneId: changes.zoneId, version: changes.version, domain: changes.domain });
    else this.platformZones.recall(changes.version);
  }

  private every(ms: number, run: () => Promise<void>): void {
    let running = false;
    const timer = setInterval(() => {
      if (running) return;
      running = true;
      run().catch((error: unknown) => this.options.log.debug({ err: error }, 'the database is away; zones stay as they are')).finally(() => {
        running = false;
      });
    }, ms);
    this.ends.push(() => clearInterval(timer));
  }

  private heard(payload: string | null): void {
    if (payload === null) void this.catchUp().catch(() => undefined);
    else void this.refresh(payload.split(':', 1)[0] ?? '');
  }

  private async catchUp(): Promise<void> {
    const behind = await listBehind(this.options.db.prisma, this.options.serverId);
    for (const { id } of behind) await this.refresh(id);
    await this.platformZones.refresh(this.options.db.prisma, this.apply);
  }

  /** One reading at a time per zone; what is heard meanwhile is read afterwards, once. */
  private refresh(zoneId: string): Promise<void> {
    const running = this.busy.get(zoneId);
    if (running) {
      this.again.add(zoneId);
      return running;
    }
    const reading = this.read(zoneId)
      .catch((error: unknown) => this.options.log.warn({ err: error, zoneId }, 'a zone could not be read; the next poll tries again'))
      .finally(() => {
        this.busy.delete(zoneId);
        if (this.again.delete(zoneId) && !this.stopped) void this.refresh(zoneId);
      });
    this.busy.set(zoneId, reading);
    return reading;
  }

  /** A zone heard of for the first time has names of its own below our suffix: they are there before it is. */
  private async read(zoneId: string): Promise<void> {
    const { db } = this.options;
    const known = this.known.get(zoneId) ?? null;
    if (!known) await this.platformZones.refresh(db.prisma, this.apply);
    const reading = await readZone(db, zoneId, known?.version ?? null);
    const outcome = this.take(zoneId, reading);
    if (outcome !== 'applied' && reading.kind === 'diff') this.take(zoneId, await readZone(db, zoneId, null));
  }

  /** A refused change is not acknowledged: the next poll tries it again. */
  private take(zoneId: string, reading: ZoneReading): ApplyOutcome {
    const known = this.known.get(zoneId);
    if (reading.kind === 'gone' || (known && reading.zone.version < known.version)) this.drop(zoneId, known);
    if (reading.kind === 'gone') return 'applied';
    const { zone } = reading;
    const isOld = reading.kind === 'diff' && reading.fromVersion === zone.version;
    const outcome = isOld ? 'applied' : this.apply(changeSetOf(reading, this.options.platform));
    if (outcome !== 'applied') return outcome;
    this.known.set(zoneId, { zoneId: zone.zoneId, version: zone.version, domain: zone.domain });
    this.ack(zoneId, zone.version);
    return outcome;
  }

  /** Also before a zone is loaded whose database was set back to an earlier state. */
  private drop(zoneId: string, known: Known | undefined): void {
    if (known) this.apply({ ...known, kind: 'remove', serial: 0, fromVersion: null, replace: [], remove: [] });
    this.known.delete(zoneId);
    this.ack(zoneId, null);
  }

  /** Acknowledgements are sent together, so a thousand changes are a few statements. */
  private ack(zoneId: string, version: number | null): void {
    this.unacked.set(zoneId, version);
    this.ackTimer ??= setTimeout(() => {
      this.ackTimer = undefined;
      this.sendAcks().catch((error: unknown) => this.options.log.debug({ err: error }, 'acknowledgements wait for the database'));
    }, ackDelayMs);
  }

  /** What is acknowledged is answered by every process of this server. */
  private async sendAcks(): Promise<void> {
    if (this.unacked.size === 0) return;
    const acks = [...this.unacked].map(([zoneId, version]) => ({ zoneId, version }));
    this.unacked.clear();
    try {
      await this.settled();
      await acknowledge(this.options.db.prisma, this.options.serverId, acks);
    } catch (error) {
      for (const { zoneId, version } of acks) if (!this.unacked.has(zoneId)) this.unacked.set(zoneId, version);
      throw error;
    }
  }
}
