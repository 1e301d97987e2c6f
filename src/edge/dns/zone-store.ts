import type { RrType } from '../../dns/rules/rrset';
import type { ApplyOutcome, ZoneChangeSet } from '../../dns/ports';
import { typeNumbers } from '../../dns/rules/wire/codes';
import { isWithin, MalformedDns, parentOf, root, wireName, type WireName } from '../../dns/rules/wire/name';
import { encodeRdata, type Rdata } from '../../dns/rules/wire/rdata';
import { QueryCounts, type QueryCounter } from './query-counts';

/** An RRset as it is answered: rdata encoded once, when the zone is loaded. */
export type StoredSet = { type: number; typeName: RrType | 'HINFO'; ttl: number; rdatas: readonly Rdata[] };

/** A name of a zone. It exists while it has sets or something exists below it (an empty non-terminal). */
export type ZoneNode = { sets: Map<number, StoredSet>; children: number };

/** One zone in memory. Changes happen within one tick of the event loop, so a reader sees the zone before or after, never between. */
export class LoadedZone {
  readonly nodes = new Map<WireName, ZoneNode>();
  version = 0;
  serial = 0;
  /** Goes up whenever an answer made from this zone may have changed. */
  epoch = 0;

  constructor(readonly zoneId: ZoneChangeSet['zoneId'], readonly domain: string, readonly apex: WireName, readonly counter: QueryCounter) {}

  set(name: WireName, type: number): StoredSet | undefined {
    return this.nodes.get(name)?.sets.get(type);
  }

  put(name: WireName, set: StoredSet): void {
    this.ensureNode(name).sets.set(set.type, set);
  }

  drop(name: WireName, type: number): void {
    const node = this.nodes.get(name);
    if (node?.sets.delete(type)) this.prune(name, node);
  }

  private ensureNode(name: WireName): ZoneNode {
    const known = this.nodes.get(name);
    if (known) return known;
    const node = { sets: new Map<number, StoredSet>(), children: 0 };
    this.nodes.set(name, node);
    if (name !== this.apex) this.ensureNode(parentOf(name)).children++;
    return node;
  }

  private prune(name: WireName, node: ZoneNode): void {
    if (node.sets.size > 0 || node.children > 0) return;
    this.nodes.delete(name);
    const above = name === this.apex ? undefined : this.nodes.get(parentOf(name));
    if (!above) return;
    above.children--;
    this.prune(parentOf(name), above);
  }
}

/** All zones a server answers for. */
export class ZoneStore {
  readonly counts = new QueryCounts();
  /** Goes up with everything that is applied. */
  changes = 0;
  private readonly zones = new Map<WireName, LoadedZone>();

  all(): Iterable<LoadedZone> {
    return this.zones.values();
  }

  get(domain: string): LoadedZone | undefined {
    return this.zones.get(wireName(domain));
  }

  /** The most specific zone at or above a name. For DS, which belongs to the parent's side of a cut, one above it is preferred (RFC 4035 §3.1.4.1). */
  find(name: WireName, type: number): LoadedZone | undefined {
    if (type === typeNumbers.DS && name !== root) return this.closest(parentOf(name)) ?? this.zones.get(name);
    return this.closest(name);
  }

  /**
   * Takes a change: all of it or, when a value cannot be encoded or the zone would lose its SOA, nothing. `stale`: not newer
   * than what is here. `gap`: the step starts from a version that is not here; the feed must send the zone in full.
   * Errors: MalformedDns.
   */
  apply(changes: ZoneChangeSet): ApplyOutcome {
    const apex = wireName(changes.domain);
    const present = this.zones.get(apex);
    const sameZone = present?.zoneId === changes.zoneId ? present : undefined;
    if (sameZone && changes.version < sameZone.version + (changes.kind === 'diff' ? 1 : 0)) return 'stale';
    if (changes.kind === 'remove') return this.remove(apex, sameZone);
    if (changes.kind === 'diff' && sameZone?.version !== changes.fromVersion) return 'gap';
    const sets = changes.replace.map((set) => ({ name: insideName(set.name, apex), set: storedSet(set) }));
    if (changes.kind === 'full') this.load(changes, apex, sets);
    else if (sameZone) step(sameZone, changes, sets);
    this.changes++;
    return 'applied';
  }

  private load(changes: ZoneChangeSet, apex: WireName, sets: readonly { name: WireName; set: StoredSet }[]): void {
    if (!sets.some(({ name, set }) => name === apex && set.type === typeNumbers.SOA)) throw new MalformedDns('a zone has a SOA');
    const previous = this.zones.get(apex);
    if (previous) retire(previous);
    else this.outdateAncestors(apex);
    const zone = new LoadedZone(changes.zoneId, changes.domain, apex, this.counts.load(changes.zoneId));
    for (const { name, set } of sets) zone.put(name, set);
    zone.version = changes.version;
    zone.serial = changes.serial;
    this.zones.set(apex, zone);
  }

  private remove(apex: WireName, present: LoadedZone | undefined): ApplyOutcome {
    if (!present) return 'stale';
    this.zones.delete(apex);
    this.changes++;
    retire(present);
    this.outdateAncestors(apex);
    return 'applied';
  }

  /** Names of the zones above are answered from another zone now. */
  private outdateAncestors(apex: WireName): void {
    for (let rest = apex; rest !== root; ) {
      rest = parentOf(rest);
      const zone = this.zones.get(rest);
      if (zone) zone.epoch++;
    }
  }

  private closest(name: WireName): LoadedZone | undefined {
    for (let rest = name; ; rest = parentOf(rest)) {
      const zone = this.zones.get(rest);
      if (zone || rest === root) return zone;
    }
  }
}

function retire(zone: LoadedZone): void {
  zone.epoch++;
  zone.counter.loaded = false;
}

function step(zone: LoadedZone, changes: ZoneChangeSet, sets: readonly { name: WireName; set: StoredSet }[]): void {
  const removed = changes.remove.map(({ name, type }) => ({ name: wireName(name), type: typeNumbers[type] }));
  if (removed.some(({ name, type }) => name === zone.apex && type === typeNumbers.SOA)) throw new MalformedDns('a zone has a SOA');
  for (const { name, type } of removed) zone.drop(name, type);
  for (const { name, set } of sets) zone.put(name, set);
  zone.version = changes.version;
  zone.serial = changes.serial;
  zone.epoch++;
}

function storedSet(set: ZoneChangeSet['replace'][number]): StoredSet {
  return { type: typeNumbers[set.type], typeName: set.type, ttl: set.ttl, rdatas: set.values.map((value) => encodeRdata(set.type, value)) };
}

function insideName(text: string, apex: WireName): WireName {
  const name = wireName(text);
  if (!isWithin(name, apex)) throw new MalformedDns('a name outside its zone');
  return name;
}

/** Rows of a zone as they stand, for a transfer that goes on while the zone changes. */
export function snapshot(zone: LoadedZone): { owner: WireName; set: StoredSet }[] {
  return [...zone.nodes].flatMap(([owner, { sets }]) => [...sets.values()].map((set) => ({ owner, set })));
}
