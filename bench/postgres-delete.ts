/**
 * From the first byte of DELETE to the first refused login, at the gateway and at the instance's own port, with the open session cut; and until the
 * operation says deleted (contract postgres.md §9). A prober logs in at both doors every 5 ms. Peer: dropping a database with a session in it by force.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { connectWith, Product } from '../test/support/product';
import { dropdbPeer } from './peers/postgres';
import { line, percentile, print } from './statistics';
import { createAndInsert, poolHolds } from './support/create';

const warmUp = Number(process.env['WARM_UP'] ?? 10);
const runs = Number(process.env['RUNS'] ?? 50);
const targetsMs = { refused: 100, deleted: 2_000 };

type Marks = { accepted: number; gateway: number; instance: number; cut: number; deleted: number };

async function main(): Promise<void> {
  const product = await Product.start({ PG_POOL_RUNNING: 'starter:2', PG_POOL_PREPARED: '0', RATE_MANAGEMENT_PER_5_MINUTES: '1000000', RATE_REVEAL_PER_MINUTE: '10000' });
  const marks: Marks[] = [];
  try {
    for (let run = 0; run < warmUp + runs; run++) {
      await poolHolds(product, 'starter', 2);
      const taken = await createAndDelete(product);
      if (run >= warmUp) marks.push(taken);
    }
  } finally {
    await product.stop();
  }
  print(line('202 read', marks.map((mark) => mark.accepted)));
  print(line('first refusal at the gateway', marks.map((mark) => mark.gateway)));
  print(line('first refusal at the instance’s port', marks.map((mark) => mark.instance)));
  print(line('open session cut', marks.map((mark) => mark.cut)));
  const refused = marks.map((mark) => Math.max(mark.gateway, mark.instance, mark.cut));
  print(`${line('all three', refused)}  target ${targetsMs.refused}`);
  print(`${line('operation says deleted', marks.map((mark) => mark.deleted))}  target ${targetsMs.deleted}`);
  const peer = await dropdbPeer(warmUp, runs);
  print(`${line('peer: DROP DATABASE … WITH (FORCE), a session in it', peer)}  ours/peer ${(percentile(refused, 0.5) / percentile(peer, 0.5)).toFixed(2)}`);
}

async function createAndDelete(product: Product): Promise<Marks> {
  const tenant = await product.newTenant();
  const { serviceId, connectionString } = await createAndInsert(product, tenant);
  const direct = await instanceAddress(product, serviceId, connectionString);
  const session = await connectWith(connectionString);
  const start = performance.now();
  const since = () => performance.now() - start;
  const cut = new Promise<number>((resolve) => session.once('end', () => resolve(since())));
  const [gateway, instance] = [connectionString, direct].map((address) => firstRefusal(address, since));
  const answer = await product.ask('DELETE', `/postgres/services/${serviceId}?purge=true`, { tenant });
  const accepted = since();
  const id = /"id":"(op_[^"]+)"/.exec(JSON.stringify(answer.body['operation']))?.[1] ?? '';
  await product.finished(id, tenant);
  const deleted = since();
  return { accepted, gateway: await gateway ?? 0, instance: await instance ?? 0, cut: await cut, deleted };
}

/** Logins are begun every 5 ms, whether or not the ones before have ended. */
async function firstRefusal(connectionString: string, since: () => number): Promise<number> {
  let refusedAt: number | null = null;
  const attempts: Promise<void>[] = [];
  while (refusedAt === null) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 });
    client.on('error', () => undefined);
    attempts.push(client.connect().then(() => client.end(), () => { refusedAt ??= since(); }).catch(() => undefined));
    await pause(5);
  }
  await Promise.all(attempts);
  return refusedAt;
}

async function instanceAddress(product: Product, serviceId: string, connectionString: string): Promise<string> {
  const { PG_DATA_DIR = '', PG_PORT_BASE = '20000' } = await product.environment();
  for (const name of await readdir(join(PG_DATA_DIR, 'instances'))) {
    const record = JSON.parse(await readFile(join(PG_DATA_DIR, 'instances', name, 'instance.json'), 'utf8').catch(() => '{}'));
    if (record.serviceId !== serviceId) continue;
    const url = new URL(connectionString);
    return `postgresql://${url.username}:${url.password}@127.0.0.1:${Number(PG_PORT_BASE) + Number(record.slot)}${url.pathname}`;
  }
  throw new Error(`There is no instance of ${serviceId}.`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
