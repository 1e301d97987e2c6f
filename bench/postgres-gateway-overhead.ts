import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeService, startGateway, TestRoutes } from '../test/support/postgres-gateway';
import { HostSite, type TestService } from '../test/support/postgres-host';
import { percentile, print } from './statistics';

// pgbench (Debian's postgresql-contrib) over the gateway with TLS against the same instance reached directly, without TLS:
// instances do not speak it, so the peer is the best there could be. SECONDS=<n> per run.
const seconds = Number(process.env['SECONDS'] ?? 10);
const pgbench = process.env['PGBENCH'] ?? '/usr/lib/postgresql/15/bin/pgbench';

type Way = { name: string; host: string; port: number; sslmode: string };

async function main(): Promise<void> {
  const site = await HostSite.make();
  const host = await site.start();
  const backend = site.backend();
  const routes = new TestRoutes();
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes, 'launch');
  const [item] = await backend.inventory();
  const { slot } = JSON.parse(await readFile(join(site.dataDir, 'instances', item?.instanceRef ?? '', 'instance.json'), 'utf8'));
  const ways: Way[] = [
    { name: 'direct, no TLS', host: '127.0.0.1', port: site.config.PG_PORT_BASE + Number(slot), sslmode: 'disable' },
    { name: 'gateway, TLS verify-full', host: 'localhost', port: gateway.port, sslmode: 'verify-full' },
  ];
  const run = (way: Way, args: string[]) => promisify(execFile)(pgbench, [...args, 'app'], { env: environment(site, service, way), maxBuffer: 2 ** 24 });
  await run(ways[0] ?? fail(), ['-i', '-q', '-s', '10']);
  for (const way of [...ways, ...ways]) {
    const times = await selectLatencies(run, way);
    print(`one-row SELECT, 1 client    ${way.name.padEnd(26)} p50 ${percentile(times, 0.5).toFixed(3)}  p99 ${percentile(times, 0.99).toFixed(3)} ms  (${times.length})`);
  }
  for (const way of [...ways, ...ways]) {
    const { stdout } = await run(way, ['-n', '-M', 'prepared', '-c', '4', '-j', '2', '-T', String(seconds)]);
    print(`TPC-B scale 10, 4 clients   ${way.name.padEnd(26)} ${/tps = ([\d.]+)/.exec(stdout)?.[1] ?? '?'} transactions/s`);
  }
  await gateway.drain(0);
  backend.close();
  await host.stop();
  await site.remove();
}

/** Milliseconds of every single-row SELECT of one client. */
async function selectLatencies(run: (way: Way, args: string[]) => Promise<unknown>, way: Way): Promise<number[]> {
  const directory = await mkdtemp('/tmp/hf-bench-');
  await run(way, ['-n', '-S', '-M', 'prepared', '-c', '1', '-T', String(seconds), '-l', `--log-prefix=${join(directory, 'log')}`]);
  const [file = ''] = await readdir(directory);
  const lines = (await readFile(join(directory, file), 'utf8')).trimEnd().split('\n');
  await rm(directory, { recursive: true });
  return lines.slice(100).map((line) => Number(line.split(' ')[2]) / 1000);
}

function environment(site: HostSite, { login, password }: TestService, way: Way): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'], PGHOST: way.host, PGPORT: String(way.port), PGUSER: login.name, PGPASSWORD: password, PGSSLMODE: way.sslmode,
    PGSSLROOTCERT: join(site.dataDir, 'tls/ca.pem'),
  };
}

function fail(): never {
  throw new Error('unreachable: there are two ways');
}

void main();
