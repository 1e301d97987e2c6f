/**
 * A bulk delete of 100 records in a zone of 10,000: request → the last of them is NXDOMAIN over UDP, with one bump of the
 * serial. Between the runs the version before is restored. Peer: the same statement sent to PostgreSQL alone, rolled back.
 */
import { Product } from '../test/support/product';
import { Asker, forgetRates, isAbsent, makeZone } from './support/dns';
import { line, percentile, print } from './statistics';

const records = 10_000;
const perDelete = 100;
const warmUp = 5;
const runs = Number(process.env['RUNS'] ?? 100);
const targetMs = 300;

type Zone = { version: number; serial: number };

async function main(): Promise<void> {
  const product = await Product.start({ RATE_MANAGEMENT_PER_5_MINUTES: '1000000' });
  const asker = new Asker(product.file.dns);
  try {
    const zone = await makeZone(product, 'bulk.test', records);
    await asker.until(`n${records - 1}.bulk.test`, 'A', (answer) => !isAbsent(answer));
    const { rows } = await product.database.pool.query<{ id: string; name: string }>('select id, name from dns_record where zone_id = $1 order by random()', [zone.id]);
    const [answered, gone]: [number[], number[]] = [[], []];
    let bumps = 0;
    for (let run = 0; run < warmUp + runs; run++) {
      const chosen = Array.from({ length: perDelete }, (_, i) => rows[(run * perDelete + i) % rows.length]).flatMap((row) => row ?? []);
      const before = await readZone(product, zone.path);
      const start = performance.now();
      const { status, body } = await product.ask('POST', `${zone.path}/records/bulk-delete`, { body: { recordIds: chosen.map(({ id }) => id) } });
      const answeredAt = performance.now();
      if (status !== 200 || body['deletedCount'] !== perDelete) throw new Error(`Not deleted: ${JSON.stringify(body)}`);
      let goneAt = 0;
      for (const { name } of chosen) goneAt = await asker.until(`${name}.bulk.test`, 'A', isAbsent);
      const after = await readZone(product, zone.path);
      if (after.version === before.version + 1 && after.serial === before.serial + 1) bumps++;
      if (run >= warmUp) answered.push(answeredAt - start);
      if (run >= warmUp) gone.push(goneAt - start);
      const back = await product.ask('POST', `${zone.path}/versions/${before.version}/restore?wait=published`);
      if (back.status !== 200) throw new Error(`Not restored: ${JSON.stringify(back.body)}`);
      await forgetRates(product);
    }
    print(line('bulk delete of 100 in 10,000: answered', answered, [0.5, 0.95, 0.99]));
    print(`${line('… all 100 gone from DNS, asked one after the other', gone, [0.5, 0.95, 0.99])}  target p99 ${targetMs}: ${percentile(gone, 0.99) <= targetMs ? 'met' : 'missed'}`);
    print(`one serial bump each: ${bumps} of ${warmUp + runs}`);
    print(line('peer: the rows alone, in PostgreSQL', await peer(product, rows.slice(0, perDelete).map(({ id }) => id)), [0.5, 0.95, 0.99]));
  } finally {
    asker.close();
    await product.stop();
  }
}

async function readZone(product: Product, path: string): Promise<Zone> {
  const { zone } = (await product.ask('GET', path)).body;
  if (typeof zone === 'object' && zone !== null && 'version' in zone && 'serial' in zone) return { version: Number(zone.version), serial: Number(zone.serial) };
  throw new Error('The zone is not there.');
}

async function peer(product: Product, ids: readonly string[]): Promise<number[]> {
  const samples: number[] = [];
  for (let run = 0; run < 20; run++) {
    const client = await product.database.pool.connect();
    const start = performance.now();
    await client.query('begin');
    await client.query('update dns_record set deleted_at = now() where id = any($1)', [ids]);
    await client.query('rollback');
    samples.push(performance.now() - start);
    client.release();
  }
  return samples;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
