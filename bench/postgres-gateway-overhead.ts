/**
 * pgbench -S with prepared statements and one client, over the gateway with TLS beside a direct connection with TLS, in turns (contract postgres.md §9,
 * gateway-overhead). SECONDS=<n> per run, ROUNDS=<n> of all ways.
 */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { percentile, print } from './statistics';
import { alongEveryWay, type Bench, type Way } from './support/pgbench';

const seconds = Number(process.env['SECONDS'] ?? 10);
const rounds = Number(process.env['ROUNDS'] ?? 3);
const targetMs = 0.5;

function main(): Promise<void> {
  return alongEveryWay(async ({ run, all, direct, ours, bouncer }) => {
    const times = new Map<Way, number[]>(all.map((way) => [way, []]));
    for (let round = 0; round < rounds; round++) for (const way of all) times.set(way, (times.get(way) ?? []).concat(await selectLatencies(run, way)));
    const p50 = (way: Way) => percentile(times.get(way) ?? [], 0.5);
    for (const way of all) print(`one-row SELECT, prepared, 1 client   ${way.name.padEnd(26)} p50 ${p50(way).toFixed(3)}  p99 ${percentile(times.get(way) ?? [], 0.99).toFixed(3)} ms`);
    print(`gateway-overhead: + ${(p50(ours) - p50(direct)).toFixed(3)} ms over direct with TLS (target + ${targetMs})`);
    print(bouncer ? `PgBouncer: + ${(p50(bouncer) - p50(direct)).toFixed(3)} ms` : 'PgBouncer: not measured, it is not installed');
  });
}

/** Milliseconds of every single-row SELECT of one client. */
async function selectLatencies(run: Bench, way: Way): Promise<number[]> {
  const directory = await mkdtemp('/tmp/hf-bench-');
  await run(way, ['-n', '-S', '-M', 'prepared', '-c', '1', '-T', String(seconds), '-l', `--log-prefix=${join(directory, 'log')}`]);
  const [file = ''] = await readdir(directory);
  const lines = (await readFile(join(directory, file), 'utf8')).trimEnd().split('\n');
  await rm(directory, { recursive: true });
  return lines.slice(100).map((line) => Number(line.split(' ')[2]) / 1000);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
