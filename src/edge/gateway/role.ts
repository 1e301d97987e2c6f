import cluster from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { availableParallelism, hostname } from 'node:os';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import type { Config } from '../../config';
import type { Log } from '../../core/log';
import { serveMetrics, type Readiness } from '../../core/metrics-server';
import type { Secrets } from '../../core/secrets';
import type { Database } from '../../db/client';
import type { Listener } from '../../db/listen';
import { removeInstance } from '../../gateway/store/feed';
import { isSharedMessage, type SharedMessage } from './exchange';
import { startGateway, type Gateway, type GatewayDeps } from './gateway';
import { isWorkerMessage, tellParent, type ToWorker } from './worker-messages';
import { WorkerPool } from './worker-pool';

type Core = { config: Config; db: Database; listener: Listener; secrets: Secrets; log: Log; registry: Registry };
/** What one process needs besides: judges, events, routes. `send`: to the other processes of this gateway; null: there are none. */
export type OpenParts = (process: { instanceId: string; index: number; workers: number; send: ((message: SharedMessage) => void) | null }) => Promise<GatewayParts>;
export type GatewayParts = Pick<GatewayDeps, 'routes' | 'makeJudge' | 'defaultPolicy' | 'sink' | 'describe' | 'resolveName' | 'mayDial'> & {
  receive(message: SharedMessage): void;
  /** What is still to be stored is stored, or kept on disk. */
  close(): Promise<void>;
};

/** From the signal to the last open request (contract gateway.md §2, draining); what is left is cut, so that storing has time. */
const drainMs = 28_000;

/** The security gateway of this installation: one process or GATEWAY_WORKERS of them, and its admin address. Errors: an address is taken. */
export async function startGatewayRole(core: Core, open: OpenParts): Promise<{ addresses: Gateway['addresses'] & { admin: string }; ready: () => Readiness; stop: () => Promise<void> }> {
  const workers = core.config.GATEWAY_WORKERS || availableParallelism();
  let ready: () => Readiness = () => ({ ok: false, state: 'starting' });
  const pool = workers > 1 ? new WorkerPool(core.registry, core.log, (instanceId) => removeInstance(core.db.prisma, instanceId)) : null;
  const admin = await serveMetrics(core.config.GATEWAY_ADMIN_ADDR, pool?.registry ?? core.registry, () => ready());
  const running = pool ? await pool.start(workers) : await startProcess(core, open, { index: 0, workers: 1, send: null });
  ready = () => ({ ok: true, state: 'ready', zones: running.zones(), workers: pool?.size ?? 1 });
  return {
    addresses: { ...running.addresses, admin: admin.address }, ready: () => ready(),
    stop: async () => {
      ready = () => ({ ok: false, state: 'draining' });
      await running.stop(drainMs);
      await admin.close();
    },
  };
}

/** One of the processes that `startGatewayRole` has forked. Resolves when it may end. */
export async function runGatewayWorker(core: Core, open: OpenParts, index: number): Promise<void> {
  const workers = core.config.GATEWAY_WORKERS || availableParallelism();
  // A signal to the whole group is for the parent to follow, which then ends us in order.
  process.on('SIGTERM', () => undefined).on('SIGINT', () => undefined);
  let zones = () => 0; // asked while it starts as well
  try {
    const closing = new Promise<number>((resolve) => {
      process.on('message', (message: unknown) => {
        if (isWorkerMessage<ToWorker>(message) && message.gateway === 'close') resolve(message.graceMs);
        if (isWorkerMessage<ToWorker>(message) && message.gateway === 'metrics') void core.registry.getMetricsAsJSON().then((metrics) => tellParent({ gateway: 'metrics', asked: message.asked, metrics, zones: zones() }));
      });
    });
    const gateway = await startProcess(core, open, { index, workers, send: (message) => void process.send?.(message) });
    zones = () => gateway.zones();
    await tellParent({ gateway: 'bound', addresses: gateway.addresses, instanceId: gateway.instanceId, zones: zones() });
    await gateway.stop(await closing);
  } catch (error) {
    await tellParent({ gateway: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
  if (process.connected) process.disconnect();
}

/** The others' messages are heard from the start. A restarted process is another instance: it has acknowledged nothing yet. */
async function startProcess(core: Core, open: OpenParts, process_: { index: number; workers: number; send: ((message: SharedMessage) => void) | null }): Promise<Gateway & { instanceId: string }> {
  const { config } = core;
  const { index, workers } = process_;
  const instanceId = `${hostname()}/${config.GATEWAY_HTTP_ADDR}/${index}-${randomBytes(4).toString('hex')}`;
  const parts = await open({ instanceId, ...process_ });
  if (cluster.isWorker) process.on('message', (message: unknown) => isSharedMessage(message) && parts.receive(message));
  const gateway = await startGateway({
    ...core, ...parts, instanceId, http: config.GATEWAY_HTTP_ADDR, https: config.GATEWAY_HTTPS_ADDR, trustedProxies: config.GATEWAY_TRUSTED_PROXIES, bodyBytesMax: config.GATEWAY_MAX_BODY_BYTES,
    loopToken: `${config.HOLDFAST_INSTALLATION}.gateway.holdfast`.toLowerCase(), snapshotFile: join(config.GATEWAY_SNAPSHOT_DIR, 'snapshot'), writesSnapshot: index === 0, share: workers,
  });
  return {
    ...gateway, instanceId,
    stop: async (graceMs) => {
      await gateway.stop(graceMs);
      await parts.close();
    },
  };
}

