import { parentOf, root, type WireName } from '../../dns/rules/wire/name';

/** Servers of a zone as its parent named them. `addresses` empty: to be looked up. */
export type Servers = { zone: WireName; hosts: readonly { name: WireName; addresses: readonly string[] }[] };

/** Things known until a time, at most `max` of them: the oldest entry makes room. */
export class ExpiringMap<T> {
  private readonly entries = new Map<string, { value: T; until: number }>();

  constructor(private readonly max: number, private readonly nowMs: () => number) {}

  get(key: string): { value: T; secondsLeft: number } | undefined {
    const entry = this.entries.get(key);
    if (!entry) return undefined;
    const leftMs = entry.until - this.nowMs();
    if (leftMs > 0) return { value: entry.value, secondsLeft: Math.ceil(leftMs / 1000) };
    this.entries.delete(key);
    return undefined;
  }

  put(key: string, value: T, seconds: number): void {
    this.entries.delete(key);
    const [oldest] = this.entries.keys();
    if (this.entries.size >= this.max && oldest !== undefined) this.entries.delete(oldest);
    if (seconds > 0) this.entries.set(key, { value, until: this.nowMs() + seconds * 1000 });
  }
}

/** The closest zone at or above `from` whose servers are known. */
export function closestServers(serversOf: (zone: WireName) => Servers | undefined, from: WireName): Servers | undefined {
  for (let name = from; ; name = parentOf(name)) {
    const known = serversOf(name);
    if (known) return known;
    if (name === root) return undefined;
  }
}
