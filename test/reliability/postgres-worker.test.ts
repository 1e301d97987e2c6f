import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { EmbeddedBackend } from '../../src/adapters/postgres-backend/embedded';
import { postgresDirectories } from '../../src/edge/postgres/directories';
import { deletedAnswer } from '../../src/postgres/schemas';
import { steps } from '../../src/postgres/state';
import { connectWith, Product } from '../support/product';
import type { Tenant } from '../support/tenant';

jest.setTimeout(300_000);
let product: Product;
const workers: ChildProcess[] = [];

beforeAll(async () => {
  product = await Product.start({ WORKER_QUEUES: 'system', PG_POOL_RUNNING: 'starter:1', PG_POOL_PREPARED: '2', RATE_REVEAL_PER_MINUTE: '1000' });
});
afterAll(async () => {
  for (const worker of workers) worker.kill('SIGKILL');
  await product?.stop();
});

/** A worker that serves the queue, and what it says. */
async function startWorker(halts: object, onHalt: (serviceId: string) => void): Promise<ChildProcess> {
  const child = fork(resolve(__dirname, '../support/postgres-worker-process.ts'), [], {
    execArgv: ['-r', resolve(__dirname, '../support/typescript.cjs')], stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...await product.environment(), HALTS: JSON.stringify(halts) },
  });
  workers.push(child);
  const ready = new Promise<void>((done, fail) => {
    child.once('exit', (code) => fail(new Error(`The worker ended (${code}) before it was ready.`)));
    child.on('message', (message: unknown) => {
      if (typeof message !== 'object' || message === null) return;
      if ('ready' in message) done();
      if ('halted' in message) onHalt(String(message.halted));
    });
  });
  await ready;
  return child;
}

type Moment = { step: string; when: 'before' | 'after' };
type Service = { serviceId: string; operationId: string; tenant: Tenant };

const momentsOf = (names: readonly string[]): Moment[] => names.flatMap((step) => (['before', 'after'] as const).map((when) => ({ step, when })));

function at(moments: readonly Moment[], index: number): Moment {
  const moment = moments[index];
  if (!moment) throw new Error('There are as many services as moments.');
  return moment;
}

/** Each in a project of its own, so that no plan's count is in the way. */
function acceptMany(count: number): Promise<Service[]> {
  return Promise.all(Array.from({ length: count }, async () => {
    const tenant = await product.newTenant();
    return { tenant, ...await product.accept('starter', tenant) };
  }));
}

/** A worker comes to each service's moment, stands still there, and is killed with all of them unfinished. */
async function killWorkerAt(moments: ReadonlyMap<string, Moment>, begin: () => Promise<void>): Promise<void> {
  const waiting = new Set(moments.keys());
  let halted: () => void = () => undefined;
  const allHalted = new Promise<void>((done) => { halted = done; });
  const worker = await startWorker(Object.fromEntries(moments), (serviceId) => {
    waiting.delete(serviceId);
    if (waiting.size === 0) halted();
  });
  await begin();
  await allHalted;
  await killed(worker);
}

async function killed(worker: ChildProcess): Promise<void> {
  const exited = once(worker, 'exit');
  worker.kill('SIGKILL');
  await exited;
}

test('killed in any step of provisioning, before or after its effect: the next worker finishes every service', async () => {
  const moments = [...momentsOf(steps.provisionPostgres), { step: 'provisionFromPool', when: 'after' } as const];
  const services = await acceptMany(moments.length);
  await killWorkerAt(new Map(services.map(({ serviceId }, index) => [serviceId, at(moments, index)])), async () => undefined);
  const next = await startWorker({}, () => undefined);
  const ends = await Promise.all(services.map(({ operationId, tenant }) => product.finished(operationId, tenant)));
  expect(ends.map(({ state }, index) => ({ ...moments[index], state }))).toEqual(moments.map((moment) => ({ ...moment, state: 'succeeded' })));
  for (const { serviceId, tenant } of services) {
    const client = await connectWith((await product.reveal(serviceId, tenant)).connectionString);
    await client.query('create table proof ()');
    await client.end();
  }
  expect(await ownedInstances()).toEqual(services.map(({ serviceId }) => serviceId).toSorted());
  const { rows: [host] } = await product.database.pool.query('select services from postgres_host');
  expect(host).toEqual({ services: services.length });
  await killed(next);
});

test('killed in any step of a deletion, before or after its effect: the next worker ends every service deleted', async () => {
  const others = await ownedInstances();
  const moments = momentsOf(steps.deletePostgres.filter((step) => step !== 'destroyInstance'));
  const worker = await startWorker({}, () => undefined);
  const services = await acceptMany(moments.length);
  for (const { operationId, tenant } of services) expect((await product.finished(operationId, tenant)).state).toBe('succeeded');
  await killed(worker);
  const operations: { id: string; tenant: Tenant }[] = [];
  await killWorkerAt(new Map(services.map(({ serviceId }, index) => [serviceId, at(moments, index)])), async () => {
    for (const { serviceId, tenant } of services) {
      const { operation } = deletedAnswer.parse((await product.ask('DELETE', `/postgres/services/${serviceId}`, { tenant })).body);
      operations.push({ id: operation?.id ?? '', tenant });
    }
  });
  const next = await startWorker({}, () => undefined);
  for (const { id, tenant } of operations) expect((await product.finished(id, tenant)).state).toBe('succeeded');
  const { rows } = await product.database.pool.query(`select s.status, c.state as credential, s.host_id is not null as retained from postgres_service s
    join postgres_credential c on c.service_id = s.id where s.id = any($1)`, [services.map(({ serviceId }) => serviceId)]);
  expect(rows).toEqual(services.map(() => ({ status: 'deleted', credential: 'destroyed', retained: true })));
  expect(await ownedInstances()).toEqual(others);
  await killed(next);
});

/** Services the instance host has a running or stopped server for. */
async function ownedInstances(): Promise<string[]> {
  const environment = await product.environment();
  const { run } = postgresDirectories({ HOLDFAST_DATA_DIR: product.clone.dir, HOLDFAST_INSTALLATION: environment['HOLDFAST_INSTALLATION'] ?? '', PG_DATA_DIR: environment['PG_DATA_DIR'], PG_RUN_DIR: undefined });
  const backend = new EmbeddedBackend({ runDir: run, publicAddress: () => ({ host: 'localhost', port: 0 }) });
  try {
    const items = await backend.inventory();
    return items.flatMap(({ serviceId, retained }) => (serviceId !== null && !retained ? [serviceId] : [])).toSorted();
  } finally {
    backend.close();
  }
}
