import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connectWith, Product } from '../../test/support/product';
import type { Tenant } from '../../test/support/tenant';
import { createdbPeer, debianPeer, embeddedPeer, type Peer, type PeerSession } from '../peers/postgres';
import { line, percentile, print } from '../statistics';

/** Milliseconds since the first byte of the POST (contract postgres.md §9: T1, T2, T3 and what lies between). */
export type Marks = { accepted: number; succeeded: number; revealed: number; connected: number; inserted: number };
export type Made = { serviceId: string; connectionString: string; marks: Marks };

/** POST, the operation's long poll, the revealed password, a login over the gateway with TLS in full, a table and a row. */
export async function createAndInsert(product: Product, tenant: Tenant, plan = 'starter'): Promise<Made> {
  const start = performance.now();
  const since = () => performance.now() - start;
  const { serviceId, operationId } = await product.accept(plan, tenant);
  const accepted = since();
  const { state } = await product.finished(operationId, tenant);
  if (state !== 'succeeded') throw new Error(`${serviceId} ended ${state}.`);
  const succeeded = since();
  const { connectionString } = await product.reveal(serviceId, tenant);
  const revealed = since();
  const client = await connectWith(connectionString);
  const connected = since();
  await client.query('create table first (n int)');
  await client.query('insert into first values (1)');
  const inserted = since();
  await client.end();
  return { serviceId, connectionString, marks: { accepted, succeeded, revealed, connected, inserted } };
}

/** Not measured: gone, and its instance with it. */
export async function removed(product: Product, serviceId: string, tenant: Tenant): Promise<void> {
  const { body } = await product.ask('DELETE', `/postgres/services/${serviceId}?purge=true`, { tenant });
  const id = /"id":"(op_[^"]+)"/.exec(JSON.stringify(body['operation']))?.[1];
  if (!id) throw new Error(`not deleted: ${JSON.stringify(body)}`);
  await product.finished(id, tenant);
}

/** The pool is refilled one by one, so a round begins only when all members stand ready. */
export async function poolHolds(product: Product, plan: string, members: number): Promise<void> {
  const log = await readFile(join(product.clone.dir, 'logs/edge-postgres-host.log'), 'utf8').catch(() => '');
  const address = /"metrics":"([^"]+)"/.exec(log)?.[1] ?? product.clone.settings['METRICS_ADDR'] ?? '';
  for (;;) {
    const text = await fetch(`http://${address}/readyz`).then((response) => response.text());
    if (text.includes(`"${plan}":${members}`)) return;
    await pause(100);
  }
}

export function report(how: string, marks: readonly Marks[]): void {
  const names = {
    accepted: 'T1-T0 202 read', succeeded: 'T2-T0 operation succeeded', revealed: '      password revealed', connected: '      logged in over the gateway', inserted: 'T3-T0 first row acknowledged',
  } as const;
  print(`${how}:`);
  for (const key of ['accepted', 'succeeded', 'revealed', 'connected', 'inserted'] as const) print(line(`  ${names[key]}`, marks.map((mark) => mark[key])));
}

const poolMax = 8;

/** Services made by as many customers at once, round after round, on an installation of their own whose pool is full before each round. */
export async function createInRounds({ atOnce, warmUp, rounds }: { atOnce: number; warmUp: number; rounds: number }): Promise<Marks[]> {
  const product = await Product.start({
    PG_POOL_RUNNING: `starter:${poolMax}`, PG_POOL_PREPARED: '0', RATE_MANAGEMENT_PER_5_MINUTES: '1000000', RATE_REVEAL_PER_MINUTE: '10000',
  });
  const marks: Marks[] = [];
  try {
    for (let round = 0; round < warmUp + rounds; round++) {
      await poolHolds(product, 'starter', poolMax);
      const tenants = await Promise.all(Array.from({ length: atOnce }, () => product.newTenant()));
      const made = await Promise.all(tenants.map((tenant) => createAndInsert(product, tenant)));
      if (round >= warmUp) marks.push(...made.map(({ marks: taken }) => taken));
      await Promise.all(made.map(({ serviceId }, index) => removed(product, serviceId, tenants[index] ?? product.tenant)));
    }
  } finally {
    await product.stop();
  }
  return marks;
}

/** Every other way to the same first row, as many at once. */
export async function comparePeers(atOnce: number, oursMs: number): Promise<void> {
  for (const peer of [createdbPeer, embeddedPeer, debianPeer]) {
    const session = await peer.open();
    if ('absent' in session) print(`${peer.name}: not measured, ${session.absent}`);
    else await samplesOf(peer, session, atOnce).then((samples) => print(`${line(`peer: ${peer.name}`, samples)}  ours/peer ${(oursMs / percentile(samples, 0.5)).toFixed(3)}`));
  }
}

async function samplesOf({ warmUp, runs }: Peer, session: PeerSession, atOnce: number): Promise<number[]> {
  const samples: number[] = [];
  const warmUpRounds = Math.ceil(warmUp / atOnce);
  try {
    for (let round = 0; round < warmUpRounds + Math.ceil(runs / atOnce); round++) {
      const taken = await Promise.all(Array.from({ length: atOnce }, (_, index) => session.createAndInsert(round * atOnce + index)));
      if (round >= warmUpRounds) samples.push(...taken);
    }
  } finally {
    await session.close();
  }
  return samples;
}
