import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { issueLeaf } from '../../src/core/certificates';
import { serverUser } from '../../src/dev/embedded-postgres';
import { anyFreePort } from '../../src/dev/ports';
import { authority, makeService, startGateway, TestRoutes } from '../../test/support/postgres-gateway';
import { HostSite, type TestService } from '../../test/support/postgres-host';

const pgbouncer = process.env['PGBOUNCER'] ?? '/usr/sbin/pgbouncer';

export type Way = { name: string; host: string; port: number; sslmode: string };
export type Bench = (way: Way, args: string[]) => Promise<{ stdout: string }>;
/** One instance and every way to it; `bouncer` null: PgBouncer is not installed. */
export type Ways = { run: Bench; plain: Way; direct: Way; ours: Way; bouncer: Way | null; all: Way[] };

/**
 * pgbench (Debian's postgresql) against one and the same instance with tables of scale 10: reached directly without TLS, directly with TLS (which the bench
 * turns on in it), over the gateway with TLS, and over PgBouncer in session mode with TLS. Errors: pgbench is not installed.
 */
export async function alongEveryWay(work: (ways: Ways) => Promise<void>): Promise<void> {
  const pgbench = await findPgbench();
  const site = await HostSite.make();
  const host = await site.start();
  const backend = site.backend();
  const routes = new TestRoutes();
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes, 'launch');
  const port = await speakTls(site, (await backend.inventory())[0]?.instanceRef ?? '');
  const { way: bouncer, stop } = await startPgbouncer(service, port);
  const plain = { name: 'direct, no TLS', host: '127.0.0.1', port, sslmode: 'disable' };
  const direct = { name: 'direct, TLS', host: 'localhost', port, sslmode: 'verify-full' };
  const ours = { name: 'gateway, TLS', host: 'localhost', port: gateway.port, sslmode: 'verify-full' };
  const run: Bench = (way, args) => promisify(execFile)(pgbench, [...args, 'app'], { env: environment(site, service, way), maxBuffer: 2 ** 24 });
  try {
    await run(plain, ['-i', '-q', '-s', '10']);
    await work({ run, plain, direct, ours, bouncer, all: [plain, direct, ours, ...bouncer ? [bouncer] : []] });
  } finally {
    await stop();
    await gateway.drain(0);
    backend.close();
    await host.stop();
    await site.remove();
  }
}

/** The program itself, without Debian's wrapper. */
async function findPgbench(): Promise<string> {
  const versions = await readdir('/usr/lib/postgresql').catch(() => []);
  for (const path of [process.env['PGBENCH'] ?? [], ...versions.toSorted().toReversed().map((version) => `/usr/lib/postgresql/${version}/bin/pgbench`), 'pgbench'].flat()) {
    if (await promisify(execFile)(path, ['--version']).then(() => true, () => false)) return path;
  }
  throw new Error('not measured: pgbench is not installed (Debian package postgresql); PGBENCH=<path> names one elsewhere.');
}

/** The instance also takes TLS on its own port, as no instance of a customer does; answers the port. */
async function speakTls(site: HostSite, instanceRef: string): Promise<number> {
  const directory = join(site.dataDir, 'instances', instanceRef);
  const data = join(directory, 'data');
  const { slot } = JSON.parse(await readFile(join(directory, 'instance.json'), 'utf8'));
  const leaf = issueLeaf(authority, { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] });
  const files: [string, string][] = [
    ['bench.pem', leaf.certificate], ['bench.key', leaf.key], ['postgresql.auto.conf', `ssl = on\nssl_cert_file = 'bench.pem'\nssl_key_file = 'bench.key'\n`],
  ];
  for (const [name, text] of files) {
    await writeFile(join(data, name), text, { mode: 0o600 });
    if (process.getuid?.() === 0) await chown(join(data, name), site.config.PG_UID_BASE + Number(slot), site.config.PG_UID_BASE + Number(slot));
  }
  process.kill(Number((await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]), 'SIGHUP');
  return site.config.PG_PORT_BASE + Number(slot);
}

/** PgBouncer in front of the same port, as it would stand there instead of the gateway; `way` null: it is not installed. */
async function startPgbouncer({ login, password }: TestService, port: number): Promise<{ way: Way | null; stop(): Promise<void> }> {
  const home = await mkdtemp('/tmp/hf-bouncer-');
  const listen = await anyFreePort();
  const leaf = issueLeaf(authority, { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] });
  const configuration = [
    '[databases]', `app = host=127.0.0.1 port=${port} dbname=app`, '[pgbouncer]', 'listen_addr = 127.0.0.1', `listen_port = ${listen}`, 'unix_socket_dir =', 'pool_mode = session',
    'default_pool_size = 50', 'auth_type = scram-sha-256', `auth_file = ${home}/users`, 'client_tls_sslmode = require', `client_tls_cert_file = ${home}/leaf.pem`, `client_tls_key_file = ${home}/leaf.key`,
    'server_tls_sslmode = disable', 'server_reset_query = DISCARD ALL', `logfile = ${home}/log`, 'ignore_startup_parameters = extra_float_digits', '',
  ].join('\n');
  const files = { 'bouncer.ini': configuration, users: `"${login.name}" "${password}"\n`, 'leaf.pem': leaf.certificate, 'leaf.key': leaf.key };
  const user = await serverUser();
  await chmod(home, 0o700);
  for (const [name, text] of Object.entries(files)) await writeFile(join(home, name), text, { mode: 0o600 });
  if (user) for (const path of [home, ...Object.keys(files).map((name) => join(home, name))]) await chown(path, user.uid, user.gid);
  const child = spawn(pgbouncer, ['-q', join(home, 'bouncer.ini')], { ...user, stdio: 'ignore' });
  const started = await Promise.race([once(child, 'spawn').then(() => true), once(child, 'error').then(() => false)]);
  if (started) await listening(child, listen);
  return {
    way: started ? { name: 'PgBouncer session, TLS', host: 'localhost', port: listen, sslmode: 'verify-full' } : null,
    stop: async () => {
      const ended = started ? once(child, 'exit') : null;
      child.kill('SIGINT');
      await ended;
      await rm(home, { recursive: true, force: true });
    },
  };
}

async function listening(child: ChildProcess, port: number): Promise<void> {
  while (child.exitCode === null) {
    const open = await new Promise<boolean>((resolve) => {
      const probe = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false)).once('connect', () => probe.destroy());
    });
    if (open) return;
    await pause(20);
  }
  throw new Error('PgBouncer did not start.');
}

function environment(site: HostSite, { login, password }: TestService, way: Way): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'], PGHOST: way.host, PGPORT: String(way.port), PGUSER: login.name, PGPASSWORD: password, PGSSLMODE: way.sslmode,
    PGSSLROOTCERT: join(site.dataDir, 'tls/ca.pem'),
  };
}
