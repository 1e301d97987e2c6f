import type { Policy } from '../../gateway/schemas';
import type { Judge, MakeJudge } from './judge';
import { OriginPool, type OriginRecord } from './origin-pool';

/** A name of a zone that DNS leads to us, as the DNS product says it (contract gateway.md §1.5). */
export type Route = { hostname: string; wildcard: boolean; hiddenBy: readonly string[]; origins: readonly OriginRecord[] };

/** A certificate as it is stored: its key sealed. */
export type StoredCertificate = { id: string; hostnames: readonly string[]; chainPem: string; sealedKey: string; notAfterMs: number };

/** All that is known of a zone; what the snapshot keeps. */
export type ZoneFacts = {
  zoneId: string; domain: string; dnsVersion: number; routes: readonly Route[];
  /** 0 and null: never written, the default applies. */
  policyVersion: number; policy: Policy | null; certificates: readonly StoredCertificate[];
};

/** One state of a zone: a request that has begun with it ends with it. */
export class ServedZone {
  readonly hosts: readonly ServedHost[];
  private made: Judge | null = null;

  constructor(readonly facts: ZoneFacts, private readonly fallback: Policy, private readonly makeJudge: MakeJudge, before: ServedZone | undefined) {
    const known = new Map(before?.facts.dnsVersion === facts.dnsVersion ? before.hosts.map(({ route, pool }) => [route.hostname, pool]) : []);
    this.hosts = facts.routes.map((route) => ({ zone: this, route, pool: known.get(route.hostname) ?? new OriginPool(facts.zoneId, route.origins) }));
    if (before?.made && before.facts.policyVersion === facts.policyVersion) this.made = before.made;
  }

  get judge(): Judge {
    const { zoneId, policyVersion, policy } = this.facts;
    return (this.made ??= this.makeJudge({ zoneId, version: policyVersion, policy: policy ?? this.fallback }));
  }
}

export type ServedHost = { readonly zone: ServedZone; readonly route: Route; readonly pool: OriginPool };

/** Every zone that is served, swapped one at a time; and the hosts they serve. */
export class ZoneTable {
  private readonly zones = new Map<string, ServedZone>();
  private readonly exact = new Map<string, ServedHost[]>();
  private readonly wildcards = new Map<string, ServedHost[]>();
  /** Grows with every change. */
  changes = 0;

  constructor(private readonly fallback: Policy, private readonly makeJudge: MakeJudge) {}

  get size(): number {
    return this.zones.size;
  }

  all(): IterableIterator<ServedZone> {
    return this.zones.values();
  }

  get(zoneId: string): ServedZone | undefined {
    return this.zones.get(zoneId);
  }

  put(facts: ZoneFacts): void {
    const before = this.zones.get(facts.zoneId);
    const zone = new ServedZone(facts, this.fallback, this.makeJudge, before);
    if (before) this.unlist(before);
    this.zones.set(facts.zoneId, zone);
    for (const host of zone.hosts) this.list(host);
    this.changes += 1;
  }

  remove(zoneId: string): void {
    const zone = this.zones.get(zoneId);
    if (!zone) return;
    this.unlist(zone);
    this.zones.delete(zoneId);
    this.changes += 1;
  }

  /** Who serves a host, in lower case: of two zones the one with the longer domain. Null: nobody. */
  find(host: string): ServedHost | null {
    const [exact] = this.exact.get(host) ?? [];
    if (exact) return exact;
    for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
      const covering = this.wildcards.get(host.slice(dot + 1))?.find(({ route }) => !isHidden(host, route.hiddenBy));
      if (covering) return covering;
    }
    return null;
  }

  private list(host: ServedHost): void {
    const [map, key] = this.placeOf(host);
    const hosts = [...(map.get(key) ?? []), host].sort((a, b) => b.zone.facts.domain.length - a.zone.facts.domain.length);
    map.set(key, hosts);
  }

  private unlist(zone: ServedZone): void {
    for (const host of zone.hosts) {
      const [map, key] = this.placeOf(host);
      const left = (map.get(key) ?? []).filter((other) => other.zone !== zone);
      if (left.length > 0) map.set(key, left);
      else map.delete(key);
    }
  }

  private placeOf({ route }: ServedHost): [Map<string, ServedHost[]>, string] {
    return route.wildcard ? [this.wildcards, route.hostname.slice(2)] : [this.exact, route.hostname];
  }
}

function isHidden(host: string, hiddenBy: readonly string[]): boolean {
  return hiddenBy.some((name) => host === name || host.endsWith(`.${name}`));
}
