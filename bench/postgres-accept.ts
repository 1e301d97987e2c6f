/**
 * The 202 of a creation itself: request on a kept-alive connection → answer read, on an installation whose worker leaves
 * Postgres alone, so that nothing but the API, its database and the start of the workflow is measured. Peer: reading the
 * service just created, the cheapest request of the same API.
 */
import { Product } from '../test/support/product';
import { line, print } from './statistics';

const warmUp = 50;
const runs = Number(process.env['RUNS'] ?? 500);
const perTenant = 50;

async function main(): Promise<void> {
  const product = await Product.start({ WORKER_QUEUES: 'system', RATE_MANAGEMENT_PER_5_MINUTES: '1000000' });
  try {
    print(line('202 of a creation, one at a time', await measure(product, 1, 'POST'), [0.5, 0.95, 0.99]));
    print(line('202 of a creation, eight at once', await measure(product, 8, 'POST'), [0.5, 0.95, 0.99]));
    print(line('GET of a service, one at a time', await measure(product, 1, 'GET'), [0.5, 0.95, 0.99]));
    print(line('GET of a service, eight at once', await measure(product, 8, 'GET'), [0.5, 0.95, 0.99]));
  } finally {
    await product.stop();
  }
}

async function measure(product: Product, atOnce: number, method: 'POST' | 'GET'): Promise<number[]> {
  const samples: number[] = [];
  let tenant = product.tenant;
  let serviceId = '';
  for (let done = 0; done < warmUp + runs; done += atOnce) {
    if (done % (perTenant - perTenant % atOnce) === 0) {
      tenant = await product.newTenant();
      if (method === 'GET') serviceId = (await product.accept('business', tenant)).serviceId;
    }
    const batch = await Promise.all(Array.from({ length: atOnce }, async () => {
      const start = performance.now();
      if (method === 'POST') await product.accept('business', tenant);
      else await product.ask('GET', `/postgres/services/${serviceId}`, { tenant });
      return performance.now() - start;
    }));
    if (done >= warmUp) samples.push(...batch);
  }
  return samples;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
