import { resolve } from 'node:path';
import { createActivities } from '../activities';
import { activityInterceptor } from '../activities/steps';
import { loadConfig, type Config } from './config';
import { serveMetrics } from './core/metrics-server';
import type { Log } from './core/log';
import { announceReady, onShutdown, runProcess } from './core/process';
import { missingMigrations } from './db/migrate';
import { readHostsFile, registerServers, type ServerEntry } from './postgres/registered-servers';
import { openCore, openWorker, schedules, startMailOf, type WorkerDeps } from './deps';
import { followPlatform, startFlattening, startSyncRelay } from './dns/service';
import { watchCertificates } from './gateway/service';
import { startMailRelay } from './identity/service';
import { startIntakeListener } from './mail/intake/listener';
import { startSimulatedReports } from './mail/intake/simulated';
import { startWebhookSender } from './mail/webhooks/sender';
import { startMailDeliveryRelay } from './mail/service';
import { startBatchOf, startDeliveryOf } from './mail-composition';
import { startRelay } from './operations/relay';
import { bootstrapTemporal } from './temporal/bootstrap';
import { ensureSchedules } from './temporal/schedules';
import { installRuntime, serveQueues, type Workers } from './temporal/workers';

/** A worker gets this long to end what it does: the grace time of its activities and a little. */
const drainMs = 30_000;

async function main(config: Config): Promise<void> {
  const core = openCore(config, 'worker');
  const deps = openWorker(core);
  installRuntime(core.log);
  const servers = config.PG_HOSTS_FILE && config.WORKER_QUEUES.includes('postgres') ? readHostsFile(config.PG_HOSTS_FILE) : null;
  let taken: () => void = () => undefined;
  const serving = new Promise<void>((resolve) => {
    taken = resolve;
  });
  const platform = onceDone(async () => {
    const bumped = await followPlatform(deps);
    if (bumped > 0) core.log.info({ zones: bumped }, 'addresses are configured otherwise than before: zones have new versions');
  }, core.log);
  const workers = serveQueues({
    address: config.TEMPORAL_ADDRESS, namespace: config.TEMPORAL_NAMESPACE, queues: config.WORKER_QUEUES, buildId: config.WORKER_BUILD_ID,
    activities: createActivities(deps), interceptor: activityInterceptor({ database: core.db, log: core.log }), log: core.log,
    prepare: (first) => prepare(deps, first, { servers, platform }),
    serving: taken,
  });
  const relay = startRelay({ ...deps, database: core.db });
  const mailRelay = startMailRelay({ ...deps, start: startMailOf(deps.temporal) });
  const zoneLoops = [startSyncRelay(deps), startFlattening(deps), watchCertificates(deps)];
  const webhooks = startWebhookSender(deps);
  const simulated = startSimulatedReports(deps);
  const intake = config.MAIL_INBOUND_ENABLED && config.WORKER_QUEUES.includes('mail') ? await startIntakeListener(deps) : null;
  const deliveryRelay = startMailDeliveryRelay({
    ...deps, startDelivery: startDeliveryOf(deps.temporal), startBatch: startBatchOf(deps.temporal),
    startsPerSecond: config.MAIL_RELAY_STARTS_PER_SECOND, batchSize: config.MAIL_BATCH_SIZE,
  });
  const metrics = await serveMetrics(config.METRICS_ADDR, core.metrics.registry, () => readiness(deps, workers));
  onShutdown(async () => {
    await Promise.all([workers.stop(), relay.stop(), mailRelay.stop(), ...zoneLoops.map((loop) => loop.stop()), deliveryRelay.stop(), webhooks.stop(), simulated.stop(), intake?.close()]);
    await Promise.all([metrics.close(), core.listener.close(), deps.temporal.close()]);
    await core.db.close();
  }, drainMs);
  await serving;
  core.log.info({ queues: config.WORKER_QUEUES, metrics: metrics.address }, 'the worker takes work');
  announceReady({ metrics: metrics.address });
}

/** Runs `work` when first called, beside whatever the caller does, and again at a later call when it has failed. */
function onceDone(work: () => Promise<void>, log: Log): () => void {
  let begun = false;
  return () => {
    if (begun) return;
    begun = true;
    work().catch((error: unknown) => {
      begun = false;
      log.warn({ err: error }, 'zones do not follow the configured addresses yet');
    });
  };
}

async function prepare({ config, temporal, log, ...deps }: WorkerDeps, first: boolean, { servers, platform }: { servers: ServerEntry[] | null; platform: () => void }): Promise<void> {
  await bootstrapTemporal(temporal.connection, { namespace: config.TEMPORAL_NAMESPACE, retentionHours: config.TEMPORAL_RETENTION_HOURS, log });
  await ensureSchedules(temporal.client, schedules, { correct: first });
  if (config.WORKER_QUEUES.includes('dns')) platform();
  if (first && servers) await registerServers(deps, servers);
}

/** As of the API: the database decides. Temporal decides only until work was first taken from it. */
async function readiness({ db, temporal }: WorkerDeps, workers: Workers): Promise<{ ok: boolean; checks: Record<string, string> }> {
  const database = await missingMigrations(db.pool, resolve('prisma/migrations'))
    .then((missing) => (missing.length === 0 ? 'ok' : `${missing.length} migrations not applied`), () => 'failed');
  const answers = await temporal.within(1_000, () => temporal.connection.workflowService.getSystemInfo({})).then(() => 'ok', () => 'no answer');
  return { ok: database === 'ok' && workers.state === 'serving', checks: { database, temporal: answers, workers: workers.state } };
}

runProcess(async () => main(loadConfig()));
