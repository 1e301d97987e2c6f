import { chmod, chown, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { HostPoolBackend } from '../../src/adapters/postgres-backend/host-pool/backend';
import type { PoolServer } from '../../src/adapters/postgres-backend/host-pool/server';
import { createAuthority, issueLeaf } from '../../src/core/certificates';
import { serverUser, startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/dev/embedded-postgres';
import { openInstallation } from '../../src/dev/installation';
import { anyFreePort } from '../../src/dev/ports';
import type { TestService } from './postgres-host';

const authority = createAuthority('Test server CA');
const adminPassword = 'admin-of-the-pool';

/** A PostgreSQL with TLS that an administrator has prepared by the recipe of docs/operating.md, word for word. */
export class TestPoolServer {
  private constructor(private readonly server: EmbeddedPostgres, readonly port: number) {}

  static async start({ prepared = true }: { prepared?: boolean } = {}): Promise<TestPoolServer> {
    const { openDir } = await openInstallation(resolve('.holdfast'));
    const home = await mkdtemp('/tmp/hf-pool-');
    await chmod(home, 0o711);
    const user = await serverUser();
    const leaf = issueLeaf(authority, { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] });
    await writeFile(join(home, 'server.pem'), leaf.certificate);
    await writeFile(join(home, 'server.key'), leaf.key, { mode: 0o600 });
    if (user) for (const path of [home, join(home, 'server.key')]) await chown(path, user.uid, user.gid);
    const port = await anyFreePort();
    const server = await startEmbeddedPostgres({
      nativeDir: join(openDir, 'postgres/native'), dataDir: join(home, 'data'), port, password: 'root-of-it', logFile: join(home, 'log'), removeAfterwards: home,
      settings: { ssl: 'on', ssl_cert_file: join(home, 'server.pem'), ssl_key_file: join(home, 'server.key'), fsync: 'off', full_page_writes: 'off' },
    });
    const pool = new TestPoolServer(server, port);
    if (prepared) await pool.prepare();
    return pool;
  }

  get certificate(): string { return authority.certificate; }

  get dsn(): string { return `postgresql://holdfast_pool:${adminPassword}@127.0.0.1:${this.port}/postgres`; }

  entry(change: Partial<PoolServer> = {}): PoolServer {
    return { name: 'test', dsn: this.dsn, capacityBytes: 10 ** 12, maxServices: 500, publicHost: 'localhost', publicPort: this.port, ...change };
  }

  backend(change: Partial<PoolServer> = {}): HostPoolBackend {
    return new HostPoolBackend({ find: async (name) => (name === 'test' ? this.entry(change) : null) });
  }

  /** A customer as its driver comes: over TLS, the certificate checked. */
  customer({ login, password, ref }: TestService, change: pg.ClientConfig = {}): pg.Client {
    const client = new pg.Client({
      host: 'localhost', port: this.port, user: login.name, password, database: ref.names.database, ssl: { ca: authority.certificate, rejectUnauthorized: true }, ...change,
    });
    client.on('error', () => undefined);
    return client;
  }

  /** As the server's superuser. */
  async asRoot(sql: string, database = 'postgres'): Promise<pg.QueryResult> {
    const url = new URL(this.server.url);
    url.pathname = `/${database}`;
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }

  stop(): Promise<void> {
    return this.server.stop();
  }

  private async prepare(): Promise<void> {
    await this.asRoot('drop database holdfast');
    const document = await readFile(resolve('docs/operating.md'), 'utf8');
    const recipe = /## Postgres on registered servers[\s\S]*?```sql\n([\s\S]*?)```/.exec(document)?.[1] ?? '';
    const [first = '', second = ''] = recipe.replace('…', adminPassword).split('\\c holdfast\n');
    for (const [sql, database] of [[first, 'postgres'], [second, 'holdfast']] as const) {
      for (const statement of sql.split(';\n').filter((text) => text.trim() !== '')) await this.asRoot(statement, database);
    }
  }
}
