import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../../config';
import { parseAddress } from '../../core/listen';
import type { Log } from '../../core/log';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import { platformOf } from '../../dns/rules/platform';
import { platformTransferKeys } from '../../dns/rules/transfer-key';
import { wireName } from '../../dns/rules/wire/name';
import type { TsigKey } from '../../dns/rules/wire/tsig';
import { listOwners } from '../../dns/store/feed';
import { DatabaseFeed } from './database-feed';
import { QueryUsage, type QueryFact } from './query-usage';
import { startDnsServer, type DnsServer } from './server';
import { readSnapshot } from './snapshot-file';
import { runDnsWorker } from './worker';

type RoleOptions = { config: Config; db: Database; listener: Listener; log: Log; storeUsage: (facts: readonly QueryFact[]) => Promise<unknown> };

/** The name server of this installation at DNS_LISTEN: it follows the database and tells billing what was asked. */
export async function startDnsRole({ config, db, listener, log, storeUsage }: RoleOptions): Promise<{ addresses: DnsServer['addresses']; zones: () => number; stop: () => Promise<void> }> {
  const serverId = `${hostname()}/${config.DNS_LISTEN.join(',')}`;
  const path = config.DNS_SNAPSHOT_FILE;
  const feed = new DatabaseFeed({
    db, listener, platform: platformOf(config), serverId, addresses: config.DNS_LISTEN, pollMs: config.DNS_POLL_MS, log,
    remembered: async () => (path === undefined ? null : remember(path, log)),
  });
  const server = await startDnsServer({ ...servingOf(config, log), feed, notify: config.DNS_NOTIFY_TARGETS, workers: config.DNS_WORKERS, snapshotFile: path });
  const usage = new QueryUsage({
    serverId, boot: randomBytes(6).toString('hex'), takeCounts: () => server.takeCounts(), ownersOf: (zoneIds) => listOwners(db.prisma, zoneIds), store: storeUsage, nowMs: Date.now, log,
  });
  return {
    addresses: server.addresses,
    zones: () => server.versions().length,
    stop: async () => {
      await server.close();
      await usage.close();
    },
  };
}

/** One of the DNS_WORKERS processes that `startDnsRole` has forked. Resolves when it may end. */
export function runDnsWorkerRole(config: Config, log: Log): Promise<void> {
  return runDnsWorker({ ...servingOf(config, log), of: config.DNS_WORKERS });
}

function servingOf(config: Config, log: Log) {
  const keys: TsigKey[] = config.DNS_AXFR_KEYS.map(({ name, secret }) => ({ name: wireName(name), secret: Buffer.from(secret, 'base64') }));
  return {
    listen: config.DNS_LISTEN.map(parseAddress), rateLimit: { perSecond: config.DNS_RRL_PER_SECOND, exempt: config.DNS_RRL_EXEMPT },
    transfer: { keys: [...platformTransferKeys(config.HOLDFAST_MASTER_KEY), ...keys], allow: config.DNS_AXFR_ALLOW }, nowMs: Date.now, log,
  };
}

async function remember(path: string, log: Log): ReturnType<typeof readSnapshot> {
  try {
    return await readSnapshot(path);
  } catch (error) {
    log.error({ err: error, path }, 'the snapshot of the zones cannot be used');
    return null;
  }
}
