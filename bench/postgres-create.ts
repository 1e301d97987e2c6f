/**
 * From the first byte of POST to the first row of the customer (contract postgres.md §9): T0 request sent, T1 202 read, T2 the
 * operation's long poll says succeeded; then the password is revealed and used over the gateway with TLS in full; T3 the
 * INSERT is acknowledged. One at a time, the running pool full before each (eight at once: `postgres-create-8`). Peers do
 * their own way to the same INSERT over TCP with SCRAM, in the same run. fsync is on everywhere.
 */
import { percentile, print } from './statistics';
import { comparePeers, createInRounds, report } from './support/create';

const warmUp = Number(process.env['WARM_UP'] ?? 10);
const runs = Number(process.env['RUNS'] ?? 50);
const targetsMs = { p50: 50, p95: 150, accepted: 10 };

async function main(): Promise<void> {
  const marks = await createInRounds({ atOnce: 1, warmUp, rounds: runs });
  report('one at a time', marks);
  print(`targets: first row p50 ${targetsMs.p50}, p95 ${targetsMs.p95} ms, not slower than createdb; 202 p50 ${targetsMs.accepted} ms`);
  await comparePeers(1, percentile(marks.map(({ inserted }) => inserted), 0.5));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
