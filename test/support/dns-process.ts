import { fork, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { anyFreePort } from '../../src/dev/ports';
import { masterKey } from './postgres-api';

const root = join(__dirname, '../..');

/** Starts the edge process with its DNS role; resolves when it answers. `env` as in README's table. */
export async function startDnsProcess(env: Record<string, string>): Promise<ChildProcess> {
  const edge = fork(join(root, 'dist/src/edge.js'), {
    cwd: root, silent: true,
    env: {
      PATH: process.env['PATH'], TEMPORAL_ADDRESS: '127.0.0.1:1', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'test-secret-test-secret-test-secret', EDGE_SERVES: 'dns',
      METRICS_ADDR: `127.0.0.1:${await anyFreePort()}`, LOG_LEVEL: 'fatal', DNS_POLL_MS: '300', ...env,
    },
  });
  edge.stderr?.on('data', (text: Buffer) => process.stderr.write(text));
  await Promise.race([once(edge, 'message'), once(edge, 'exit').then(([code]) => Promise.reject(new Error(`The edge ended with ${String(code)}.`)))]);
  return edge;
}

/** Kills it as a power cut would. */
export async function killProcess(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** A port free for UDP and TCP at this address. */
export async function freeDnsPort(host: string): Promise<number> {
  const tcp = createServer();
  await new Promise<void>((done) => tcp.listen(0, host, done));
  const address = tcp.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const udp = createSocket('udp4');
  await new Promise<void>((done, fail) => udp.once('error', fail).bind(port, host, done));
  await new Promise<void>((done) => udp.close(done));
  await new Promise((done) => tcp.close(done));
  return port;
}
