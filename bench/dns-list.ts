/**
 * Any page of 1,000 records of a zone of 10,000 over HTTP: pages from the first to the last, newest first and by name. Peer:
 * the same page of 1,000 rows as PostgreSQL gives them, without API.
 */
import { Product } from '../test/support/product';
import { makeZone } from './support/dns';
import { line, percentile, print } from './statistics';

const records = 10_000;
const rounds = Number(process.env['ROUNDS'] ?? 20);
const targetMs = 200;

async function main(): Promise<void> {
  const product = await Product.start({ RATE_MANAGEMENT_PER_5_MINUTES: '1000000' });
  try {
    const zone = await makeZone(product, 'list.test', records);
    await walk(product, `${zone.path}/records?`);
    for (const [name, query] of [['newest first', ''], ['by name', 'sort=name&'], ['by name, one type', 'sort=name&type=A&']] as const) {
      const samples: number[] = [];
      for (let round = 0; round < rounds; round++) samples.push(...await walk(product, `${zone.path}/records?${query}`));
      print(`${line(`page of 1,000, ${name}`, samples, [0.5, 0.95, 0.99])}  target p99 ${targetMs}: ${percentile(samples, 0.99) <= targetMs ? 'met' : 'missed'}`);
    }
    print(line('peer: the rows alone', await readRows(product, zone.id), [0.5, 0.95, 0.99]));
  } finally {
    await product.stop();
  }
}

/** Milliseconds of each page of the list, by its cursors. */
async function walk(product: Product, path: string): Promise<number[]> {
  const samples: number[] = [];
  let seen = 0;
  for (let cursor: unknown = ''; typeof cursor === 'string';) {
    const start = performance.now();
    const { status, body } = await product.ask('GET', `${path}${cursor === '' ? '' : `cursor=${cursor}`}`);
    samples.push(performance.now() - start);
    if (status !== 200 || !Array.isArray(body['records'])) throw new Error(`No page: ${JSON.stringify(body)}`);
    seen += body['records'].length;
    cursor = body['nextCursor'];
  }
  if (seen !== records) throw new Error(`${seen} records were listed instead of ${records}.`);
  return samples;
}

async function readRows(product: Product, zoneId: string): Promise<number[]> {
  const samples: number[] = [];
  for (let offset = 0; offset < records; offset += 1_000) {
    const start = performance.now();
    await product.database.pool.query('select * from dns_record where zone_id = $1 and deleted_at is null order by created_at desc, id desc offset $2 limit 1000', [zoneId, offset]);
    samples.push(performance.now() - start);
  }
  return samples;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
