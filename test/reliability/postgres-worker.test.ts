import { Client, Connection } from '@temporalio/client';
import { EmbeddedBackend } from '../../src/adapters/postgres-backend/embedded';
import { postgresDirectories } from '../../src/edge/postgres/directories';
import { operationSchema } from '../../src/operations/view';
import { steps } from '../../src/postgres/state';
import { WorkerLine, type Moment, type WaitingWorker } from '../support/postgres-worker';
import { connectWith, Product } from '../support/product';
import { rounds } from '../support/rounds';
import type { Tenant } from '../support/tenant';

/**
 * The worker is killed in steps of every workflow, with the real instance host behind it. `npm test` takes one step of the five that differ most; the
 * full form every step of the table, before and after its effect.
 */
const full = rounds(0, 1) === 1;
jest.setTimeout(rounds(300_000, 600_000));

const { changePostgres, deletePostgres, ...jobs } = steps;
/** Steps of each kind of work, from the one table: what is added there is killed here. */
const stepsOf = {
  ...jobs, ...changePostgres, deletePostgres: deletePostgres.filter((step) => step !== 'destroyInstance'), purgePostgres: deletePostgres.filter((step) => step !== 'retainInstance'),
};
type Kind = keyof typeof stepsOf;
type Made = { serviceId: string; tenant: Tenant };
type Asked = { serviceId: string; operationId: string };
/** `before`: what a service is brought to first; null: there is none yet. `becomes`: its status after the work. */
type Scenario = { before: 'available' | 'suspended' | 'deleted' | 'backed up' | null; ask(made: Made): Promise<Asked>; becomes: 'available' | 'suspended' | 'deleted' };

const scenarios: Readonly<Record<Kind, Scenario>> = {
  provisionPostgres: { before: null, ask: ({ tenant }) => product.accept('starter', tenant), becomes: 'available' },
  rotate: { before: 'available', ask: (made) => asked(made, 'POST', '/credentials/rotate'), becomes: 'available' },
  plan: { before: 'available', ask: changePlan, becomes: 'available' },
  suspend: { before: 'available', ask: (made) => asked(made, 'POST', '/suspend'), becomes: 'suspended' },
  resume: { before: 'suspended', ask: (made) => asked(made, 'POST', '/resume'), becomes: 'available' },
  restorePostgres: { before: 'backed up', ask: restore, becomes: 'available' },
  undeletePostgres: { before: 'deleted', ask: (made) => asked(made, 'POST', '/undelete'), becomes: 'available' },
  backupPostgres: { before: 'available', ask: (made) => asked(made, 'POST', '/backups'), becomes: 'available' },
  deletePostgres: { before: 'available', ask: (made) => asked(made, 'DELETE', ''), becomes: 'deleted' },
  purgePostgres: { before: 'available', ask: (made) => asked(made, 'DELETE', '?purge=true'), becomes: 'deleted' },
};

type Case = Moment & { kind: Kind };
const cases: Case[] = Object.keys(scenarios).filter(isKind).flatMap((kind) => momentsOf(kind).map((moment) => ({ kind, ...moment })));
const few: readonly Case[] = [
  { kind: 'provisionPostgres', step: 'ensureInstance', when: 'after' }, { kind: 'rotate', step: 'ensureAccess', when: 'after' }, { kind: 'resume', step: 'unblockAccess', when: 'before' },
  { kind: 'restorePostgres', step: 'restoreInstance', when: 'after' }, { kind: 'deletePostgres', step: 'retainInstance', when: 'after' },
];
/** Few at a time: who stands still must not wait for others until the time of its step is over, which is 30 s for a placement. */
const batchMax = 4;
const batches: [string, readonly Case[]][] = full ? Object.keys(scenarios).filter(isKind).flatMap(batchesOf) : [['five workflows', few]];

let product: Product;
let line: WorkerLine;
let serving: WaitingWorker;

beforeAll(async () => {
  product = await Product.start({ WORKER_QUEUES: 'system', PG_POOL_RUNNING: 'starter:1', PG_POOL_PREPARED: '3', RATE_REVEAL_PER_MINUTE: '1000' });
  await pauseBackups();
  line = await WorkerLine.of(product);
  serving = await line.next();
  serving.serve();
});
afterAll(async () => {
  line?.stop();
  await product?.stop();
});

test.each(batches)('killed in any step of %s, before or after its effect: the next worker ends it as if nothing had been', async (_, batch) => {
  const made = await Promise.all(batch.map(({ kind }) => prepared(scenarios[kind].before)));
  const [halting, next] = await Promise.all([line.next(), line.next()]);
  await serving.kill();
  const work = await Promise.all(batch.map(async ({ kind, step, when }, index) => ({ kind, step, when, tenant: at(made, index).tenant, ...await scenarios[kind].ask(at(made, index)) })));
  await halting.serveUntil(new Map(work.map(({ serviceId, step, when }) => [serviceId, { step, when }])));
  await halting.kill();
  next.serve();
  serving = next;
  const ends = await Promise.all(work.map(async ({ operationId, tenant }) => product.finished(operationId, tenant)));
  expect(ends.map(({ state, error }, index) => ({ ...batch[index], state, error }))).toEqual(batch.map((one) => ({ ...one, state: 'succeeded', error: null })));
  await Promise.all(work.map(async ({ kind, serviceId, tenant }) => requireEnd(kind, serviceId, tenant)));
  await requireNothingLeft();
});

/** A service in a project of its own, so that no plan's count is in the way, with three rows in it. */
async function prepared(before: Scenario['before']): Promise<Made> {
  const tenant = await product.newTenant();
  if (before === null) return { serviceId: '', tenant };
  const { serviceId, operationId } = await product.accept('starter', tenant);
  const made = { serviceId, tenant };
  await available(made, operationId);
  const client = await connectWith((await product.reveal(serviceId, tenant)).connectionString);
  await client.query('create table proof as select generate_series(1, 3) as n');
  await client.end();
  if (before === 'suspended') await ended(made, 'POST', '/suspend');
  if (before === 'deleted') await ended(made, 'DELETE', '');
  if (before === 'backed up') await ended(made, 'POST', '/backups');
  return made;
}

/** Making it is not what is tested here: on a machine too busy to do so in time it is tried again. */
async function available(made: Made, operationId: string): Promise<void> {
  const { error } = await product.finished(operationId, made.tenant);
  if (error?.code === 'deadline_exceeded') return available(made, (await asked(made, 'POST', '/retry')).operationId);
  expect(error).toBeNull();
}

async function asked({ serviceId, tenant }: Made, method: string, path: string, body?: unknown): Promise<Asked> {
  const answer = await product.ask(method, `/postgres/services/${serviceId}${path}`, { tenant, ...(body === undefined ? {} : { body }) });
  expect({ path, status: answer.status, body: answer.body }).toMatchObject({ path, status: 202 });
  const { serviceId: named } = answer.body;
  return { serviceId: typeof named === 'string' ? named : serviceId, operationId: operationSchema.parse(answer.body['operation']).id };
}

async function ended(made: Made, method: string, path: string): Promise<void> {
  const { operationId } = await asked(made, method, path);
  expect(await product.finished(operationId, made.tenant)).toMatchObject({ state: 'succeeded', error: null });
}

async function changePlan({ serviceId, tenant }: Made): Promise<Asked> {
  const { rows: [subscription] } = await product.database.pool.query(`select id from subscription where resource_id = $1 and status <> 'canceled'`, [serviceId]);
  const { body } = await product.ask('POST', `/billing/subscriptions/${subscription.id}/change-plan`, { tenant, body: { plan: 'launch' } });
  return { serviceId, operationId: operationSchema.parse(body['operation']).id };
}

async function restore(made: Made): Promise<Asked> {
  const { rows: [backup] } = await product.database.pool.query(`select id from postgres_backup where service_id = $1 and status = 'complete'`, [made.serviceId]);
  return asked(made, 'POST', '/restore', { backupId: backup.id });
}

/** The status says so, and so does a customer who comes with the password that is shown. */
async function requireEnd(kind: Kind, serviceId: string, tenant: Tenant): Promise<void> {
  const { becomes, before } = scenarios[kind];
  const { rows: [row] } = await product.database.pool.query(`select status, status_before as before, deadline_at as deadline,
    (select count(*)::int from usage_span where resource_id = s.id and upper_inf(span)) as spans, (select count(*)::int from subscription where resource_id = s.id and status <> 'canceled') as paid,
    (select count(*)::int from postgres_credential where service_id = s.id and state = 'pending') as pending, (select count(*)::int from postgres_credential where service_id = s.id and secret_sealed is not null) as secrets
    from postgres_service s where id = $1`, [serviceId]);
  const living = becomes === 'deleted' ? 0 : 1;
  expect({ kind, ...row }).toEqual({ kind, status: becomes, before: null, deadline: null, spans: living, paid: living, pending: 0, secrets: living });
  if (becomes !== 'available') return;
  const client = await connectWith((await product.reveal(serviceId, tenant)).connectionString);
  const { rows } = await client.query(before === null ? 'select 3 as rows' : 'select count(*)::int as rows from proof');
  await client.end();
  expect({ kind, rows }).toEqual({ kind, rows: [{ rows: 3 }] });
}

/** Hosts hold the servers of living services, the data of retained ones, and nothing else. */
async function requireNothingLeft(): Promise<void> {
  const ids = async (where: string) => (await product.database.pool.query(`select id from postgres_service where ${where} order by id`)).rows.map(({ id }) => id);
  const environment = await product.environment();
  const { run } = postgresDirectories({ HOLDFAST_DATA_DIR: product.clone.dir, HOLDFAST_INSTALLATION: environment['HOLDFAST_INSTALLATION'] ?? '', PG_DATA_DIR: environment['PG_DATA_DIR'], PG_RUN_DIR: undefined });
  const backend = new EmbeddedBackend({ runDir: run, publicAddress: () => ({ host: 'localhost', port: 0 }) });
  const items = await backend.inventory().finally(() => backend.close());
  const held = (retained: boolean) => items.flatMap((item) => (item.serviceId !== null && item.retained === retained ? [item.serviceId] : [])).toSorted();
  expect({ living: held(false), retained: held(true) }).toEqual({ living: await ids(`status in ('available', 'suspended')`), retained: await ids(`status = 'deleted' and host_id is not null`) });
  const { rows } = await product.database.pool.query(`select h.services = count(s.id)::int as services, h.reserved_bytes = coalesce(sum(s.reserved_bytes), 0) as bytes
    from postgres_host h left join postgres_service s on s.host_id = h.name group by h.name`);
  expect(rows).toEqual([{ services: true, bytes: true }]);
}

/** The daily backup would come between: two of one service at a time are refused. */
async function pauseBackups(): Promise<void> {
  const connection = await Connection.connect({ address: `127.0.0.1:${product.clone.settings['TEMPORAL_PORT']}` });
  await new Client({ connection }).schedule.getHandle('postgres-backups').pause();
  await connection.close();
}

function momentsOf(kind: Kind): Moment[] {
  const moments = stepsOf[kind].flatMap((step) => (['before', 'after'] as const).map((when) => ({ step, when })));
  return kind === 'provisionPostgres' ? [{ step: 'provisionFromPool', when: 'after' }, ...moments] : moments;
}

function batchesOf(kind: Kind): [string, readonly Case[]][] {
  const own = cases.filter((one) => one.kind === kind);
  const starts = own.map((_, index) => index).filter((index) => index % batchMax === 0);
  return starts.map((start) => [`${kind}, part ${start / batchMax + 1}`, own.slice(start, start + batchMax)]);
}

function at(made: readonly Made[], index: number): Made {
  const one = made[index];
  if (!one) throw new Error('There are as many services as cases.');
  return one;
}

function isKind(name: string): name is Kind {
  return name in scenarios;
}
