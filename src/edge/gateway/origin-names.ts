/** Addresses of a name in DNS. An empty list: the name has none. Errors: nobody can say now. */
export type ResolveName = (name: string) => Promise<{ addresses: readonly string[]; ttlSeconds: number }>;
type Known = { addresses: readonly string[]; until: number };

const ttlMs = { min: 1_000, max: 300_000 };
/** How long what could not be resolved is not asked again; last good addresses serve meanwhile. */
const failedMs = 5_000;
const namesMax = 20_000;

/** Names of origins, resolved when they are connected to and kept for their time to live; one question at a time per name. */
export class OriginNames {
  private readonly known = new Map<string, Known>();
  private readonly asking = new Map<string, Promise<Known>>();

  constructor(private readonly resolveName: ResolveName) {}

  resolve(name: string, nowMs: number): Promise<Known> {
    const known = this.known.get(name);
    if (known && known.until > nowMs) return Promise.resolve(known);
    const asked = this.asking.get(name) ?? this.ask(name, nowMs).finally(() => this.asking.delete(name));
    this.asking.set(name, asked);
    return asked;
  }

  private async ask(name: string, nowMs: number): Promise<Known> {
    const answer = await this.resolveName(name).then(({ addresses, ttlSeconds }) => ({
      addresses, until: nowMs + Math.min(Math.max(ttlSeconds * 1_000, ttlMs.min), ttlMs.max),
    }), () => ({ addresses: this.known.get(name)?.addresses ?? [], until: nowMs + failedMs }));
    if (this.known.size >= namesMax) this.known.clear();
    this.known.set(name, answer);
    return answer;
  }
}
