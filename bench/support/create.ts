import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connectWith, type Product } from '../../test/support/product';
import type { Tenant } from '../../test/support/tenant';
import { line, print } from '../statistics';

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
