/**
 * The same way from POST to the first row with every pool empty: initdb, start, roles and all (contract postgres.md §9, create-cold). Peer: the npm
 * package's programs used directly, in turns with ours.
 */
import { Product } from '../test/support/product';
import { embeddedPeer } from './peers/postgres';
import { line, percentile, print } from './statistics';
import { createAndInsert, removed, report, type Marks } from './support/create';

const warmUp = 1;
const runs = Number(process.env['RUNS'] ?? 10);
const targetRatio = 1.5;

async function main(): Promise<void> {
  const product = await Product.start({ PG_POOL_RUNNING: 'trial:0', PG_POOL_PREPARED: '0', RATE_MANAGEMENT_PER_5_MINUTES: '1000000', RATE_REVEAL_PER_MINUTE: '10000' });
  const peer = await embeddedPeer.open();
  if ('absent' in peer) throw new Error(peer.absent);
  const ours: Marks[] = [];
  const theirs: number[] = [];
  try {
    for (let run = 0; run < warmUp + runs; run++) {
      const tenant = await product.newTenant();
      const { serviceId, marks } = await createAndInsert(product, tenant);
      const taken = await peer.createAndInsert(run);
      if (run >= warmUp) {
        ours.push(marks);
        theirs.push(taken);
      }
      await removed(product, serviceId, tenant);
    }
  } finally {
    await peer.close();
    await product.stop();
  }
  report('pools empty', ours);
  const ratio = percentile(ours.map(({ inserted }) => inserted), 0.5) / percentile(theirs, 0.5);
  print(`${line(`peer: ${embeddedPeer.name}`, theirs)}  ours/peer ${ratio.toFixed(2)} (target ${targetRatio})`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
