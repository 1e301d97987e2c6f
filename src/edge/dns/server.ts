import type { Log } from '../../core/log';
import type { ApplyOutcome, ZoneChangeSet, ZoneFeed } from '../../dns/ports';
import { MalformedDns, textName, type WireName } from '../../dns/rules/wire/name';
import type { TsigKey } from '../../dns/rules/wire/tsig';
import { NotifySender, type NotifyTarget } from './notify-sender';
import { addressList, isListed, RateLimiter, type RateRules } from './rate-limit';
import { Responder, type TransferRequest } from './responder';
import { SnapshotWriter } from './snapshot-file';
import { ConnectionCount, listenTcp } from './tcp-listener';
import { transferMessages } from './transfer';
import { listenUdp } from './udp-listener';
import { WorkerPool } from './worker-pool';
import { ZoneStore } from './zone-store';

export type DnsServerOptions = {
  /** Port 0: any port free for both UDP and TCP. */
  listen: readonly { host: string; port: number }[];
  feed: ZoneFeed;
  rateLimit: RateRules;
  /** Who may transfer zones: holders of a key, and addresses without one. */
  transfer: { keys: readonly TsigKey[]; allow: readonly string[] };
  notify: readonly NotifyTarget[];
  /** Processes that answer; one is this one itself. */
  workers?: number;
  /** Where the zones are kept for a start without the database. */
  snapshotFile?: string | undefined;
  /** This process takes connections for so many. */
  connectionShare?: number;
  nowMs: () => number;
  log: Log;
};

export type DnsServer = {
  /** Where it listens, in the order asked for. */
  addresses: readonly { host: string; port: number }[];
  /** Zones it answers for and their versions: what it acknowledges. */
  versions(): { domain: string; zoneId: ZoneChangeSet['zoneId']; version: number; serial: number }[];
  /** Queries per zone since the last call; zones without any are left out. */
  takeCounts(): { zoneId: NonNullable<ZoneChangeSet['zoneId']>; queries: number }[];
  close(): Promise<void>;
};

/** Loads every zone of the feed, then binds: a server that answers has all it should have. What is acknowledged is answered. */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const { feed, log } = options;
  const store = new ZoneStore();
  const notifier = new NotifySender(options.notify, log);
  const pool = (options.workers ?? 1) > 1 ? new WorkerPool(store, log) : null;
  let serves: () => void = () => undefined;
  const serving = new Promise<void>((resolve) => {
    serves = resolve;
  });
  let loaded = false;
  await feed.start((changes) => {
    const outcome = applied(store, changes, log);
    if (outcome !== 'applied') return outcome;
    pool?.broadcast(changes);
    if (loaded && changes.kind !== 'remove') notifier.announce(changes.domain);
    return outcome;
  }, () => serving.then(() => pool?.settled()));
  loaded = true;
  const front = await (pool ? serveByWorkers(pool, options.workers ?? 1) : serveHere(options, store)).catch(async (error: unknown) => {
    await feed.stop();
    throw error;
  });
  serves();
  const snapshots = options.snapshotFile === undefined ? null : new SnapshotWriter(options.snapshotFile, store, log);
  void snapshots?.write();
  return {
    addresses: front.addresses,
    versions: () => [...store.all()].map(({ domain, zoneId, version, serial }) => ({ domain, zoneId, version, serial })),
    takeCounts: () => store.counts.take(),
    close: async () => {
      await feed.stop();
      notifier.close();
      await front.close();
      await snapshots?.close();
    },
  };
}

type Front = { addresses: DnsServer['addresses']; close(): Promise<void> };

async function serveHere(options: DnsServerOptions, store: ZoneStore): Promise<Front> {
  const bound = await bindAll(options, store);
  return { addresses: bound.map(({ host, port }) => ({ host, port })), close: async () => void (await Promise.all(bound.map(({ close }) => close()))) };
}

async function serveByWorkers(pool: WorkerPool, count: number): Promise<Front> {
  try {
    return { addresses: await pool.start(count), close: () => pool.close() };
  } catch (error) {
    await pool.close();
    throw error;
  }
}

type Bound = { host: string; port: number; close(): Promise<void> };

async function bindAll(options: DnsServerOptions, store: ZoneStore): Promise<Bound[]> {
  const { log, nowMs } = options;
  const keys = new Map<WireName, TsigKey>(options.transfer.keys.map((key) => [key.name, key]));
  const onFault = (error: unknown): void => log.error({ err: error }, 'DNS request failed');
  const responder = new Responder(store, { keyOf: (name) => keys.get(name), nowSeconds: () => Math.floor(nowMs() / 1000), onFault });
  const limiter = new RateLimiter(options.rateLimit, nowMs);
  const service = { responder, transfer: transferFrom(store, options.transfer.allow), onFault };
  const connections = new ConnectionCount(options.connectionShare);
  const bound: Bound[] = [];
  try {
    for (const at of options.listen) bound.push(await bind(at, { udp: { responder, limiter, log }, tcp: { service, connections, log } }));
  } catch (error) {
    await Promise.all(bound.map(({ close }) => close()));
    throw error;
  }
  return bound;
}

type Serving = { udp: Parameters<typeof listenUdp>[1]; tcp: Parameters<typeof listenTcp>[1] };

/** Port 0 is any free for TCP; when UDP cannot have the same, another. */
async function bind(at: { host: string; port: number }, serve: Serving, tries = 5): Promise<Bound> {
  const tcp = await listenTcp(at, serve.tcp);
  try {
    const udp = await listenUdp({ host: at.host, port: tcp.port }, serve.udp);
    return { host: at.host, port: tcp.port, close: async () => void (await Promise.all([udp.close(), tcp.close()])) };
  } catch (error) {
    await tcp.close();
    if (at.port === 0 && tries > 1) return bind(at, serve, tries - 1);
    throw error;
  }
}

/** A change that cannot be taken leaves the zone as it was: old answers are better than none. */
function applied(store: ZoneStore, changes: ZoneChangeSet, log: Log): ApplyOutcome {
  try {
    return store.apply(changes);
  } catch (error) {
    if (!(error instanceof MalformedDns)) throw error;
    log.error({ err: error, domain: changes.domain, version: changes.version }, 'zone change refused');
    return 'refused';
  }
}

function transferFrom(store: ZoneStore, allow: readonly string[]): (request: TransferRequest, address: string) => Iterable<Buffer> {
  const allowed = addressList(allow);
  return (request, address) => {
    const mayRead = request.signed !== null || isListed(allowed, address);
    return transferMessages(request, mayRead ? (store.get(textName(request.question.name)) ?? null) : null);
  };
}
