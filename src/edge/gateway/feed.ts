import { setTimeout as pause } from 'node:timers/promises';
import { KeyedQueue, Semaphore } from '../../core/keyed-queue';
import type { Log } from '../../core/log';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import { policySchema, type Policy } from '../../gateway/schemas';
import { acknowledgePolicies, beatInstance, listChangedCertificates, listPolicyVersions, readStoredZone, removeInstance, writeOriginFindings, type InstanceState } from '../../gateway/store/feed';
import type { GatewayMetrics } from './metrics';
import type { OriginHealth } from './origin-health';
import type { Route, ZoneFacts, ZoneTable } from './zone-table';

/** What the DNS product says of its zones; handed in, for it is not ours. */
export type ZoneRoutes = {
  /** Null: nobody is led to us for this zone. */
  load(zoneId: string): Promise<{ domain: string; version: number; routes: readonly Route[] } | null>;
  /** Zones that have proxied names, or those changed within so many seconds. */
  versions(withinSeconds: number | null): Promise<{ zoneId: string; version: number }[]>;
};

export type FeedOptions = {
  db: Database; listener: Listener; routes: ZoneRoutes; zones: ZoneTable; instanceId: string; metrics: GatewayMetrics; log: Log; health: OriginHealth;
  /** Zones to begin with while the database is away; null when nothing is kept. */
  remembered: () => Promise<readonly ZoneFacts[] | null>;
};

type Known = { dnsVersion: number; policyVersion: number; certificatesAt: number; domain: string | null };

const pollMs = 1_000;
const heartbeatMs = 5_000;
const compareMs = 600_000;
const recentSeconds = 60;
const ackDelayMs = 5;
const retryMs = 1_000;
const readsAtOnce = 8;

/**
 * The zones of the database as one process serves them (contract gateway.md §5): everything at start, then each change when it is
 * heard of, or found by a poll. One zone is swapped at a time, whole. While the database is away everything stays as it is.
 */
export class Feed {
  private readonly known = new Map<string, Known>();
  private readonly reading = new KeyedQueue();
  private readonly width = new Semaphore(readsAtOnce);
  private readonly waiting = new Map<string, { routes: boolean; done: Promise<void> }>();
  private readonly acks = new Map<string, number>();
  private readonly ends: (() => void)[] = [];
  private ackTimer: NodeJS.Timeout | undefined;
  private state: InstanceState = 'starting';
  private stopped = false;

  constructor(private readonly options: FeedOptions) {}

  /** Resolves when every zone is there: from the database, or as it is remembered while that is away. Without both it waits. */
  async start(): Promise<void> {
    try {
      await this.begin();
    } catch (error) {
      const zones = await this.options.remembered();
      this.options.log.warn({ err: error, remembered: zones?.length ?? null }, 'the database is away at the start of a gateway');
      for (const facts of zones ?? []) this.recall(facts);
      const begun = this.beginLater();
      if (zones === null) await begun;
    }
    this.state = 'ready';
    await this.beat().catch(() => undefined);
  }

  /** Others stop waiting for this process. */
  async drain(): Promise<void> {
    this.state = 'draining';
    await this.beat().catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    for (const end of this.ends) end();
    clearTimeout(this.ackTimer);
    await Promise.allSettled([...this.waiting.values()].map(({ done }) => done));
    await removeInstance(this.options.db.prisma, this.options.instanceId).catch(() => undefined);
  }

  private async begin(): Promise<void> {
    const { listener } = this.options;
    await this.beat();
    await this.compareAll();
    if (this.stopped) return;
    this.ends.push(listener.listen('gateway_policy', (payload) => this.heard(payload, false)), listener.listen('gateway_cert', (payload) => this.heard(payload, false)),
      listener.listen('dns_zone', (payload) => this.heard(payload, true)));
    this.every(pollMs, () => this.poll());
    this.every(heartbeatMs, () => this.beat());
    this.every(compareMs, () => this.compareAll());
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

  /** Whoever has removed our row has taken us for gone: all is acknowledged again. */
  private async beat(): Promise<void> {
    const { db, instanceId, health } = this.options;
    if (await beatInstance(db.prisma, instanceId, this.state)) for (const [zoneId, { policyVersion }] of this.known) if (policyVersion > 0) this.ack(zoneId, policyVersion);
    const findings = health.take();
    if (findings.length === 0) return;
    await writeOriginFindings(db, instanceId, findings).catch((error: unknown) => {
      health.restore(findings);
      throw error;
    });
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

  /** Null: something may have been missed. */
  private heard(payload: string | null, routes: boolean): void {
    const zoneId = payload?.split(':', 1)[0];
    if (zoneId) void this.refresh(zoneId, routes);
    else void this.poll().catch(() => undefined);
  }

  private async poll(): Promise<void> {
    const { db, routes } = this.options;
    const [policies, zones, certificates] = await Promise.all([listPolicyVersions(db.prisma, recentSeconds), routes.versions(recentSeconds), listChangedCertificates(db.prisma, recentSeconds)]);
    await this.refreshAll(policies, zones, certificates);
  }

  private async compareAll(): Promise<void> {
    const { db, routes } = this.options;
    const [policies, zones] = await Promise.all([listPolicyVersions(db.prisma, null), routes.versions(null)]);
    const named = new Set([...policies, ...zones].map(({ zoneId }) => zoneId));
    const gone = [...this.known.keys()].filter((zoneId) => !named.has(zoneId)).map((zoneId) => ({ zoneId, version: -1 }));
    await this.refreshAll(policies, [...zones, ...gone], []);
  }

  private async refreshAll(policies: readonly { zoneId: string; version: number }[], zones: readonly { zoneId: string; version: number }[], certificates: readonly { zoneId: string; at: Date }[]): Promise<void> {
    const due = new Map<string, boolean>();
    for (const { zoneId, version } of policies) if (this.known.get(zoneId)?.policyVersion !== version) due.set(zoneId, !this.known.has(zoneId));
    for (const { zoneId, at } of certificates) if ((this.known.get(zoneId)?.certificatesAt ?? 0) < at.getTime()) due.set(zoneId, !this.known.has(zoneId));
    for (const { zoneId, version } of zones) if (this.known.get(zoneId)?.dnsVersion !== version) due.set(zoneId, true);
    const failures = (await Promise.allSettled([...due].map(([zoneId, routes]) => this.read(zoneId, routes)))).filter((result) => result.status === 'rejected');
    if (failures[0]) throw failures[0].reason;
  }

  private refresh(zoneId: string, routes: boolean): Promise<void> {
    return this.read(zoneId, routes).catch((error: unknown) => this.options.log.warn({ err: error, zoneId }, 'a zone could not be read; the next poll tries again'));
  }

  /** What is asked for while a reading waits is part of it; while one runs, of the next. */
  private read(zoneId: string, routes: boolean): Promise<void> {
    const waiting = this.waiting.get(zoneId);
    if (waiting) {
      waiting.routes ||= routes;
      return waiting.done;
    }
    const entry = { routes, done: Promise.resolve() };
    entry.done = this.reading.run(zoneId, () => this.width.run(async () => {
      this.waiting.delete(zoneId);
      await this.load(zoneId, entry.routes);
    }));
    this.waiting.set(zoneId, entry);
    return entry.done;
  }

  private async load(zoneId: string, withRoutes: boolean): Promise<void> {
    const { db, routes, zones, metrics } = this.options;
    const done = metrics.propagationSeconds.startTimer();
    const before = zones.get(zoneId)?.facts;
    const known = this.known.get(zoneId);
    const certificatesAt = Date.now();
    const [stored, led] = await Promise.all([readStoredZone(db, zoneId), withRoutes || !known ? routes.load(zoneId) : before ? { domain: before.domain, version: before.dnsVersion, routes: before.routes } : null]);
    const policy = stored.document === null ? null : this.parse(zoneId, stored);
    if (policy === 'bad' && !before) this.options.log.error({ zoneId }, 'the default policy serves a zone whose own cannot be read');
    const usable = policy !== 'bad';
    if (led && led.routes.length > 0) {
      zones.put({ zoneId, domain: led.domain, dnsVersion: led.version, routes: led.routes, certificates: stored.certificates, policyVersion: usable ? stored.policyVersion : before?.policyVersion ?? 0, policy: usable ? policy : before?.policy ?? null });
    } else zones.remove(zoneId);
    const dnsVersion = led?.version ?? (withRoutes || !known ? await this.versionOf(zoneId) : known.dnsVersion);
    this.known.set(zoneId, { dnsVersion, policyVersion: stored.policyVersion, certificatesAt, domain: led?.domain ?? null });
    metrics.zones.set(zones.size);
    done();
    if (usable && stored.policyVersion > 0) this.ack(zoneId, stored.policyVersion);
    if ((known?.domain ?? null) !== (led?.domain ?? null)) this.refreshAbove(led?.domain ?? known?.domain ?? '');
  }

  /** A zone nobody is led to has a version too, so that it is not read again until it changes. */
  private async versionOf(zoneId: string): Promise<number> {
    const recent = await this.options.routes.versions(recentSeconds);
    return recent.find((zone) => zone.zoneId === zoneId)?.version ?? -1;
  }

  /** Names of a zone that begins or ends to be held belong to it and no longer to the zones above, or do again. */
  private refreshAbove(domain: string): void {
    for (const { facts } of this.options.zones.all()) if (domain.endsWith(`.${facts.domain}`)) void this.refresh(facts.zoneId, true);
  }

  private parse(zoneId: string, { document, policyVersion }: { document: unknown; policyVersion: number }): Policy | 'bad' {
    const before = this.options.zones.get(zoneId)?.facts;
    if (before?.policy && before.policyVersion === policyVersion) return before.policy;
    const parsed = policySchema.safeParse(document);
    if (parsed.success) return parsed.data;
    this.options.metrics.badPolicies.inc();
    this.options.log.error({ zoneId, policyVersion, issues: parsed.error.issues.length }, 'a stored policy cannot be read; the last good one serves');
    return 'bad';
  }

  private recall(facts: ZoneFacts): void {
    this.options.zones.put(facts);
    this.known.set(facts.zoneId, { dnsVersion: facts.dnsVersion, policyVersion: facts.policyVersion, certificatesAt: 0, domain: facts.domain });
  }

  /** Acknowledgements go together: a thousand changes are a few statements. What the database does not take waits for it. */
  private ack(zoneId: string, version: number): void {
    this.acks.set(zoneId, version);
    this.ackTimer ??= setTimeout(() => void this.tellAcks(), ackDelayMs);
  }

  private async tellAcks(): Promise<void> {
    const acks = [...this.acks].map(([zoneId, version]) => ({ zoneId, version }));
    this.acks.clear();
    try {
      await acknowledgePolicies(this.options.db, this.options.instanceId, acks);
      this.ackTimer = undefined;
      const [next] = this.acks;
      if (next) this.ack(...next);
    } catch (error) {
      this.options.log.debug({ err: error }, 'acknowledgements wait for the database');
      if (this.stopped) return;
      for (const { zoneId, version } of acks) if (!this.acks.has(zoneId)) this.acks.set(zoneId, version);
      this.ackTimer = setTimeout(() => void this.tellAcks(), retryMs).unref();
    }
  }
}
