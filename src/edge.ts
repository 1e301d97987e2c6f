import cluster from 'node:cluster';
import { resolve } from 'node:path';
import { storeUsage } from './billing/service';
import { loadConfig, type Config } from './config';
import { createLog } from './core/log';
import { serveMetrics, type Readiness } from './core/metrics-server';
import { announceReady, onShutdown, runProcess } from './core/process';
import { migrate } from './db/migrate';
import { inTransaction } from './db/transaction';
import { openCore, openGateway, type CoreDeps } from './deps';
import { runDnsWorkerRole, startDnsRole } from './edge/dns/role';
import { runGatewayWorker, startGatewayRole } from './edge/gateway/role';
import { startPostgresGateway } from './edge/postgres/gateway/gateway';
import { gatewayOptions } from './edge/postgres/gateway/options';
import { startPostgresHost } from './edge/postgres/host/host';
import { keepRegistered } from './edge/postgres/host/registration';

/** The gateway's open requests have 28 s, then what they left is stored. */
const drainDeadlineMs = 31_500;

type Role = Config['EDGE_SERVES'][number];
/** A part of the data plane that runs in this process. */
type Running = { facts: Readonly<Record<string, unknown>>; ready(): Readiness; stop(): Promise<void> };

/** Sessions may end by themselves for this long; where the servers stop with the platform there is nothing to wait for. */
const sessionGraceMs = { serversStay: 25_000, serversStop: 500 };

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
    const dns = await startDnsRole({ config, db, listener, log, storeUsage: (facts) => inTransaction(db, (tx) => storeUsage(tx, facts)) });
    return { facts: { dns: dns.addresses }, ready: () => ({ ok: true, zones: dns.zones() }), stop: dns.stop };
  },
  async gateway(core) {
    const gateway = await startGatewayRole({ ...core, registry: core.metrics.registry }, openGateway(core));
    return { facts: { gateway: gateway.addresses }, ready: gateway.ready, stop: gateway.stop };
  },
  async postgres(core) {
    const gateway = await startPostgresGateway(gatewayOptions(core.config, { ...core, registry: core.metrics.registry }));
    return { facts: { postgres: gateway.addresses }, ready: () => ({ ok: gateway.loaded() }), stop: () => gateway.drain(core.config.PG_STOP_ON_EXIT ? sessionGraceMs.serversStop : sessionGraceMs.serversStay) };
  },
};

async function main(config: Config): Promise<void> {
  if (cluster.isWorker) return runWorker(config);
  const roles = config.EDGE_SERVES.filter((role) => starters[role]);
  const core = openCore(config, `edge-${roles.join('-')}`);
  await migrate(config.DATABASE_URL, resolve('prisma/migrations'))
    .catch((error: unknown) => core.log.warn({ err: error }, 'the database could not be migrated; the edge starts with what it has'));
  const running = new Map<Role, Running>();
  const readiness = (): Readiness => {
    const states = Object.fromEntries(roles.map((role) => [role, running.get(role)?.ready() ?? { ok: false }]));
    return { ok: Object.values(states).every((state) => state.ok), ...states };
  };
  const metrics = await serveMetrics(config.METRICS_ADDR, core.metrics.registry, readiness);
  onShutdown(async () => {
    await Promise.all([...running.values()].map((part) => part.stop()));
    await Promise.all([metrics.close(), core.listener.close()]);
    await core.db.close();
  }, drainDeadlineMs);
  // At once: one that waits for the database keeps no other from serving.
  await Promise.all(roles.map(async (role) => {
    const started = await starters[role]?.(core);
    if (started) running.set(role, started);
  }));
  const facts = Object.fromEntries([...running.values()].flatMap((part) => Object.entries(part.facts)));
  core.log.info({ roles, metrics: metrics.address, ...facts }, 'the edge serves');
  announceReady({ metrics: metrics.address, ...facts });
}

/** One of the processes that a role has forked; which one and what for it is told as arguments. */
async function runWorker(config: Config): Promise<void> {
  const [, , role, index = '0'] = process.argv;
  if (role === 'dns') return runDnsWorkerRole(config, createLog('edge-dns-worker', config.LOG_LEVEL));
  const core = openCore(config, `edge-gateway-${index}`);
  await runGatewayWorker({ ...core, registry: core.metrics.registry }, openGateway(core), Number(index));
  await core.listener.close();
  await core.db.close();
}

runProcess(async () => main(loadConfig()));
