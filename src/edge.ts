import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { loadConfig, type Config } from './config';
import { parseAddress } from './core/listen';
import { serveMetrics, type Readiness } from './core/metrics-server';
import { announceReady, onShutdown, runProcess } from './core/process';
import { migrate } from './db/migrate';
import { openCore, type CoreDeps } from './deps';
import { platformOf } from './dns/rules/platform';
import { platformTransferKeys } from './dns/rules/transfer-key';
import { wireName } from './dns/rules/wire/name';
import type { TsigKey } from './dns/rules/wire/tsig';
import { DatabaseFeed } from './edge/dns/database-feed';
import { startDnsServer } from './edge/dns/server';
import { startPostgresGateway } from './edge/postgres/gateway/gateway';
import { gatewayOptions } from './edge/postgres/gateway/options';
import { startPostgresHost } from './edge/postgres/host/host';
import { keepRegistered } from './edge/postgres/host/registration';

type Role = Config['EDGE_SERVES'][number];
/** A part of the data plane that runs in this process. */
type Running = { facts: Readonly<Record<string, unknown>>; ready(): Readiness; stop(): Promise<void> };

/** Sessions may end by themselves for this long; where the servers stop with the platform there is nothing to wait for. */
const sessionGraceMs = { serversStay: 20_000, serversStop: 500 };

/** Every role serves on while the database is away, so none of them waits for it longer than its own start needs. */
const starters: Readonly<Partial<Record<Role, (core: CoreDeps) => Promise<Running>>>> = {
  async 'postgres-host'({ config, db, log }) {
    const host = await startPostgresHost(config, log);
    const registration = await keepRegistered(db, { name: config.PG_HOST_NAME, region: config.PG_REGION, capacity: host.capacity }, log);
    return {
      facts: { postgresPool: host.pool.counts() },
      ready: () => ({ ok: true, pool: host.pool.counts() }),
      stop: async () => {
        registration.stop();
        await host.stop();
      },
    };
  },
  async dns({ config, db, listener, log }) {
    const listen = config.DNS_LISTEN.map(parseAddress);
    const platform = platformOf(config);
    const feed = new DatabaseFeed({ db, listener, platform, serverId: `${hostname()}/${config.DNS_LISTEN.join(',')}`, addresses: config.DNS_LISTEN, pollMs: config.DNS_POLL_MS, log });
    const server = await startDnsServer({
      listen, feed, rateLimit: { perSecond: config.DNS_RRL_PER_SECOND, exempt: config.DNS_RRL_EXEMPT }, transfer: { keys: transferKeysOf(config), allow: config.DNS_AXFR_ALLOW }, notify: config.DNS_NOTIFY_TARGETS, nowMs: Date.now, log,
    });
    return { facts: { dns: server.addresses }, ready: () => ({ ok: true, zones: server.versions().length }), stop: () => server.close() };
  },
  async postgres(core) {
    const gateway = await startPostgresGateway(gatewayOptions(core.config, { ...core, registry: core.metrics.registry }));
    return { facts: { postgres: gateway.addresses }, ready: () => ({ ok: gateway.loaded() }), stop: () => gateway.drain(core.config.PG_STOP_ON_EXIT ? sessionGraceMs.serversStop : sessionGraceMs.serversStay) };
  },
};

/** Ours, which sync reads zones with, and those the operator gave to secondaries. */
function transferKeysOf(config: Config): TsigKey[] {
  return [...platformTransferKeys(config.HOLDFAST_MASTER_KEY), ...config.DNS_AXFR_KEYS.map(({ name, secret }) => ({ name: wireName(name), secret: Buffer.from(secret, 'base64') }))];
}

async function main(config: Config): Promise<void> {
  const roles = config.EDGE_SERVES.filter((role) => starters[role]);
  const core = openCore(config, `edge-${roles.join('-')}`);
  await migrate(config.DATABASE_URL, resolve('prisma/migrations'))
    .catch((error: unknown) => core.log.warn({ err: error }, 'the database could not be migrated; the edge starts with what it has'));
  const running = new Map<Role, Running>();
  for (const role of roles) {
    const started = await starters[role]?.(core);
    if (started) running.set(role, started);
  }
  const readiness = (): Readiness => {
    const states = Object.fromEntries([...running].map(([role, part]) => [role, part.ready()]));
    return { ok: Object.values(states).every((state) => state.ok), ...states };
  };
  const metrics = await serveMetrics(config.METRICS_ADDR, core.metrics.registry, readiness);
  onShutdown(async () => {
    await Promise.all([...running.values()].map((part) => part.stop()));
    await Promise.all([metrics.close(), core.listener.close()]);
    await core.db.close();
  });
  const facts = Object.fromEntries([...running.values()].flatMap((part) => Object.entries(part.facts)));
  core.log.info({ roles, metrics: metrics.address, ...facts }, 'the edge serves');
  announceReady({ metrics: metrics.address, ...facts });
}

runProcess(async () => main(loadConfig()));
