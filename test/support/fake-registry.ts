import { startAuthority, type Authority } from '../../src/dev/registry/authority';
import type { Delegated } from '../../src/dev/registry/delegations';
import { Registry, registryTld, type RegistryOptions } from '../../src/dev/registry/registry';
import { fullZone } from './dns-feed';

export type { Delegated };

/** A name server of somebody else: authoritative for what it is given. */
export type ForeignServer = { name: string; address: string; host(domain: string, lines: readonly string[]): void; drop(domain: string): void };

/**
 * A name space of its own on loopback: the development registry (a root, two servers of `test`), and name servers of
 * strangers, every one a real authoritative server on an address of its own.
 */
export class FakeRegistry {
  private readonly delegations = new Map<string, Delegated>();
  /** What the second server of `test` says instead: a registry whose servers disagree. */
  private readonly disagreements = new Map<string, readonly string[]>();
  private readonly foreign: Authority[] = [];
  private version = 1;

  private constructor(private readonly options: RegistryOptions, private readonly registry: Registry) {}

  /** The registry answers; nothing is delegated yet. */
  static async start(options: RegistryOptions): Promise<FakeRegistry> {
    return new FakeRegistry(options, await Registry.start(options));
  }

  get port(): number {
    return this.registry.port;
  }

  /** Where a resolver begins to see this name space, and this one only. */
  get rootHints(): { name: string; address: string }[] {
    return this.registry.rootHints;
  }

  /** Where a resolver that sees the real root begins with `test`. */
  get tldServers(): { name: string; address: string }[] {
    return this.registry.tldServers;
  }

  /** Every address it answers on. */
  get addresses(): string[] {
    return [...[...this.rootHints, ...this.tldServers], ...this.foreign].map(({ address }) => address);
  }

  /** The registry delegates a domain under `test` to these name servers from now on. */
  delegate(domain: string, names: readonly string[], { glue = {}, ds = [] }: { glue?: Readonly<Record<string, readonly string[]>>; ds?: readonly string[] } = {}): void {
    if (!domain.endsWith(`.${registryTld}`)) throw new Error(`${domain} is not under .${registryTld}`);
    const addresses = Object.fromEntries(Object.entries(glue).map(([name, values]) => [name, [...values]]));
    this.delegations.set(domain, { domain, names: [...names], glue: addresses, ds: [...ds] });
    this.publish();
  }

  /** The second server of `test` tells these name servers for the domain; null: it agrees again. */
  disagree(domain: string, names: readonly string[] | null): void {
    if (names) this.disagreements.set(domain, names);
    else this.disagreements.delete(domain);
    this.publish();
  }

  /** The domain is not registered any more; false when it was not. */
  remove(domain: string): boolean {
    const removed = this.delegations.delete(domain);
    this.publish();
    return removed;
  }

  list(): Delegated[] {
    return [...this.delegations.values()];
  }

  /** A stranger's name server at an address of its own; nothing points to it until something is delegated. */
  async addServer(name: string): Promise<ForeignServer> {
    const address = `${this.options.network}.${10 + this.foreign.length}`;
    const server = await startAuthority({ host: address, port: this.port }, [], this.options.log);
    this.foreign.push(server);
    let version = 0;
    return {
      name, address,
      host: (domain, lines) => server.put({ domain, version: ++version, rrsets: fullZone(domain, lines, { version }).replace }),
      drop: (domain) => server.drop(domain, ++version),
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.registry, ...this.foreign].map((server) => server.close()));
  }

  private publish(): void {
    const second = this.list().map((one) => ({ ...one, names: [...(this.disagreements.get(one.domain) ?? one.names)] }));
    this.registry.publish(++this.version, this.list(), second);
  }
}
