import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Database } from '../../src/db/client';
import { policySchema } from '../../src/gateway/schemas';
import { writeZone } from '../../test/support/gateway-world';

export interface GatewayProcessOptions { readonly database: Database; readonly port: number; readonly originPort: number; readonly core: number; readonly crsDir: string | null }

export interface GatewayProcess { readonly pid: number; stop(): Promise<void> }

/** Zones of the benchmark: one that blocks at paranoia level 1, one that only forwards. */
export const hosts = { block: 'www.block.test', off: 'www.off.test' } as const;

/** The gateway as it runs in production, one worker, pinned to a core. */
export async function startGatewayProcess({ database, port, originPort, core, crsDir }: GatewayProcessOptions): Promise<GatewayProcess> {
  for (const mode of ['block', 'off'] as const) {
    const zoneId = await writeZone({ database, url: '' }, hosts[mode].replace('www.', ''), [{ name: 'www', value: '127.0.0.1', port: originPort }], 'active');
    const policy = policySchema.parse({ mode, managedRules: { ruleSet: crsDir === null ? 'base' : 'crs' } });
    await database.pool.query(`insert into gateway_policy (zone_id, version, mode, document) values ($1, 1, $2, $3::jsonb)`, [zoneId, mode, JSON.stringify(policy)]);
  }
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-gateway-'));
  const child = spawn('taskset', ['-c', String(core), process.execPath, ...process.execArgv, ...loaders(), require.resolve('../../src/edge')], {
    cwd: resolve('.'), stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env, NODE_ENV: 'development', EDGE_SERVES: 'gateway', DATABASE_URL: database.pool.options.connectionString ?? '', HOLDFAST_MASTER_KEY: randomBytes(32).toString('base64'), AUTH_SECRET: randomBytes(32).toString('base64'), TEMPORAL_ADDRESS: '127.0.0.1:1', LOG_LEVEL: 'warn',
      GATEWAY_HTTP_ADDR: `127.0.0.1:${port}`, GATEWAY_HTTPS_ADDR: '127.0.0.1:0', GATEWAY_ADMIN_ADDR: '127.0.0.1:0', METRICS_ADDR: '127.0.0.1:0', GATEWAY_WORKERS: '1', GATEWAY_ENGINE_THREADS: '1',
      GATEWAY_SPOOL_DIR: join(folder, 'spool'), GATEWAY_SNAPSHOT_DIR: join(folder, 'snapshot'), GATEWAY_ALLOW_PRIVATE_ORIGINS: '127.0.0.0/8', ...(crsDir === null ? {} : { CRS_DIR: crsDir }),
    },
  });
  await serving(port, hosts.block);
  return {
    pid: child.pid ?? 0,
    stop: async () => {
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), 5_000).unref();
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** From sources (`node -r …/typescript.cjs`) the child needs the same loader as we. */
function loaders(): string[] {
  return __filename.endsWith('.ts') && process.execArgv.length === 0 ? ['-r', resolve(__dirname, '../../test/support/typescript.cjs')] : [];
}

async function serving(port: number, host: string): Promise<void> {
  const until = Date.now() + 60_000;
  while (!(await answersOk(port, host))) {
    if (Date.now() > until) throw new Error('the gateway does not serve');
    await new Promise((done) => { setTimeout(done, 200); });
  }
}

function answersOk(port: number, host: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: bench\r\nAccept: */*\r\nConnection: close\r\n\r\n`));
    socket.on('data', (chunk) => { done(chunk.toString('latin1').startsWith('HTTP/1.1 200')); socket.destroy(); });
    socket.on('error', () => { done(false); }).on('close', () => { done(false); });
  });
}
