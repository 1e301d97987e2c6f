/**
 * `npm start` as a person meets it: from a fresh clone with an empty node_modules (cold), and again afterwards (warm, WARM
 * times). Only Temporal's CLI is taken as found, because getting it happens once per user; TEMPORAL=none measures that too.
 * The peer is the floor below it: PostgreSQL and Temporal alone, started by hand at the same moment with the same data.
 */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../src/dev/embedded-postgres';
import { openInstallation } from '../src/dev/installation';
import { anyFreePort } from '../src/dev/ports';
import { findTemporalBinary } from '../src/dev/temporal-binary';
import { startTemporalServer } from '../src/dev/temporal-server';
import { percentile } from './statistics';

const warmRuns = Number(process.env['WARM'] ?? 5);
const cold = process.env['COLD'] !== 'off';
const say = (text: string) => void process.stdout.write(`${text}\n`);

async function main(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  chmodSync(dir, 0o711);
  const clone = join(dir, 'clone');
  const cache = process.env['TEMPORAL'] === 'none' ? { XDG_CACHE_HOME: join(dir, 'cache') } : {};
  try {
    execFileSync('git', ['clone', '--quiet', '.', clone]);
    if (!cold) execFileSync('cp', ['-al', 'node_modules', clone]);
    const env = { ...process.env, ...(await quietPorts()), ...cache };
    const first = await start(clone, env);
    say(`${cold ? 'cold: fresh clone, empty node_modules' : 'first: fresh clone, node_modules given'}  ${first.toFixed(1)} s`);
    const warm: number[] = [];
    for (let run = 0; run < warmRuns; run += 1) warm.push(await start(clone, env));
    const floor = await servers(clone, dir);
    say(`warm: p50 ${percentile(warm, 0.5).toFixed(1)} s, worst ${Math.max(...warm).toFixed(1)} s of ${warmRuns} (target 10 s)`);
    say(`PostgreSQL and Temporal alone: ${floor.toFixed(1)} s; npm start takes ${(percentile(warm, 0.5) / floor).toFixed(1)} times that`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Seconds until it says it is ready; then it is stopped like by Ctrl-C. */
async function start(clone: string, env: NodeJS.ProcessEnv): Promise<number> {
  const began = performance.now();
  const child = spawn(process.execPath, ['tools/start.mjs'], { cwd: clone, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  const seconds = await new Promise<number>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('Holdfast is ready')) resolve((performance.now() - began) / 1000);
    });
    child.once('exit', () => reject(new Error(`npm start ended:\n${output}`)));
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGINT');
  await ended;
  return seconds;
}

async function servers(clone: string, dir: string): Promise<number> {
  const { openDir, dir: home, secrets } = await openInstallation(join(clone, '.holdfast'));
  const binary = await findTemporalBinary({ env: process.env, root: clone, say });
  const ports = { port: await anyFreePort(), httpPort: await anyFreePort(), metricsPort: await anyFreePort(), uiPort: await anyFreePort() };
  const began = performance.now();
  const running = await Promise.all([
    startEmbeddedPostgres({
      nativeDir: join(openDir, 'postgres/native'), dataDir: join(openDir, 'database'), port: await anyFreePort(), password: secrets.databasePassword, logFile: join(dir, 'database.log'),
    }),
    startTemporalServer({ binary, ...ports, dbFile: join(home, 'temporal/temporal.db'), logFile: join(dir, 'temporal.log') }),
  ]);
  const seconds = (performance.now() - began) / 1000;
  await Promise.all(running.map((server) => server.stop()));
  return seconds;
}

async function quietPorts(): Promise<Record<string, string>> {
  const gateway = await anyFreePort();
  return {
    API_ADDR: `127.0.0.1:${await anyFreePort()}`,
    METRICS_ADDR: `127.0.0.1:${await anyFreePort()}`,
    DATABASE_PORT: String(await anyFreePort()),
    TEMPORAL_PORT: String(await anyFreePort()),
    TEMPORAL_UI_PORT: String(await anyFreePort()),
    PG_GATEWAY_ADDR: `127.0.0.1:${gateway}`,
  };
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : 'failed'}\n`);
  process.exit(1);
});
