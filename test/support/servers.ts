import { createServer, type Server } from 'node:http';
import { chown, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { ensureCatalogue } from '../../src/billing/catalogue';
import { openDatabase } from '../../src/db/client';
import { migrate } from '../../src/db/migrate';
import { serverUser, startEmbeddedPostgres } from '../../src/dev/embedded-postgres';
import { openInstallation } from '../../src/dev/installation';
import type { LeashedServer } from '../../src/dev/leash';
import { anyFreePort } from '../../src/dev/ports';
import { findTemporalBinary } from '../../src/dev/temporal-binary';
import { startTemporalServer } from '../../src/dev/temporal-server';
import { searchAttributeNames } from '../../src/temporal/search-attributes';
import { billingDefaults } from './billing-defaults';

const here = resolve(__dirname, '../..');
/** The repository; benchmarks run this file from dist/. */
export const root = basename(here) === 'dist' ? dirname(here) : here;

/**
 * The servers of one run of jest. They start when a test file first asks (over HTTP, for the files run in processes of their
 * own), are shared by all of them and end with the run, also when it is killed.
 */
export class TestServers {
  private readonly broker: Server;
  private readonly servers: LeashedServer[] = [];
  private readonly answers = new Map<string, Promise<string>>();
  private external: string | undefined;

  constructor() {
    this.broker = createServer((request, response) => {
      this.answer(request.url ?? '').then((text) => response.end(text), (error: unknown) => {
        response.writeHead(500).end(error instanceof Error ? (error.stack ?? error.message) : String(error));
      });
    });
  }

  /** The origin test files ask at. */
  async listen(): Promise<string> {
    const port = await anyFreePort();
    await new Promise<void>((done) => this.broker.listen(port, '127.0.0.1', done));
    this.broker.unref();
    return `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.broker.closeAllConnections();
    this.broker.close();
    await Promise.allSettled(this.answers.values());
    if (this.external) await onServer(this.external, `drop database if exists ${templateName} with (force)`);
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  private answer(path: string): Promise<string> {
    let answer = this.answers.get(path);
    if (!answer) {
      answer = path === '/database' ? this.startDatabase() : path === '/temporal' ? this.startTemporal() : Promise.reject(new Error(`no such server: ${path}`));
      this.answers.set(path, answer);
    }
    return answer;
  }

  /** `<url of the server> <name of a database that holds every migration>`. */
  private async startDatabase(): Promise<string> {
    this.external = process.env['TEST_DATABASE_URL'];
    const url = this.external ?? (await this.startPostgres());
    await onServer(url, `create database ${templateName}`);
    const template = new URL(url);
    template.pathname = `/${templateName}`;
    await migrate(template.href, join(root, 'prisma/migrations'));
    await loadCatalogue(template.href);
    return `${url} ${templateName}`;
  }

  private async startPostgres(): Promise<string> {
    const { openDir } = await openInstallation(join(root, '.holdfast'));
    const home = await mkdtemp(join(tmpdir(), 'holdfast-test-postgres-'));
    const user = await serverUser(process.env['PG_INITDB_USER']);
    if (user) await chown(home, user.uid, user.gid);
    const server = await startEmbeddedPostgres({
      nativeDir: join(openDir, 'postgres/native'),
      dataDir: join(home, 'data'),
      port: await anyFreePort(),
      password: 'test',
      logFile: join(home, 'log'),
      user: process.env['PG_INITDB_USER'],
      settings: { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', max_connections: '300', max_wal_size: '4GB' },
      removeAfterwards: home,
    });
    this.servers.push(server);
    return server.url;
  }

  private async startTemporal(): Promise<string> {
    const given = process.env['TEST_TEMPORAL_ADDRESS'];
    if (given) return given;
    const say = (text: string) => void process.stderr.write(`${text}\n`);
    const home = await mkdtemp(join(tmpdir(), 'holdfast-test-temporal-'));
    const server = await startTemporalServer({
      binary: await findTemporalBinary({ env: process.env, root, say }),
      port: await anyFreePort(),
      httpPort: await anyFreePort(),
      metricsPort: await anyFreePort(),
      uiPort: null,
      dbFile: null,
      logFile: join(home, 'log'),
      removeAfterwards: home,
      searchAttributes: searchAttributeNames,
    });
    this.servers.push(server);
    return server.address;
  }
}

/** What every process finds at boot: the plans that are sold. */
async function loadCatalogue(url: string): Promise<void> {
  const database = openDatabase({ url, max: 1, process: 'test', log: pino({ level: 'silent' }) });
  await ensureCatalogue(database, billingDefaults);
  await database.close();
}

/** Named after the run, so that runs against one TEST_DATABASE_URL do not meet. */
const templateName = `holdfast_template_${process.pid}`;

async function onServer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
