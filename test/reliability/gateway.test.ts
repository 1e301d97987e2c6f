import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, createServer, get, type ClientRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { policySchema } from '../../src/gateway/schemas';
import { withDatabase } from '../support/database';
import { startGatewayProcess, type GatewayProcess } from '../support/gateway-process';
import { writeZone } from '../support/gateway-world';
import { rounds } from '../support/rounds';
import { openGate, type Gate } from '../support/gate';
import { until } from '../support/until';

const test_ = withDatabase();
let home = '';
let origin: Server;
let gate: Gate;
let running: GatewayProcess | undefined;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'holdfast-gateway-'));
  origin = createServer((_request, response) => response.end('ok'));
  await new Promise<void>((done) => origin.listen(0, '127.0.0.1', done));
  gate = await openGate(test_.url);
  const zoneId = await writeZone(test_, 'steady.test', [{ name: '@', value: '127.0.0.1', port: (origin.address() as AddressInfo).port }], 'active');
  await test_.database.pool.query(`insert into gateway_policy (zone_id, version, mode, document) values ($1, 1, 'block', $2)`, [zoneId, JSON.stringify(policySchema.parse({ mode: 'block', ipLists: { deny: ['192.0.2.1'] } }))]);
});
afterEach(async () => {
  if (running) await stop(running);
  running = undefined;
});
afterAll(async () => {
  origin.closeAllConnections();
  origin.close();
  await gate.shut();
  await rm(home, { recursive: true, force: true });
});

const start = async (env: Record<string, string> = {}) => (running = await startGatewayProcess({ DATABASE_URL: gate.url, HOLDFAST_DATA_DIR: home, GATEWAY_ENGINE_THREADS: '1', ...env }));

async function stop({ child }: GatewayProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}

function ask(port: number, agent?: Agent): Promise<number> {
  return new Promise((done) => {
    get({ port, host: '127.0.0.1', path: '/', headers: { host: 'steady.test' }, ...(agent && { agent }) }, (response) => response.resume().on('end', () => done(response.statusCode ?? 0)).on('error', () => done(0)))
      .on('error', () => done(0)).setTimeout(10_000, function (this: ClientRequest) { this.destroy(); });
  });
}

test('no request fails while the database is away, nor after a restart without it', async () => {
  const first = await start();
  expect(await ask(first.httpPort)).toBe(200);
  await gate.shut();
  const until_ = Date.now() + rounds(3_000, 60_000);
  const statuses = new Set<number>();
  while (Date.now() < until_) statuses.add(await ask(first.httpPort));
  expect([...statuses]).toEqual([200]);
  await stop(first);
  const second = await start();
  expect(await ask(second.httpPort)).toBe(200);
  await gate.open();
  await until(async () => (await test_.database.pool.query<{ sum: string }>('select coalesce(sum(requests), 0) as sum from gateway_minute')).rows[0]?.sum !== '0', 'the counts of the outage');
}, rounds(90_000, 200_000));

test('a worker that is killed takes only its own open requests with it, and is replaced', async () => {
  const { child, httpPort, adminPort } = await start({ GATEWAY_WORKERS: '2' });
  const workersOf = async () => (await promisify(execFile)('pgrep', ['-P', String(child.pid)]).catch(() => ({ stdout: '' }))).stdout.split('\n').filter(Boolean).map(Number);
  const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  for (const agent of agents) expect(await ask(httpPort, agent)).toBe(200);
  const [victim = 0] = await workersOf();
  process.kill(victim, 'SIGKILL');
  await until(async () => (await ask(httpPort)) === 200, 'the other worker');
  await until(async () => (await workersOf()).length === 2, 'the successor');
  const statuses = await Promise.all(Array.from({ length: 40 }, () => ask(httpPort)));
  expect(new Set(statuses)).toEqual(new Set([200]));
  await until(async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
    return /gateway_requests\{[^}]*outcome="clean"[^}]*\} [1-9]/.test(metrics);
  }, 'metrics of the workers');
  await until(async () => {
    await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(); // workers tell their zones with their metrics
    const readiness = await (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).text();
    return ['"ok":true', '"workers":2', '"zones":1'].every((part) => readiness.includes(part));
  }, 'the successor to serve');
  for (const agent of agents) agent.destroy();
}, 60_000);
