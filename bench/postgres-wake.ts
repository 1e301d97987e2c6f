import type pg from 'pg';
import { customer, makeService, startGateway, TestRoutes } from '../test/support/postgres-gateway';
import { HostSite, until, type TestService } from '../test/support/postgres-host';
import { line, print } from './statistics';

// Connect → SELECT answered, with TLS through the gateway: an instance that was stopped for idleness beside one that runs;
// and what creation costs the data plane: claim of a pool member → first row of the customer.
const runs = Number(process.env['RUNS'] ?? 50);
const warmUp = Number(process.env['WARM_UP'] ?? 10);

async function main(): Promise<void> {
  const site = await HostSite.make();
  const host = await site.start({ PG_POOL_RUNNING: 'trial:1', PG_POOL_PREPARED: 1 }, { idleMs: () => (resting ? 0 : null), sweepMs: 5 });
  let resting = true;
  const backend = site.backend();
  const routes = new TestRoutes();
  const gateway = await startGateway({ site, routes });
  const service = await makeService(backend, routes, 'starter');
  const isIdle = async () => (await backend.observe(service.ref)).compute === 'idle';
  const wake = await measured(async () => { resting = true; await until(isIdle); }, () => firstAnswer(gateway.port, service, 'select 1'));
  resting = false;
  const running = await measured(async () => undefined, () => firstAnswer(gateway.port, service, 'select 1'));
  resting = true;
  await until(isIdle);
  const begun = performance.now();
  const hundred = await Promise.all(Array.from({ length: 100 }, async () => firstAnswer(gateway.port, service, 'select 1').then(() => performance.now() - begun)));
  resting = false;
  const pooled = async () => host.pool.counts().running['trial'] === 1;
  let made: TestService | undefined;
  const claim = await measured(async () => {
    if (made) await backend.destroy({ ...made.ref, retain: false });
    await until(pooled);
  }, async () => {
    made = await makeService(backend, routes, 'trial');
    await firstAnswer(gateway.port, made, 'create table t (n int); insert into t values (1)');
  });
  print(`${line('connect + SELECT, stopped instance', wake)}  target p50 50, p95 120`);
  print(line('peer: connect + SELECT, running instance', running));
  print(`${line('the same, 100 at once on a stopped instance', hundred)}  ${hundred.length} of 100 served (target: all)`);
  print(line('pool claim → first row', claim));
  await gateway.drain(0);
  backend.close();
  await host.stop();
  await site.remove();
}

async function measured(before: () => Promise<void>, work: () => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  for (let run = 0; run < warmUp + runs; run++) {
    await before();
    const start = performance.now();
    await work();
    if (run >= warmUp) times.push(performance.now() - start);
  }
  return times;
}

async function firstAnswer(port: number, service: TestService, sql: string): Promise<void> {
  const client: pg.Client = customer(port, service);
  await client.connect();
  await client.query(sql);
  await client.end();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
