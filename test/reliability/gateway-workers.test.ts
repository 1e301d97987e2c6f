import { execFile, fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { anyFreePort } from '../../src/dev/ports';
import { withDatabase } from '../support/database';
import { writeZone } from '../support/gateway-world';
import { masterKey } from '../support/postgres-api';
import { rounds } from '../support/rounds';
import { until } from '../support/until';

const root = join(__dirname, '../..');
const test_ = withDatabase();
const held = new Set<ServerResponse>();
const origin = createServer((asked, response) => {
  if (asked.url === '/held') held.add(response);
  else response.end('through');
});
let home = '';
let edge: ChildProcess;
let port = 0;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'holdfast-test-gateway-'));
  await new Promise<void>((done) => origin.listen(0, '127.0.0.1', done));
  const zoneId = await writeZone(test_, 'death.test', [{ name: '@', value: '127.0.0.1', port: (origin.address() as AddressInfo).port }], 'active');
  await test_.database.pool.query(`insert into gateway_policy (zone_id, version, mode, document) values ($1, 1, 'off', '{"mode":"off"}')`, [zoneId]);
  port = await anyFreePort();
  const [https, admin, metrics] = [await anyFreePort(), await anyFreePort(), await anyFreePort()];
  edge = fork(join(root, 'dist/src/edge.js'), {
    cwd: root, silent: true,
    env: {
      PATH: process.env['PATH'], TEMPORAL_ADDRESS: '127.0.0.1:1', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'test-secret-test-secret-test-secret', EDGE_SERVES: 'gateway', DATABASE_URL: test_.url, GATEWAY_WORKERS: '2',
      GATEWAY_HTTP_ADDR: `127.0.0.1:${port}`, GATEWAY_HTTPS_ADDR: `127.0.0.1:${https}`, GATEWAY_ADMIN_ADDR: `127.0.0.1:${admin}`, METRICS_ADDR: `127.0.0.1:${metrics}`, HOLDFAST_DATA_DIR: home,
      GATEWAY_SPOOL_DIR: home, GATEWAY_SNAPSHOT_DIR: home, LOG_LEVEL: 'fatal',
    },
  });
  edge.stderr?.on('data', (text: Buffer) => process.stderr.write(text));
  await Promise.race([once(edge, 'message'), once(edge, 'exit').then(([code]) => Promise.reject(new Error(`The edge ended with ${String(code)}.`)))]);
  await until(async () => await get('/') === 200, 'the zone to be served');
}, 60_000);
afterAll(async () => {
  const gone = edge.exitCode === null ? once(edge, 'exit') : null;
  edge.kill('SIGTERM');
  await gone;
  origin.closeAllConnections();
  origin.close();
  await rm(home, { recursive: true, force: true });
}, 60_000);

/** On a connection of its own; 0: it broke. */
function get(path: string): Promise<number> {
  return new Promise((done) => {
    request({ host: '127.0.0.1', port, path, headers: { host: 'death.test' }, agent: false }, (response) => {
      response.on('error', () => done(0)).on('end', () => done(response.statusCode ?? 0)).resume();
    }).on('error', () => done(0)).end();
  });
}

const workers = async (): Promise<number[]> => {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(edge.pid)]);
  return stdout.split('\n').map(Number).filter(Boolean);
};

test('of a worker that is killed only its own open requests fail, and another takes its place', async () => {
  for (let round = 0; round < rounds(1, 20); round++) {
    await until(async () => (await workers()).length === 2, 'two workers');
    const [victim = 0] = await workers();
    const open = Array.from({ length: 20 }, () => get('/held'));
    await until(() => held.size === 20, 'all to be open');
    let broken = 0;
    for (const response of held) response.once('close', () => (broken += 1));
    process.kill(victim, 'SIGKILL');
    await until(async () => !(await workers()).includes(victim), 'the worker to be gone');
    const statuses = await Promise.all(Array.from({ length: 50 }, () => get('/')));
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    await until(() => broken > 0, 'its requests to be let go');
    for (const response of held) response.end('late');
    const late = await Promise.all(open);
    held.clear();
    const failed = late.filter((status) => status === 0).length;
    expect(late.filter((status) => status === 200)).toHaveLength(20 - failed);
    expect(failed).toBeGreaterThan(0);
    expect(failed).toBeLessThan(20);
  }
}, rounds(60_000, 600_000));
