import { rm, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Config } from '../../../config';
import { serveJsonLines, type Method } from '../../../core/json-lines';
import type { Log } from '../../../core/log';
import { hostCalls } from '../../../postgres/schemas/host';
import { planLimits, plans, type Plan } from '../../../postgres/rules';
import { Semaphore } from '../../../core/keyed-queue';
import { Copies } from './copies';
import { Fences } from './fences';
import { Growth } from './growth';
import { Guard } from './guard';
import type { Instance } from './instance';
import { InstanceSet } from './instance-set';
import { Leases } from './leases';
import { Pool, type PoolSizes } from './pool';
import { Rest } from './rest';
import { freeBytes, ServiceCalls, type Capacity } from './service-calls';
import { prepareSite, type SiteConfig } from './site';

export type HostConfig = SiteConfig & Pick<Config, 'PG_POOL_PREPARED' | 'PG_POOL_RUNNING' | 'PG_STOP_ON_EXIT'>;

export type PostgresHost = {
  /** Bytes that may be promised to services, and how many services there may be. */
  capacity: { bytes: number; services: number };
  pool: Pick<Pool, 'counts'>;
  /** Calls under way are answered; servers stop if PG_STOP_ON_EXIT says so, else they go on alone. */
  stop(): Promise<void>;
};

/** For tests: how long a service may rest before its server is stopped, how often that and storage are looked at, and for how long one that grows is closed. */
export type HostTimes = { idleMs?: (instance: Instance) => number | null; sweepMs?: number; guardMs?: number; closedMs?: number };

/**
 * The instance host: the only owner of directories and processes of customers' PostgreSQL on this machine (contract
 * postgres.md §6.1). Errors: one sentence when the machine cannot carry instances or another host serves the directory.
 */
export async function startPostgresHost(config: HostConfig, log: Log, times: HostTimes = {}): Promise<PostgresHost> {
  const site = await prepareSite(config, log);
  const socket = join(site.directories.run, 'host.sock');
  if (await answers(socket)) throw new Error(`Another instance host serves ${site.directories.run}.`);
  const set = await InstanceSet.load(site);
  const leases = new Leases();
  const capacity: Capacity = { bytes: config.PG_CAPACITY_BYTES ?? await defaultCapacity(site.directories.data), reserveBytes: config.PG_RESERVE_BYTES };
  const mayFill = async (): Promise<boolean> => !calls.busy && await freeBytes(site.directories.data) >= capacity.reserveBytes;
  const pool: Pool = new Pool(set, poolSizes(config), mayFill, log);
  const fences = await Fences.load(site.fences);
  const calls: ServiceCalls = new ServiceCalls(site, set, { fences, leases, capacity }, pool);
  const copies = new Copies({ site, set, leases, fences, calls });
  const rest = new Rest({ set, calls, leases, log }, times.idleMs);
  const guard = new Guard({ set, calls, leases, capacity, dataDir: site.directories.data, log }, new Growth(log, times.closedMs));
  const servers = await Promise.all([
    serveJsonLines(socket, 0o600, hostMethods(calls, copies), log),
    serveJsonLines(join(site.directories.run, 'gateway.sock'), 0o660, gatewayMethods(calls, leases), log),
  ]);
  const loops = [every(times.sweepMs ?? 5_000, () => rest.sweep(), log), every(times.guardMs ?? 1_000, () => guard.sweep(), log), every(1_000, () => rotateLogs(set), log)];
  pool.start();
  void startRestless(set, calls, log);
  return {
    capacity: { bytes: capacity.bytes, services: site.slots },
    pool,
    stop: async () => {
      copies.stop();
      await Promise.all([...loops.map((end) => end()), pool.stop(), ...servers.map((server) => server.close())]);
      if (config.PG_STOP_ON_EXIT) await stopAll(set);
      await Promise.all(['host.sock', 'gateway.sock'].map((name) => rm(join(site.directories.run, name), { force: true })));
    },
  };
}

function hostMethods(calls: ServiceCalls, copies: Copies): Record<string, Method> {
  return {
    place: (params) => calls.place(hostCalls.place.parse(params)),
    ensureInstance: (params) => calls.ensureInstance(hostCalls.ensureInstance.parse(params)),
    ensureAccess: (params) => calls.ensureAccess(hostCalls.ensureAccess.parse(params)),
    setLimits: (params) => calls.setLimits(hostCalls.setLimits.parse(params)),
    setAccessMode: (params) => calls.setAccessMode(hostCalls.setAccessMode.parse(params)),
    observe: (params) => calls.observe(hostCalls.observe.parse(params)),
    destroy: (params) => calls.destroy(hostCalls.destroy.parse(params)),
    inventory: async () => calls.inventory(),
    snapshot: (params) => copies.snapshot(hostCalls.snapshot.parse(params)),
    restore: (params) => copies.restore(hostCalls.restore.parse(params)),
    dropBackup: (params) => copies.dropBackup(hostCalls.dropBackup.parse(params)),
    drill: (params) => copies.drill(hostCalls.drill.parse(params)),
  };
}

function gatewayMethods(calls: ServiceCalls, leases: Leases): Record<string, Method> {
  return {
    acquire: (params, peer) => calls.acquire(hostCalls.acquire.parse(params).serviceId, peer),
    release: async (params, peer) => {
      leases.release(hostCalls.release.parse(params).serviceId, peer);
      return null;
    },
  };
}

/** Services that never rest run again after a restart of the machine. */
async function startRestless(set: InstanceSet, calls: ServiceCalls, log: Log): Promise<void> {
  const nobody = AbortSignal.abort();
  for (const { record: { serviceId, plan, systemId, mode, stopped } } of set.all()) {
    if (!serviceId || !plan || !systemId || stopped || mode === 'blocked' || planLimits[plan].idleStopMinutes !== null) continue;
    await calls.acquire(serviceId, nobody).catch((error: unknown) => log.error({ err: error, serviceId }, 'a Postgres instance did not start'));
  }
}

async function stopAll(set: InstanceSet): Promise<void> {
  const four = new Semaphore(4);
  await Promise.all(set.all().map((instance) => four.run(() => instance.stop())));
}

/** A customer's functions can write a log as fast as the disk takes it, and it is in nobody's quota. */
async function rotateLogs(set: InstanceSet): Promise<void> {
  for (const instance of set.all()) if (instance.pid !== null) await instance.rotateLog();
}

/** Runs `work` again `ms` after it has ended; the answer ends the loop once what is under way is done. */
function every(ms: number, work: () => Promise<void>, log: Log): () => Promise<void> {
  let ended = false;
  let current: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout;
  const turn = () => {
    current = work().catch((error: unknown) => log.warn({ err: error }, 'a sweep of the instance host failed')).then(() => {
      if (!ended) timer = setTimeout(turn, ms).unref();
    });
  };
  timer = setTimeout(turn, ms).unref();
  return () => {
    ended = true;
    clearTimeout(timer);
    return current;
  };
}

function poolSizes(config: Pick<Config, 'PG_POOL_PREPARED' | 'PG_POOL_RUNNING'>): PoolSizes {
  const entries = config.PG_POOL_RUNNING.split(',').map((entry) => entry.split(':'));
  const running: Partial<Record<Plan, number>> = {};
  for (const plan of plans) {
    const wanted = entries.find(([name]) => name === plan)?.[1];
    if (wanted) running[plan] = Number(wanted);
  }
  return { prepared: config.PG_POOL_PREPARED, running };
}

async function defaultCapacity(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return Math.floor(blocks * bsize * 0.8);
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(socket, () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', () => resolve(false));
  });
}
