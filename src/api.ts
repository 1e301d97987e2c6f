import { resolve } from 'node:path';
import { ensureCatalogue } from './billing/catalogue';
import { developmentEventsSecret, loadConfig, type Config } from './config';
import { serveMetrics } from './core/metrics-server';
import { announceReady, onShutdown, runProcess } from './core/process';
import { listen } from './core/listen';
import { migrate, missingMigrations } from './db/migrate';
import { openApi, openCore, type AppDeps } from './deps';
import { loadRuleFacts } from './gateway/service';
import { capturedMail } from './http/captured';
import { documentation } from './http/docs';
import { health, ProbeFailure, type HealthDeps } from './http/health';
import { routes } from './http/routes';
import { createApp, createHttpServer } from './http/server';
import { capturedPage } from './mail/captured/pages';
import { ensureDemo, issueSetupToken } from './identity/service';

const migrationsDir = resolve('prisma/migrations');

async function main(config: Config): Promise<void> {
  const core = openCore(config, 'api');
  const deps = openApi(core);
  await migrate(config.DATABASE_URL, migrationsDir);
  await ensureCatalogue(core.db, config);
  await ensureFirstAccount(deps);
  const server = createHttpServer(createApp(deps, routes, (app) => {
    health(app, probes(deps));
    documentation(routes)(app);
    if (config.HOLDFAST_MODE === 'development') capturedMail((path) => capturedPage(core.db.prisma, path))(app);
  }));
  const address = await listen(server, config.API_ADDR);
  const metrics = await serveMetrics(config.METRICS_ADDR, core.metrics.registry, () => ({ ok: true }));
  onShutdown(async () => {
    deps.watch.close();
    await new Promise((done) => {
      server.close(done);
      server.closeIdleConnections();
    });
    await Promise.all([deps.dispatcher.drain(), deps.mailDispatcher.drain(), deps.mailStarts.drain()]);
    await Promise.all([metrics.close(), core.listener.close(), deps.temporal.close()]);
    await deps.db.close();
  });
  core.log.info({ address, metrics: metrics.address }, 'the API answers');
  announceReady({ address, metrics: metrics.address });
  // Whoever asks first would otherwise wait until the gateway's rules are read.
  loadRuleFacts(deps.policyEvaluator).catch((error: unknown) => core.log.error({ err: error }, 'the rules of the security gateway cannot be read'));
}

/** Development: the demo organisation. Elsewhere a token for whoever sets the installation up, printed until that is done. */
async function ensureFirstAccount(deps: AppDeps): Promise<void> {
  const { config } = deps;
  if (config.HOLDFAST_MODE === 'development') {
    const made = await ensureDemo(deps, { email: config.DEMO_OWNER_EMAIL, password: config.DEMO_OWNER_PASSWORD });
    // Who gave the password knows it; it stays out of the log then.
    if (config.MAIL_EVENTS_GENERIC_SECRETS.includes(developmentEventsSecret)) process.stdout.write(`Provider events are signed with ${developmentEventsSecret} (development only)\n`);
    if (made && !config.DEMO_OWNER_PASSWORD) process.stdout.write(`Demo owner ${made.email}, password ${made.password}\n`);
    return;
  }
  const token = await issueSetupToken(deps);
  if (token) process.stdout.write(`This installation is new. Set it up within 24 hours: POST ${config.PUBLIC_URL}/v1/api/auth/setup with the token ${token}\n`);
}

function probes({ db, temporal }: AppDeps): HealthDeps {
  return {
    database: async () => void (await db.pool.query('select 1')),
    migrations: async () => {
      const missing = await missingMigrations(db.pool, migrationsDir);
      if (missing.length > 0) throw new ProbeFailure(`${missing.length} not applied`);
    },
    temporal: () => temporal.within(1_000, async () => void (await temporal.connection.workflowService.getSystemInfo({}))),
  };
}

runProcess(async () => main(loadConfig()));
