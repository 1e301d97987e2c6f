/**
 * Requests per second of one gateway process in mode `off` beside nginx as a proxy on the same core, in alternating rounds. The
 * origin (nginx) and the client (wrk) have the other core; both log every request. Says what is missing and then measures nothing.
 */
import { spawnSync } from 'node:child_process';
import { percentile, print } from './statistics';
import { withBenchDatabase } from './support/database';
import { addZone, startNginx, withGatewayProcess, wrk } from './support/gateway';

const rounds = Number(process.env['ROUNDS'] ?? 5);
const seconds = Number(process.env['SECONDS'] ?? 30);
const warmUpSeconds = Number(process.env['WARM_UP'] ?? 10);
const host = 'www.bench.test';
const ports = { origin: 16_801, nginx: 16_802 };

async function main(): Promise<void> {
  const absent = ['nginx', 'wrk', 'taskset'].filter((tool) => spawnSync('which', [tool]).status !== 0);
  if (absent.length > 0) return print(`gateway-plain-proxy: not measured, not installed: ${absent.join(', ')}`);
  const stopOrigin = await startNginx(ports.origin, `server { listen 127.0.0.1:${ports.origin}; location / { return 200 "hello, here is an answer of a small origin\\n"; } }`, 1);
  const stopNginx = await startNginx(ports.nginx, `upstream o { server 127.0.0.1:${ports.origin}; keepalive 64; } server { listen 127.0.0.1:${ports.nginx}; location / { proxy_pass http://o; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; } }`, 0);
  try {
    await withBenchDatabase(async (database) => {
      await addZone(database, 'bench.test', [{ name: 'www', value: '127.0.0.1', port: ports.origin }], { mode: 'off' });
      await withGatewayProcess(database, { core: 0 }, ({ httpPort }) => measure({ ours: httpPort, nginx: ports.nginx }));
    });
  } finally {
    stopNginx();
    stopOrigin();
  }
}

async function measure(at: Record<'ours' | 'nginx', number>): Promise<void> {
  const load = { core: 1, connections: 16, seconds };
  const reached: Record<'ours' | 'nginx', number[]> = { ours: [], nginx: [] };
  for (const who of ['ours', 'nginx'] as const) await wrk(at[who], host, { ...load, seconds: warmUpSeconds });
  for (let round = 1; round <= rounds; round++) {
    for (const who of ['ours', 'nginx'] as const) {
      const { perSecond, failed } = await wrk(at[who], host, load);
      reached[who].push(perSecond);
      print(`round ${round}  ${who.padEnd(6)} ${Math.round(perSecond).toLocaleString('en')} req/s, ${failed} not 2xx`);
    }
  }
  const [ours, nginx] = [percentile(reached.ours, 0.5), percentile(reached.nginx, 0.5)];
  print(`gateway-plain-proxy: ${Math.round(ours).toLocaleString('en')} req/s; nginx ${Math.round(nginx).toLocaleString('en')}; ratio ${(ours / nginx).toFixed(3)} (reported)`);
}

void main();
