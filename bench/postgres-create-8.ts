/**
 * The same way as `postgres-create`, eight at once: each of eight customers from the first byte of POST to the first row, the running pool full before each
 * round (contract postgres.md §9, create-8). The peers make eight at once as well.
 */
import { percentile, print } from './statistics';
import { comparePeers, createInRounds, report } from './support/create';

const atOnce = 8;
const rounds = Math.ceil(Number(process.env['RUNS'] ?? 56) / atOnce);
const targetMs = 250;

async function main(): Promise<void> {
  const marks = await createInRounds({ atOnce, warmUp: 2, rounds });
  report('eight at once', marks);
  print(`target: first row p50 ${targetMs} ms`);
  await comparePeers(atOnce, percentile(marks.map(({ inserted }) => inserted), 0.5));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
