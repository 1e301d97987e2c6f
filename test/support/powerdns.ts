import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until';

const binary = '/usr/sbin/pdns_server';
const schema = ['/usr/share/doc/pdns-backend-sqlite3/schema.sqlite3.sql', '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql'].find((path) => existsSync(path));

/** Why PowerDNS cannot run here; null when it can. */
export const powerdnsMissing = !existsSync(binary) ? 'pdns_server is not installed' : !schema ? 'the sqlite3 backend of pdns_server is not installed' : !existsSync('/usr/bin/sqlite3') ? 'sqlite3 is not installed' : null;

/** A real PowerDNS with an HTTP API and an empty SQLite database, on loopback. */
export class TestPowerdns {
  private child: ChildProcess | undefined;

  private constructor(private readonly directory: string, readonly host: string, readonly port: number, readonly apiPort: number) {}

  static async start(): Promise<TestPowerdns> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-pdns-'));
    execFileSync('/usr/bin/sqlite3', [join(directory, 'pdns.sqlite3'), `.read ${schema ?? ''}`]);
    const server = new TestPowerdns(directory, '127.0.0.1', await freePort(), await freePort());
    await server.resume();
    return server;
  }

  readonly apiKey = 'test-key';

  get url(): string {
    return `http://${this.host}:${this.apiPort}`;
  }

  /** Up again with what it had. */
  async resume(): Promise<void> {
    const settings = {
      launch: 'gsqlite3', 'gsqlite3-database': join(this.directory, 'pdns.sqlite3'), 'local-address': this.host, 'local-port': this.port, 'socket-dir': this.directory, daemon: 'no', guardian: 'no', 'disable-syslog': 'yes',
      api: 'yes', 'api-key': this.apiKey, webserver: 'yes', 'webserver-address': this.host, 'webserver-port': this.apiPort, 'webserver-allow-from': '127.0.0.0/8', 'cache-ttl': 0, 'query-cache-ttl': 0, 'negquery-cache-ttl': 0, 'zone-cache-refresh-interval': 0,
    };
    writeFileSync(join(this.directory, 'pdns.conf'), Object.entries(settings).map(([key, value]) => `${key}=${value}`).join('\n'));
    this.child = spawn(binary, [`--config-dir=${this.directory}`], { stdio: 'ignore' });
    await until(() => fetch(`${this.url}/api/v1/servers/localhost`, { headers: { 'X-API-Key': this.apiKey } }).then(({ ok }) => ok, () => false), 'PowerDNS');
  }

  async stop(): Promise<void> {
    const { child } = this;
    this.child = undefined;
    if (!child || child.exitCode !== null) return;
    await new Promise((done) => {
      child.once('exit', done);
      child.kill('SIGKILL');
    });
  }

  async close(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A request to its API as somebody else makes it. */
  async api(method: string, path: string, body?: unknown): Promise<Response> {
    return fetch(`${this.url}/api/v1/servers/localhost${path}`, { method, headers: { 'X-API-Key': this.apiKey, 'Content-Type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done));
  const address = probe.address();
  await new Promise((done) => probe.close(done));
  return typeof address === 'object' && address ? address.port : 0;
}
