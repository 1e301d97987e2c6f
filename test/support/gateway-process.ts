import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { masterKey } from './postgres-api';

const root = process.cwd();
export type GatewayProcess = { child: ChildProcess; httpPort: number; adminPort: number };

/** Starts the edge process with its gateway role; resolves when it serves. `env` as in README's table. */
export async function startGatewayProcess(env: Record<string, string>): Promise<GatewayProcess> {
  const child = fork(join(root, 'dist/src/edge.js'), {
    cwd: root, silent: true,
    env: {
      PATH: process.env['PATH'], TEMPORAL_ADDRESS: '127.0.0.1:1', HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'test-secret-test-secret-test-secret', EDGE_SERVES: 'gateway', METRICS_ADDR: '127.0.0.1:0', LOG_LEVEL: 'fatal',
      GATEWAY_HTTP_ADDR: '127.0.0.1:0', GATEWAY_HTTPS_ADDR: '127.0.0.1:0', GATEWAY_ADMIN_ADDR: '127.0.0.1:0', ...env,
    },
  });
  child.stderr?.on('data', (text: Buffer) => process.stderr.write(text));
  const [told] = await Promise.race([once(child, 'message'), once(child, 'exit').then(([code]) => Promise.reject(new Error(`The edge ended with ${String(code)}.`)))]);
  const port = (address: unknown) => Number(String(address).split(':').at(-1));
  const { gateway } = told as { gateway: Record<string, string> };
  return { child, httpPort: port(gateway['http']), adminPort: port(gateway['admin']) };
}
