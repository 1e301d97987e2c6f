/**
 * Point-in-time restore of 36 MB in 300,000 rows to 50 ms before a DROP TABLE (contract postgres.md §9): at the instance host, from the call to the promoted
 * and stopped copy; through the API, from the first byte of POST to the operation that says succeeded. Every restored row is counted.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { newId } from '../src/core/ids';
import { backupAcceptedAnswer } from '../src/postgres/schemas/backups';
import { acceptedAnswer, serviceAnswer } from '../src/postgres/schemas';
import { makeService, TestRoutes } from '../test/support/postgres-gateway';
import { HostSite, newService, until, type TestService } from '../test/support/postgres-host';
import { connectWith, Product } from '../test/support/product';
import { line, print } from './statistics';

const warmUp = Number(process.env['WARM_UP'] ?? 10);
const runs = Number(process.env['RUNS'] ?? 50);
const rowCount = 300_000;
const targetsMs = { host: 1_000, api: 3_000 };
const fill = `create table kept as select n, md5(n::text) || md5((n + 1)::text) as t from generate_series(1, ${rowCount}) n`;

async function main(): Promise<void> {
  print(`${line('host: restore called → promoted', await atHost())}  target ${targetsMs.host}`);
  print(`${line('API: POST restore → succeeded', await throughApi())}  target ${targetsMs.api}`);
}

async function atHost(): Promise<number[]> {
  const site = await HostSite.make();
  const host = await site.start();
  const backend = site.backend();
  const times: number[] = [];
  try {
    const source = await makeService(backend, new TestRoutes(), 'starter');
    const client = await connect(site, source, source.login.name);
    await client.query(fill);
    const backupId = newId('bak');
    await backend.snapshot({ ...source.ref, backupId });
    const targetTime = await dropped(client);
    await client.end();
    await switched(site, source);
    await until(async () => ((await backend.observe(source.ref)).newestArchivedWal ?? '') > targetTime, 'the archive');
    for (let run = 0; run < warmUp + runs; run++) {
      const copy = newService('starter');
      await backend.place({ ...copy.ref, version: '18' });
      const begun = performance.now();
      await backend.restore({ ...copy.ref, source: { kind: 'backup', serviceId: source.ref.serviceId, backupId, targetTime } });
      if (run >= warmUp) times.push(performance.now() - begun);
      await backend.ensureInstance({ ...copy.ref, version: '18' });
      await backend.ensureAccess({ ...copy.ref, logins: [copy.login], endSessionsOf: [] });
      await requireRows(await connect(site, copy, copy.login.name));
      await backend.destroy({ ...copy.ref, retain: false });
    }
  } finally {
    backend.close();
    await host.stop();
    await site.remove();
  }
  return times;
}

async function throughApi(): Promise<number[]> {
  const product = await Product.start({ PG_POOL_RUNNING: 'starter:1', PG_POOL_PREPARED: '0', RATE_MANAGEMENT_PER_5_MINUTES: '1000000', RATE_REVEAL_PER_MINUTE: '10000' });
  const times: number[] = [];
  try {
    const { serviceId, operationId } = await product.accept('starter');
    await product.finished(operationId);
    const client = await connectWith((await product.reveal(serviceId)).connectionString);
    await client.query(fill);
    const { operation } = backupAcceptedAnswer.parse((await product.ask('POST', `/postgres/services/${serviceId}/backups`)).body);
    await product.finished(operation.id);
    const targetTime = await dropped(client);
    await client.end();
    for (let end = performance.now() + 240_000; !await reaches(product, serviceId, targetTime);) {
      if (performance.now() > end) throw new Error('The archive does not reach the time.');
      await new Promise((done) => setTimeout(done, 500));
    }
    for (let run = 0; run < warmUp + runs; run++) {
      const begun = performance.now();
      const answer = await product.ask('POST', `/postgres/services/${serviceId}/restore`, { body: { targetTime } });
      if (answer.status !== 202) throw new Error(`not accepted: ${JSON.stringify(answer.body)}`);
      const made = acceptedAnswer.parse(answer.body);
      const ended = await product.finished(made.operation.id);
      if (ended.state !== 'succeeded') throw new Error(`${ended.state}: ${JSON.stringify(ended.error)}`);
      if (run >= warmUp) times.push(performance.now() - begun);
      await requireRows(await connectWith((await product.reveal(made.serviceId)).connectionString));
      await product.ask('DELETE', `/postgres/services/${made.serviceId}?purge=true`);
    }
  } finally {
    await product.stop();
  }
  return times;
}

async function reaches(product: Product, serviceId: string, time: string): Promise<boolean> {
  const { service } = serviceAnswer.parse((await product.ask('GET', `/postgres/services/${serviceId}`)).body);
  return (service.backups.latestRestoreTime ?? '') > time;
}

/** The table is gone; answers a time 50 ms before that. */
async function dropped(client: pg.Client): Promise<string> {
  await client.query('select pg_sleep(0.1)');
  const { rows: [row] } = await client.query('select clock_timestamp() as at');
  await client.query('select pg_sleep(0.05)');
  await client.query('drop table kept');
  return row.at.toISOString();
}

async function requireRows(client: pg.Client): Promise<void> {
  const { rows: [row] } = await client.query('select count(*)::int as n from kept');
  await client.end();
  if (row.n !== rowCount) throw new Error(`${row.n} rows came back instead of ${rowCount}.`);
}

async function slotOf(site: HostSite, { ref }: TestService): Promise<number> {
  const backend = site.backend();
  const id = (await backend.inventory()).find((item) => item.serviceId === ref.serviceId)?.instanceRef ?? '';
  backend.close();
  return JSON.parse(await readFile(join(site.dataDir, 'instances', id, 'instance.json'), 'utf8')).slot;
}

async function connect(site: HostSite, service: TestService, user: string): Promise<pg.Client> {
  const client = new pg.Client({ host: '127.0.0.1', port: site.config.PG_PORT_BASE + await slotOf(site, service), user, password: service.password, database: 'app' });
  await client.connect();
  return client;
}

/** What a minute does by itself. */
async function switched(site: HostSite, service: TestService): Promise<void> {
  const slot = await slotOf(site, service);
  const admin = new pg.Client({ host: join(site.runDir, String(slot)), port: site.config.PG_PORT_BASE + slot, user: 'holdfast_admin', database: 'postgres' });
  await admin.connect();
  await admin.query('select pg_switch_wal()');
  await admin.end();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
