import type { Log } from '../../core/log';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import type { ApplyOutcome, ZoneChangeSet, ZoneFeed } from '../../dns/ports';
import { changeSetOf } from '../../dns/rules/change-set';
import type { Platform } from '../../dns/rules/platform';
import { acknowledge, beat, listBehind, listServed, readZone, registerServer, unregisterServer, type ZoneReading } from '../../dns/store/feed';
import { PlatformZones } from './platform-zones';

export type FeedOptions = { db: Database; listener: Listener; platform: Platform; serverId: string; addresses: readonly string[]; pollMs: number; log: Log };
type Apply = (changes: ZoneChangeSet) => ApplyOutcome;

const heartbeatMs = 5_000;
const ackDelayMs = 20;
const pageSize = 200;

/**
 * The zones of the database (contract dns.md §6.3): everything at start, then each version as it is committed, heard by
 * NOTIFY and looked for every `pollMs`. While the database is away the server keeps what it has.
 */
export class DatabaseFeed implements ZoneFeed {
  private readonly known = new Map<string, { version: number; domain: string }>();
  private readonly busy = new Map<string, Promise<void>>();
  private readonly again = new Set<string>();
  private readonly unacked = new Map<string, number | null>();
  private readonly ends: (() => void)[] = [];
  private readonly platformZones: PlatformZones;
  private ackTimer: NodeJS.Timeout | undefined;
  private apply: Apply = () => 'stale';
  private stopped = false;

  constructor(private readonly options: FeedOptions) {
    this.platformZones = new PlatformZones(options.platform);
  }

  /** Errors: the database is away. */
  async start(apply: Apply): Promise<void> {
    this.apply = apply;
    const { db, listener, serverId, addresses, pollMs } = this.options;
    await registerServer(db.prisma, serverId, addresses);
    this.ends.push(listener.listen('dns_zone', (payload) => this.heard(payload)));
    await this.platformZones.refresh(db.prisma, apply);
    for (let after = '', page = await listServed(db.prisma, after, pageSize); page.length > 0; page = await listServed(db.prisma, after, pageSize)) {
      for (const { id } of page) await this.refresh(id);
      after = page.at(-1)?.id ?? '';
    }
    await this.sendAcks();
    this.every(pollMs, () => this.catchUp());
    this.every(heartbeatMs, () => beat(db.prisma, serverId));
  }

  async stop(): Promise<void> {
    this.stopped = true;
    for (const end of this.ends) end();
    clearTimeout(this.ackTimer);
    await Promise.allSettled(this.busy.values());
    await unregisterServer(this.options.db.prisma, this.options.serverId).catch(() => undefined);
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

  private async read(zoneId: string): Promise<void> {
    const known = this.known.get(zoneId) ?? null;
    if (!known) await this.platformZones.refresh(this.options.db.prisma, this.apply);
    const reading = await readZone(this.options.db, zoneId, known?.version ?? null);
    if (this.take(zoneId, reading) === 'gap') this.take(zoneId, await readZone(this.options.db, zoneId, null));
  }

  private take(zoneId: string, reading: ZoneReading): ApplyOutcome {
    const known = this.known.get(zoneId);
    if (reading.kind === 'gone') {
      if (known) this.apply({ ...nothing, zoneId: idOf(zoneId), domain: known.domain, version: known.version, kind: 'remove' });
      this.known.delete(zoneId);
      this.ack(zoneId, null);
      return 'applied';
    }
    const { zone } = reading;
    const outcome = this.apply(changeSetOf({ ...reading, zone: { ...zone, zoneId: zone.id } }, this.options.platform));
    if (outcome === 'gap') return outcome;
    this.known.set(zoneId, { version: zone.version, domain: zone.domain });
    this.ack(zoneId, zone.version);
    return outcome;
  }

  /** Acknowledgements are sent together, so a thousand changes are a few statements. */
  private ack(zoneId: string, version: number | null): void {
    this.unacked.set(zoneId, version);
    this.ackTimer ??= setTimeout(() => {
      this.ackTimer = undefined;
      this.sendAcks().catch((error: unknown) => this.options.log.debug({ err: error }, 'acknowledgements wait for the database'));
    }, ackDelayMs);
  }

  private async sendAcks(): Promise<void> {
    const acks = [...this.unacked].map(([zoneId, version]) => ({ zoneId, version }));
    this.unacked.clear();
    try {
      await acknowledge(this.options.db.prisma, this.options.serverId, acks);
    } catch (error) {
      for (const { zoneId, version } of acks) if (!this.unacked.has(zoneId)) this.unacked.set(zoneId, version);
      throw error;
    }
  }
}

const nothing = { serial: 0, fromVersion: null, replace: [], remove: [] };

function idOf(zoneId: string): `zone_${string}` {
  return `zone_${zoneId.slice('zone_'.length)}`;
}
