import { setTimeout as pause } from 'node:timers/promises';
import type { DnsRecord, DnsResolver, QueryBudget, QueryType, ServerAnswer } from './ports';

type ScanServer = { address: string; port?: number };
type ScanBounds = { servers: readonly ScanServer[]; endsAt: number; budget: QueryBudget };

const parallel = 20;
const perServerMs = 1_000 / 50;

/** Questions of one scan: straight to the servers responsible, no more than they and we can bear. */
export class ScanAsker {
  /** False once something was left unasked. */
  complete = true;
  private readonly asked = new Map<string, Promise<ServerAnswer | null>>();
  private readonly freeAt = new Map<string, number>();
  private next = 0;

  constructor(private readonly resolver: DnsResolver, private readonly bounds: ScanBounds) {}

  get servers(): readonly ScanServer[] {
    return this.bounds.servers;
  }

  /** Whether there is time for something that may take this long. */
  mayStill(ms: number): boolean {
    return Date.now() + ms <= this.bounds.endsAt;
  }

  /** Null: nobody answered with authority, or the scan is over. The same question is asked once. */
  ask(name: string, type: QueryType): Promise<ServerAnswer | null> {
    const key = `${name} ${type}`;
    const known = this.asked.get(key) ?? this.askAny(name, type);
    this.asked.set(key, known);
    return known;
  }

  /** Records of exactly this name and type, and the CNAME that stands in their place. */
  async records(name: string, type: QueryType): Promise<DnsRecord[]> {
    const answer = await this.ask(name, type);
    return (answer?.records ?? []).filter((record) => record.name === name && (record.type === type || record.type === 'CNAME'));
  }

  /** Runs the work for every item, twenty at a time. */
  async each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
    const waiting = items.values();
    await Promise.all(Array.from({ length: Math.min(parallel, items.length) }, async () => {
      for (const item of waiting) await work(item);
    }));
  }

  private async askAny(name: string, type: QueryType): Promise<ServerAnswer | null> {
    const first = this.next++;
    for (let i = 0; i < Math.min(2, this.servers.length); i++) {
      const server = this.servers[(first + i) % this.servers.length];
      if (!server || !await this.mayAsk(server)) return null;
      const answer = await this.resolver.askServer(server, name, type);
      if (answer.authoritative) return answer;
      if (answer.outcome === 'nodata') return null;
    }
    this.complete = false;
    return null;
  }

  /** Waits for the server's turn. */
  private async mayAsk({ address }: ScanServer): Promise<boolean> {
    const now = Date.now();
    const at = Math.max(now, this.freeAt.get(address) ?? 0);
    if (this.bounds.budget.queriesLeft <= 0 || at >= this.bounds.endsAt) {
      this.complete = false;
      return false;
    }
    this.freeAt.set(address, at + perServerMs);
    if (at > now) await pause(at - now);
    return true;
  }
}
