/**
 * What services cost that nobody uses (contract postgres.md §9, idle): SERVICES of them on this machine, running without sessions, then stopped.
 * Memory is PSS, so what processes share is counted once; disk is what the data directories occupy. Peer: one server with as many databases.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { usedBytes } from '../src/edge/postgres/host/observe';
import { Product } from '../test/support/product';
import type { Tenant } from '../test/support/tenant';
import { manyDatabasesPeer } from './peers/postgres';
import { line, percentile, print } from './statistics';

const services = Number(process.env['SERVICES'] ?? 200);
const mib = 1024 ** 2;

async function main(): Promise<void> {
  const product = await Product.start({ PG_POOL_RUNNING: 'trial:0', PG_POOL_PREPARED: '0', PG_RESERVE_BYTES: '0', PG_CAPACITY_BYTES: String(10 ** 13), RATE_MANAGEMENT_PER_5_MINUTES: '1000000' });
  try {
    const nothing = await apiTimes(product);
    print(line('API, GET of the account’s services, no service', nothing));
    const tenants = new Map<string, Tenant>();
    for (let made = 0; made < services; made += 4) await Promise.all(Array.from({ length: Math.min(4, services - made) }, () => make(product, tenants)));
    const instances = join((await product.environment())['PG_DATA_DIR'] ?? '', 'instances');
    const bytes = await usedBytes(instances);
    print(`${services} running: PSS ${(await pssBelow(instances) / services / mib).toFixed(1)} MB each (target 10), disk ${(bytes / services / mib).toFixed(1)} MB each (target 40)`);
    compare('the same, all running', await apiTimes(product), nothing);
    for (const [serviceId, tenant] of tenants) await settled(product, await product.ask('POST', `/postgres/services/${serviceId}/suspend`, { tenant }), tenant);
    print(`${services} stopped: PSS ${(await pssBelow(instances) / mib).toFixed(1)} MB in all`);
    compare('the same, all stopped', await apiTimes(product), nothing);
  } finally {
    await product.stop();
  }
  const peer = await manyDatabasesPeer(services, pssBelow);
  print(`peer, one server with ${services} databases: PSS ${(peer.pssBytes / services / mib).toFixed(2)} MB each, disk ${(peer.diskBytes / services / mib).toFixed(1)} MB each`);
}

async function make(product: Product, tenants: Map<string, Tenant>): Promise<void> {
  const tenant = await product.newTenant();
  const { serviceId, operationId } = await product.accept('starter', tenant);
  const { state } = await product.finished(operationId, tenant);
  if (state !== 'succeeded') throw new Error(`${serviceId} ended ${state}.`);
  tenants.set(serviceId, tenant);
}

async function settled(product: Product, { body }: { body: Record<string, unknown> }, tenant: Tenant): Promise<void> {
  await product.finished(/"id":"(op_[^"]+)"/.exec(JSON.stringify(body['operation']))?.[1] ?? '', tenant);
}

async function apiTimes(product: Product): Promise<number[]> {
  const times: number[] = [];
  for (let run = 0; run < 220; run++) {
    const start = performance.now();
    await product.ask('GET', '/postgres/services');
    if (run >= 20) times.push(performance.now() - start);
  }
  return times;
}

function compare(what: string, times: readonly number[], before: readonly number[]): void {
  print(`${line(`API, ${what}`, times)}  p50 × ${(percentile(times, 0.5) / percentile(before, 0.5)).toFixed(2)} (target 0.8–1.2)`);
}

/** Proportional set size of every process that stands in or below the directory. */
async function pssBelow(directory: string): Promise<number> {
  let sum = 0;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
    if (!cwd.startsWith(directory)) continue;
    const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
    sum += Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
  }
  return sum;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
