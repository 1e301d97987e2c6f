import type { Log } from '../../src/core/log';
import { startDnsServer, type DnsServer } from '../../src/edge/dns/server';
import { fullZone, HandFeed } from './dns-feed';

/** A delegation as the registry holds it: `glue` addresses of name servers inside the domain, `ds` values of a signed one. */
export type Delegated = { domain: string; names: readonly string[]; glue: Readonly<Record<string, readonly string[]>>; ds: readonly string[] };
export type RegistryOptions = {
  /** First three octets of the loopback addresses used, one per server: `127.0.1`. */
  network: string;
  /** One port for all of them; 0: any. */
  port: number;
  log: Log;
};

/** A name server of somebody else: authoritative for what it is given. */
export type ForeignServer = { name: string; address: string; host(domain: string, lines: readonly string[]): void; drop(domain: string): void };

type Server = { server: DnsServer; feed: HandFeed; address: string };
const tld = 'test';

/**
 * A name space of its own on loopback: a root, a registry for `test` with two servers, and name servers of strangers, every
 * one a real authoritative server on an address of its own.
 */
export class FakeRegistry {
  private readonly delegations = new Map<string, Delegated>();
  /** What the second server of `test` says instead: a registry whose servers disagree. */
  private readonly disagreements = new Map<string, readonly string[]>();
  private readonly foreign: Server[] = [];
  private version = 1;

  private constructor(readonly port: number, private readonly options: RegistryOptions, private readonly servers: { root: Server; first: Server; second: Server }) {}

  /** The registry answers; nothing is delegated yet. */
  static async start(options: RegistryOptions): Promise<FakeRegistry> {
    const address = (host: number): string => `${options.network}.${host}`;
    const rootZone = fullZone('.', [
      '. SOA 3600 a.root.test hostmaster.root.test 1 7200 3600 1209600 300', '. NS 3600 a.root.test', `${tld} NS 3600 a.nic.test`, `${tld} NS 3600 b.nic.test`,
      `a.root.test A 3600 ${address(1)}`, `a.nic.test A 3600 ${address(2)}`, `b.nic.test A 3600 ${address(3)}`,
    ]);
    const root = await startServer(address(1), options.port, { log: options.log, zones: [rootZone] });
    const port = root.server.addresses[0]?.port ?? options.port;
    const first = await startServer(address(2), port, { log: options.log, zones: [] });
    const second = await startServer(address(3), port, { log: options.log, zones: [] });
    const registry = new FakeRegistry(port, options, { root, first, second });
    registry.publish();
    return registry;
  }

  /** Where a resolver begins to see this name space, and this one only. */
  get rootHints(): { name: string; address: string }[] {
    return [{ name: 'a.root.test', address: this.servers.root.address }];
  }

  /** Where a resolver that sees the real root begins with `test`. */
  get tldServers(): { name: string; address: string }[] {
    return [{ name: 'a.nic.test', address: this.servers.first.address }, { name: 'b.nic.test', address: this.servers.second.address }];
  }

  /** Every address it answers on. */
  get addresses(): string[] {
    return [this.servers.root, this.servers.first, this.servers.second, ...this.foreign].map(({ address }) => address);
  }

  /** The registry delegates a domain under `test` to these name servers from now on. */
  delegate(domain: string, names: readonly string[], { glue = {}, ds = [] }: { glue?: Delegated['glue']; ds?: readonly string[] } = {}): void {
    if (!domain.endsWith(`.${tld}`)) throw new Error(`${domain} is not under .${tld}`);
    this.delegations.set(domain, { domain, names, glue, ds });
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
    const server = await startServer(address, this.port, { log: this.options.log, zones: [] });
    this.foreign.push(server);
    let version = 0;
    return {
      name, address,
      host: (domain, lines) => void server.feed.push(fullZone(domain, lines, { version: ++version })),
      drop: (domain) => void server.feed.push({ ...fullZone(domain, [], { version: ++version }), kind: 'remove' }),
    };
  }

  async close(): Promise<void> {
    const { root, first, second } = this.servers;
    await Promise.all([root, first, second, ...this.foreign].map(({ server }) => server.close()));
  }

  private publish(): void {
    this.version++;
    this.servers.first.feed.push(this.zone(new Map()));
    this.servers.second.feed.push(this.zone(this.disagreements));
  }

  private zone(instead: ReadonlyMap<string, readonly string[]>): ReturnType<typeof fullZone> {
    const own = [
      '@ NS 3600 a.nic.test', '@ NS 3600 b.nic.test', `a.nic A 3600 ${this.servers.first.address}`, `b.nic A 3600 ${this.servers.second.address}`,
    ];
    const lines = this.list().flatMap(({ domain, names, glue, ds }) => [
      ...(instead.get(domain) ?? names).map((name) => `${below(domain)} NS 3600 ${name}`),
      ...Object.entries(glue).flatMap(([name, addresses]) => addresses.map((address) => `${below(name)} ${address.includes(':') ? 'AAAA' : 'A'} 3600 ${address}`)),
      ...ds.map((value) => `${below(domain)} DS 3600 ${value}`),
    ]);
    return fullZone(tld, [...new Set([...own, ...lines])], { version: this.version });
  }
}

function below(name: string): string {
  return name.slice(0, -tld.length - 1);
}

async function startServer(address: string, port: number, { log, zones }: { log: Log; zones: ReturnType<typeof fullZone>[] }): Promise<Server> {
  const feed = new HandFeed(zones);
  const server = await startDnsServer({
    listen: [{ host: address, port }], feed, log, rateLimit: { perSecond: 0, exempt: [] }, transfer: { keys: [], allow: [] }, notify: [], nowMs: Date.now,
  });
  return { server, feed, address };
}
