import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Database } from '../../src/db/client';
import { policySchema } from '../../src/gateway/schemas';
import { startGatewayProcess, type GatewayProcess } from '../../test/support/gateway-process';
import { writeZone, type ZoneRecord } from '../../test/support/gateway-world';

/** A served zone with its policy, written at once. */
export async function addZone(database: Database, domain: string, records: readonly ZoneRecord[], policy: object): Promise<string> {
  const zoneId = await writeZone({ url: '', database }, domain, records, 'active');
  await writePolicy(database, zoneId, policy);
  return zoneId;
}

export async function writePolicy(database: Database, zoneId: string, policy: object): Promise<void> {
  const document = JSON.stringify(policySchema.parse(policy));
  await database.pool.query(`insert into gateway_policy (zone_id, version, mode, document) values ($1, 1, $2::jsonb ->> 'mode', $2::jsonb)
    on conflict (zone_id) do update set version = gateway_policy.version + 1, mode = excluded.mode, document = excluded.document, updated_at = now()`, [zoneId, document]);
}

/** The edge process with its gateway, on a core of its own when one is named; everything it keeps goes with it. */
export async function withGatewayProcess<T>(database: Database, options: { core: number | null; env?: Record<string, string> }, measure: (gateway: GatewayProcess) => Promise<T>): Promise<T> {
  const home = mkdtempSync(join(tmpdir(), 'holdfast-bench-gateway-'));
  const name = String((await database.pool.query<{ url: string }>(`select current_database() as url`)).rows[0]?.url);
  const url = new URL(database.pool.options.connectionString ?? '');
  url.pathname = `/${name}`;
  const gateway = await startGatewayProcess({ DATABASE_URL: url.href, HOLDFAST_DATA_DIR: home, ...options.env });
  try {
    if (options.core !== null) spawnSync('taskset', ['-acp', String(options.core), String(gateway.child.pid)]);
    return await measure(gateway);
  } finally {
    gateway.child.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  }
}

/** nginx with this `server` configuration on one core. Resolves with how to stop it. */
export async function startNginx(port: number, http: string, core: number): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-nginx-'));
  writeFileSync(join(folder, 'nginx.conf'), `pid ${folder}/pid; error_log ${folder}/error.log; events { worker_connections 1024; }
http { access_log ${folder}/access.log; keepalive_requests 1000000; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s; ${http} }`);
  const child = spawn('taskset', ['-c', String(core), 'nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-g', 'daemon off; master_process off;'], { stdio: 'inherit' });
  for (let tries = 0; tries < 100 && !(await accepts(port)); tries++) await new Promise((done) => setTimeout(done, 50));
  return () => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      done(true);
    }).on('error', () => done(false));
  });
}

export type Shots = { perSecond: number; failed: number };

/** wrk on one core: kept-alive connections that ask as fast as answers come. */
export function wrk(port: number, host: string, { core, connections, seconds }: { core: number; connections: number; seconds: number }): Promise<Shots> {
  return new Promise((done, fail) => {
    const child = spawn('taskset', ['-c', String(core), 'wrk', '-t', '1', '-c', String(connections), '-d', `${seconds}s`, '-H', `Host: ${host}`, `http://127.0.0.1:${port}/`]);
    let text = '';
    child.stdout.on('data', (data: Buffer) => (text += data.toString()));
    child.on('error', fail).on('close', () => {
      const failed = Number(/Non-2xx or 3xx responses: (\d+)/.exec(text)?.[1] ?? 0) + (/Socket errors:/.test(text) ? 1 : 0);
      done({ perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1] ?? 0), failed });
    });
  });
}

/** Resident bytes of a process. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024;
}
