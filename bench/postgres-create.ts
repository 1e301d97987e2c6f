/**
 * From the first byte of POST to the first row of the customer (contract postgres.md §9): T0 request sent, T1 202 read, T2 the
 * operation's long poll says succeeded; then the password is revealed and used over the gateway with TLS in full; T3 the
 * INSERT is acknowledged. One at a time and eight at once, the running pool full before each round. Peers do their own
 * way to the same INSERT over TCP with SCRAM, in the same run. fsync is on everywhere.
 */
import { Product } from '../test/support/product';
import { createdbPeer, debianPeer, embeddedPeer, type Peer } from './peers/postgres';
import { line, percentile, print } from './statistics';
import { createAndInsert, poolHolds, removed, report, type Marks } from './support/create';

const warmUp = Number(process.env['WARM_UP'] ?? 10);
const runs = Number(process.env['RUNS'] ?? 50);
const atOnceMax = 8;
const targetsMs = { one: 50, oneP95: 150, accepted: 10, eight: 250 };

async function main(): Promise<void> {
  const product = await Product.start({
    PG_POOL_RUNNING: `starter:${atOnceMax}`, PG_POOL_PREPARED: '0', RATE_MANAGEMENT_PER_5_MINUTES: '1000000', RATE_REVEAL_PER_MINUTE: '10000',
  });
  try {
    const one = await rounds(product, 1, warmUp + runs, warmUp);
    report('one at a time', one);
    const eight = await rounds(product, atOnceMax, Math.ceil(runs / atOnceMax) + 1, 1);
    report('eight at once', eight);
    const ours = percentile(one.map(({ inserted }) => inserted), 0.5);
    print(`targets: p50 ${targetsMs.one}, p95 ${targetsMs.oneP95}, 202 p50 ${targetsMs.accepted}; eight at once p50 ${targetsMs.eight} ms`);
    for (const peer of [createdbPeer, embeddedPeer, debianPeer]) await compare(peer, ours);
  } finally {
    await product.stop();
  }
}

async function rounds(product: Product, atOnce: number, count: number, warm: number): Promise<Marks[]> {
  const marks: Marks[] = [];
  for (let round = 0; round < count; round++) {
    await poolHolds(product, 'starter', atOnceMax);
    const tenants = await Promise.all(Array.from({ length: atOnce }, () => product.newTenant()));
    const batch = await Promise.all(tenants.map((tenant) => createAndInsert(product, tenant)));
    if (round >= warm) marks.push(...batch.map(({ marks: taken }) => taken));
    await Promise.all(batch.map(({ serviceId }, index) => removed(product, serviceId, tenants[index] ?? product.tenant)));
  }
  return marks;
}

async function compare(peer: Peer, oursMs: number): Promise<void> {
  const session = await peer.open();
  if ('absent' in session) return print(`${peer.name}: not measured, ${session.absent}`);
  const samples: number[] = [];
  try {
    for (let run = 0; run < peer.warmUp + peer.runs; run++) {
      const taken = await session.createAndInsert(run);
      if (run >= peer.warmUp) samples.push(taken);
    }
  } finally {
    await session.close();
  }
  print(`${line(`peer: ${peer.name}`, samples)}  ours/peer ${(oursMs / percentile(samples, 0.5)).toFixed(3)}`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
