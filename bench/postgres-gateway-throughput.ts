/**
 * pgbench's TPC-B of scale 10 with prepared statements and four clients, over the gateway with TLS beside a direct connection with TLS and PgBouncer in
 * session mode with TLS, in turns; the median of the rounds counts (contract postgres.md §9, gateway-throughput). SECONDS=<n> per run, ROUNDS=<n> of all ways.
 */
import { percentile, print } from './statistics';
import { alongEveryWay, type Way } from './support/pgbench';

const seconds = Number(process.env['SECONDS'] ?? 10);
const rounds = Number(process.env['ROUNDS'] ?? 3);
const targets = { ofDirect: 0.8, gateOfDirect: 0.6, gateOfPgbouncer: 0.75 };

function main(): Promise<void> {
  return alongEveryWay(async ({ run, all, direct, ours, bouncer }) => {
    const rates = new Map<Way, number[]>(all.map((way) => [way, []]));
    for (let round = 0; round < rounds; round++) {
      for (const way of all) {
        const { stdout } = await run(way, ['-n', '-M', 'prepared', '-c', '4', '-j', '2', '-T', String(seconds)]);
        rates.get(way)?.push(Number(/tps = ([\d.]+)/.exec(stdout)?.[1]));
      }
    }
    const median = (way: Way) => percentile(rates.get(way) ?? [], 0.5);
    for (const way of all) print(`TPC-B scale 10, prepared, 4 clients  ${way.name.padEnd(26)} median ${median(way).toFixed(0)} /s  (${(rates.get(way) ?? []).map((rate) => rate.toFixed(0)).join(', ')})`);
    print(`gateway-throughput: ${(median(ours) / median(direct)).toFixed(2)} of direct with TLS (target ${targets.ofDirect}, gate ${targets.gateOfDirect})`);
    if (bouncer) print(`gateway-throughput: ${(median(ours) / median(bouncer)).toFixed(2)} of PgBouncer with TLS (gate ${targets.gateOfPgbouncer}); PgBouncer is ${(median(bouncer) / median(direct)).toFixed(2)} of direct`);
    else print('PgBouncer: not measured, it is not installed');
  });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
