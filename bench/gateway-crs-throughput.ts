/**
 * Requests per second of one gateway process on one core that blocks by the Core Rule Set at paranoia level 1, beside nginx with ModSecurity 3 and the same rules on the same
 * core, in alternating rounds; the client and the origin have the other core. Both log. Fifty attacks must be refused first. ROUNDS, SECONDS and CRS_DIR may be set.
 * Needs nginx, libnginx-mod-http-modsecurity, modsecurity-crs and taskset; says which is missing and measures nothing.
 */
import { missingForModSecurity, startModSecurity } from './peers/modsecurity';
import { percentile, print } from './statistics';
import { withBenchDatabase } from './support/database';
import { hosts, startGatewayProcess } from './support/gateway-process';
import { kinds, probes, requestOf, type Kind } from './support/gateway-traffic';
import { shootKeepAlive } from './support/keep-alive-load';

const crsDir = process.env['CRS_DIR'] ?? '/usr/share/modsecurity-crs';
const rounds = Number(process.env['ROUNDS'] ?? 5);
const seconds = Number(process.env['SECONDS'] ?? 30);
const ports = { ours: 17_090, modsecurity: 17_092, origin: 17_094 };
const target = { perSecond: 2_000, ratio: 3 };
type Who = 'ours' | 'modsecurity';

async function main(): Promise<void> {
  const missing = missingForModSecurity(crsDir);
  if (missing.length > 0) return print(`gateway-crs-throughput: not measured, not installed: ${missing.join(', ')}`);
  // Its second listener is the origin of both.
  const origin = await startModSecurity({ crsDir, port: ports.origin, engine: 'Off', origin: null, core: 1 });
  const modsecurity = await startModSecurity({ crsDir, port: ports.modsecurity, engine: 'On', origin: `127.0.0.1:${ports.origin + 1}`, core: 0 });
  try {
    await withBenchDatabase(async (database) => {
      const ours = await startGatewayProcess({ database, port: ports.ours, originPort: ports.origin + 1, core: 0, crsDir });
      try {
        await measure();
      } finally {
        await ours.stop();
      }
    });
  } finally {
    await modsecurity.stop();
    await origin.stop();
  }
}

async function measure(): Promise<void> {
  for (const who of ['ours', 'modsecurity'] as const) {
    let count = 0;
    const all = probes(hosts.block);
    for (const request of all) if ((await shootKeepAlive({ port: ports[who], request, connections: 1, seconds: 0 })).statuses.has(403)) count += 1;
    print(`${who}: ${count} of ${all.length} attacks refused`);
    if (count < all.length) throw new Error('attacks pass: there is nothing to measure');
  }
  for (const kind of kinds) await compare(kind);
}

async function compare(kind: Kind): Promise<void> {
  const rates: Record<Who, number[]> = { ours: [], modsecurity: [] };
  const times: Record<Who, number[]> = { ours: [], modsecurity: [] };
  const request = requestOf(kind, hosts.block);
  for (const who of ['ours', 'modsecurity'] as const) await shootKeepAlive({ port: ports[who], request, connections: 16, seconds: Math.min(10, seconds) });
  for (let round = 0; round < rounds; round += 1) {
    for (const who of ['ours', 'modsecurity'] as const) {
      const shot = await shootKeepAlive({ port: ports[who], request, connections: 16, seconds });
      const others = [...shot.statuses].filter(([status]) => status !== 200);
      if (others.length > 0) print(`  ${kind}, ${who}: answers other than 200: ${JSON.stringify(others)}`);
      rates[who].push(shot.perSecond);
      for (const ms of shot.timesMs) times[who].push(ms);
    }
  }
  const [ours, peer] = [percentile(rates.ours, 0.5), percentile(rates.modsecurity, 0.5)];
  const aim = kind === 'GET with 4 arguments' ? `  (target ${target.perSecond} and ${target.ratio} ×)` : '';
  print(`${kind.padEnd(22)} ours ${Math.round(ours)} req/s, p99 ${percentile(times.ours, 0.99).toFixed(1)} ms; ModSecurity ${Math.round(peer)} req/s, p99 ${percentile(times.modsecurity, 0.99).toFixed(1)} ms; ratio ${(ours / peer).toFixed(2)}${aim}`);
}

main().catch((error: unknown) => { print(String(error)); process.exitCode = 1; });
