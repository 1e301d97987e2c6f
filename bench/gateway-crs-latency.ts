/**
 * What the Core Rule Set at paranoia level 1 adds to a request: the median over one connection to a zone that blocks, minus that to a zone that only forwards, in alternating
 * rounds through the same gateway process. ROUNDS, SECONDS and CRS_DIR may be set. Needs nginx as the origin and taskset.
 */
import { missingForModSecurity, startModSecurity } from './peers/modsecurity';
import { percentile, print } from './statistics';
import { withBenchDatabase } from './support/database';
import { hosts, startGatewayProcess } from './support/gateway-process';
import { kinds, requestOf } from './support/gateway-traffic';
import { shootKeepAlive } from './support/keep-alive-load';

const crsDir = process.env['CRS_DIR'] ?? '/usr/share/modsecurity-crs';
const rounds = Number(process.env['ROUNDS'] ?? 5);
const seconds = Number(process.env['SECONDS'] ?? 10);
const ports = { ours: 17_096, origin: 17_098 };
const targetMs = 0.6;

async function main(): Promise<void> {
  const missing = missingForModSecurity(crsDir);
  if (missing.length > 0) return print(`gateway-crs-latency: not measured, not installed: ${missing.join(', ')}`);
  const origin = await startModSecurity({ crsDir, port: ports.origin, engine: 'Off', origin: null, core: 1 });
  try {
    await withBenchDatabase(async (database) => {
      const gateway = await startGatewayProcess({ database, port: ports.ours, originPort: ports.origin + 1, core: 0, crsDir });
      try {
        for (const kind of kinds) await compare(kind);
      } finally {
        await gateway.stop();
      }
    });
  } finally {
    await origin.stop();
  }
}

async function compare(kind: (typeof kinds)[number]): Promise<void> {
  const shoot = async (mode: keyof typeof hosts) => (await shootKeepAlive({ port: ports.ours, request: requestOf(kind, hosts[mode]), connections: 1, seconds })).timesMs;
  const times: Record<keyof typeof hosts, (readonly number[])[]> = { block: [], off: [] };
  await shoot('block');
  for (let round = 0; round < rounds; round += 1) for (const mode of ['block', 'off'] as const) times[mode].push(await shoot(mode));
  const [block, off] = [percentile(times.block.flat(), 0.5), percentile(times.off.flat(), 0.5)];
  const aim = kind === 'GET with 4 arguments' ? `  (target ${targetMs} ms)` : '';
  print(`${kind.padEnd(22)} block p50 ${block.toFixed(2)} ms, off p50 ${off.toFixed(2)} ms, added ${(block - off).toFixed(2)} ms${aim}`);
}

main().catch((error: unknown) => { print(String(error)); process.exitCode = 1; });
