import { access, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { SupervisorConfig } from '../config';
import type { Log } from '../core/log';
import { migrate } from '../db/migrate';
import { authorityFile } from '../edge/postgres/directories';
import { bootstrapTemporal } from '../temporal/bootstrap';
import { openTemporal } from '../temporal/connection';
import { formatAddress, type Addresses } from './addresses';
import { startChild } from './child';
import { startEmbeddedPostgres } from './embedded-postgres';
import type { Installation } from './installation';
import { logLines } from './log-lines';
import { step } from './progress';
import { Supervised, type Running } from './supervised';
import { findTemporalBinary } from './temporal-binary';
import { startTemporalServer } from './temporal-server';

const hostName = 'edge-postgres-host';

/** Every process of ours, with the entry file it runs and what only it is told. */
export const children = [
  { name: 'api', entry: 'api.js', env: {} },
  { name: hostName, entry: 'edge.js', env: { EDGE_SERVES: 'postgres-host' } },
  { name: 'edge-dns', entry: 'edge.js', env: { EDGE_SERVES: 'dns' } },
  { name: 'edge-gateway', entry: 'edge.js', env: { EDGE_SERVES: 'gateway' } },
  { name: 'edge-postgres', entry: 'edge.js', env: { EDGE_SERVES: 'postgres' } },
  { name: 'worker', entry: 'worker.js', env: {} },
  { name: 'registry', entry: 'commands/serve-registry.js', env: {} },
] as const;

/** Gateways first, so customers' connections end before what serves them; the database last. */
const stopOrder = ['registry', 'edge-gateway', 'edge-dns', 'edge-postgres', 'worker', 'api', 'edge-postgres-host', 'temporal', 'database'];

export interface SystemOptions {
  readonly config: SupervisorConfig;
  readonly given: Readonly<Record<string, string>>;
  readonly installation: Installation;
  readonly addresses: Addresses;
  /** Of the demo owner. */
  readonly login: { email: string; password: string };
  /** The repository. */
  readonly root: string;
  readonly log: Log;
  readonly say: (text: string) => void;
  /** Called whenever a process comes or goes. */
  readonly changed: () => void;
}

/** All processes of one installation, in the order in which they need each other. */
export class System {
  private readonly units = new Map<string, Supervised<Running>>();
  private stopping = false;

  constructor(private readonly options: SystemOptions) {}

  /** Name and pid of everything that runs now. */
  processes(): { name: string; pid: number }[] {
    return [...this.units.values()].flatMap(({ name, pid }) => (pid === undefined ? [] : [{ name, pid }]));
  }

  /** Resolves when every process does its work, with the database's address. Errors: one of them cannot be started; the others may be running. */
  async start(): Promise<{ databaseUrl: string }> {
    await mkdir(this.logDir, { recursive: true, mode: 0o700 });
    const temporal = this.startTemporal();
    temporal.catch(() => undefined);
    const { DATABASE_URL } = this.options.config;
    const databaseUrl = DATABASE_URL ?? (await this.startDatabase());
    if (DATABASE_URL) await step('Waiting for the database', () => untilReachable(DATABASE_URL));
    await step('Applying migrations', () => migrate(databaseUrl, join(this.options.root, 'prisma/migrations')));
    const env = this.childEnvironment(databaseUrl);
    const startAll = (chosen: readonly (typeof children)[number][]) => Promise.all(chosen.map((child) => this.startOne(child, env)));
    const chosen = children.filter(({ name }) => name !== 'registry' || this.options.addresses.registry);
    const others = step('Starting the processes', () => startAll(chosen.filter(({ name }) => name !== 'worker')));
    const worker = temporal.then(() => step('Starting the worker', () => startAll(chosen.filter(({ name }) => name === 'worker'))));
    await Promise.all([others, worker]);
    await step('Waiting until the API is ready', () => untilReady(`http://${formatAddress(this.options.addresses.api)}/readyz`));
    return { databaseUrl };
  }

  /** Ends everything in order; nothing is left. A process that does not end in `graceMs` is killed. */
  async stop(graceMs?: number): Promise<void> {
    this.stopping = true;
    for (const name of stopOrder) await this.units.get(name)?.stop(graceMs);
  }

  /** Ends everything now. */
  async kill(): Promise<void> {
    this.stopping = true;
    await Promise.all([...this.units.values()].map((unit) => unit.stop(500)));
  }

  private get logDir(): string {
    return join(this.options.installation.dir, 'logs');
  }

  private async supervise<R extends Running>(name: string, start: (spawned: (running: Running) => void) => Promise<R>): Promise<R> {
    if (this.stopping) throw new Error('The system is being stopped.');
    const { say, changed } = this.options;
    const unit = new Supervised<R>({ name, start, say, changed, hasServers: name === hostName });
    this.units.set(name, unit);
    return unit.start();
  }

  private async startDatabase(): Promise<string> {
    const { installation, addresses, config, say } = this.options;
    const { url } = await step('Starting PostgreSQL', () => this.supervise('database', (onSpawn) => startEmbeddedPostgres({
      nativeDir: join(this.postgresDir, 'native'),
      dataDir: join(installation.openDir, 'database'),
      port: addresses.database,
      password: installation.secrets.databasePassword,
      logFile: join(this.logDir, 'database.log'),
      user: config.PG_INITDB_USER,
      say, onSpawn,
    })));
    return url;
  }

  private async startTemporal(): Promise<void> {
    const { addresses, config, given, installation, root, say, log } = this.options;
    if (config.TEMPORAL_ADDRESS) return step('Preparing Temporal', () => this.prepareTemporal(config.TEMPORAL_ADDRESS ?? '', log));
    const binary = await findTemporalBinary({ env: given, root, say });
    const dbFile = join(installation.dir, 'temporal', 'temporal.db');
    await mkdir(join(dbFile, '..'), { recursive: true, mode: 0o700 });
    const logFile = join(this.logDir, 'temporal.log');
    await step('Starting Temporal', () => this.supervise('temporal', async (onSpawn) => {
      const server = await startTemporalServer({ binary, ...addresses.temporal, dbFile, logFile, onSpawn })
        .catch(async (error: unknown) => {
          await setAsideDamaged(dbFile, error, say);
          throw error;
        });
      await this.prepareTemporal(server.address, log);
      return server;
    }));
  }

  private async prepareTemporal(address: string, log: Log): Promise<void> {
    const { config, installation } = this.options;
    const temporal = openTemporal({ address, namespace: config.TEMPORAL_NAMESPACE, identity: `supervisor@${installation.id}` });
    try {
      await bootstrapTemporal(temporal.connection, { namespace: config.TEMPORAL_NAMESPACE, retentionHours: config.TEMPORAL_RETENTION_HOURS, log });
    } finally {
      await temporal.close();
    }
  }

  private startOne(child: (typeof children)[number], env: Readonly<Record<string, string>>): Promise<Running> {
    const { addresses, root, say } = this.options;
    const onLine = logLines(this.logDir, child.name, say);
    const own = { METRICS_ADDR: addresses.metrics.get(child.name) ?? '', ...child.env };
    return this.supervise(child.name, (spawned) => startChild({
      name: child.name, entry: join(root, 'dist/src', child.entry), env: { ...env, ...own }, onLine, readyWithinMs: 90_000,
    }, spawned));
  }

  /** The installation's certificate authority, as clients of this machine find it. */
  get authorityFile(): string {
    return authorityFile({ data: this.postgresDir });
  }

  private get postgresDir(): string {
    return this.options.config.PG_DATA_DIR ?? join(this.options.installation.openDir, 'postgres');
  }

  /** What was given, completed by what this installation has made. */
  private childEnvironment(databaseUrl: string): Record<string, string> {
    const { config, given, installation: { id, dir, secrets }, addresses, login } = this.options;
    return {
      HOLDFAST_MASTER_KEY: secrets.masterKey,
      AUTH_SECRET: secrets.authSecret,
      MAIL_VERP_SECRET: secrets.verpSecret,
      HOLDFAST_INSTALLATION: id,
      ...given,
      HOLDFAST_MODE: 'development',
      HOLDFAST_DATA_DIR: dir,
      DEMO_OWNER_EMAIL: login.email,
      DEMO_OWNER_PASSWORD: login.password,
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: config.TEMPORAL_ADDRESS ?? `127.0.0.1:${addresses.temporal.port}`,
      API_ADDR: formatAddress(addresses.api),
      ...(addresses.smtp ? { MAIL_INBOUND_HOST: addresses.smtp.host, MAIL_INBOUND_PORT: String(addresses.smtp.port) } : {}),
      PG_DATA_DIR: this.postgresDir,
      DNS_LISTEN: addresses.dns.map(formatAddress).join(','),
      ...(given['DNS_SERVERS'] ? {} : { DNS_SERVERS: addresses.dns.map(formatAddress).join(';') }),
      ...this.registryEnvironment(),
      PG_GATEWAY_ADDR: addresses.postgresGateway.map(formatAddress).join(','),
      GATEWAY_HTTP_ADDR: formatAddress(addresses.gateway.http),
      GATEWAY_HTTPS_ADDR: formatAddress(addresses.gateway.https),
      GATEWAY_ADMIN_ADDR: formatAddress(addresses.gateway.admin),
    };
  }

  /** Names under `test` come from our registry, unless whoever started us has a name space of his own. */
  private registryEnvironment(): Record<string, string> {
    const { given, addresses: { registry } } = this.options;
    if (!registry) return {};
    const [, ...servers] = registry.hosts.map((host) => formatAddress({ host, port: registry.port }));
    return { DNS_REGISTRY_PORT: String(registry.port), ...(given['DNS_TEST_SERVERS'] || given['DNS_ROOT_HINTS'] ? {} : { DNS_TEST_SERVERS: servers.join(',') }) };
  }
}

async function untilReachable(url: string): Promise<void> {
  for (const until = Date.now() + 60_000; ; await pause(250)) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return;
    } catch (error) {
      if (Date.now() > until) throw new Error('The database of DATABASE_URL cannot be reached.', { cause: error });
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

async function untilReady(url: string): Promise<void> {
  let last = 'no answer';
  for (const until = Date.now() + 60_000; Date.now() < until; await pause(50)) {
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
    if (response?.ok) return void (await response.body?.cancel());
    last = (await response?.text().catch(() => '')) ?? last;
  }
  throw new Error(`The API does not become ready: ${last}`);
}

/** A file that a power cut or a full disk has damaged is kept aside. What was accepted is in our database and is started again. */
async function setAsideDamaged(dbFile: string, error: unknown, say: (text: string) => void): Promise<void> {
  const damaged = error instanceof Error && /malformed|not a database|no such table|disk image|file is encrypted/i.test(error.message);
  if (!damaged || !(await access(dbFile).then(() => true, () => false))) return;
  const aside = `${dbFile}.damaged-${Date.now().toString(36)}`;
  await rename(dbFile, aside);
  for (const suffix of ['-wal', '-shm']) await rm(`${dbFile}${suffix}`, { force: true });
  say(`Temporal's file was damaged: it is kept as ${aside}; Temporal begins anew and accepted work is started again.`);
}
