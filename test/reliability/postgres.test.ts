import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Connection } from '@temporalio/client';
import { operationSchema } from '../../src/operations/view';
import { serviceSchema } from '../../src/postgres/schemas';
import { formsOf } from '../support/canaries';
import { connectWith, Product } from '../support/product';

jest.setTimeout(240_000);
let product: Product;
/** Every password that was ever shown in this file. */
const issued: string[] = [];

beforeAll(async () => {
  product = await Product.start({ PG_POOL_RUNNING: 'starter:1', PG_POOL_PREPARED: '1', RATE_REVEAL_PER_MINUTE: '1000' });
});
afterAll(() => product?.stop());

async function usable() {
  const { serviceId, operationId } = await product.accept();
  expect(await product.finished(operationId)).toMatchObject({ state: 'succeeded', error: null });
  const credentials = await product.reveal(serviceId);
  issued.push(credentials.password);
  return { serviceId, ...credentials };
}

function pidOf(name: string): number {
  const pid = product.file.processes.find((process) => process.name === name)?.pid;
  if (!pid) throw new Error(`${name} does not run.`);
  return pid;
}

const statusOf = async (serviceId: string) => serviceSchema.parse((await product.ask('GET', `/postgres/services/${serviceId}?deleted=true`)).body['service']);

test('created over REST, used with psql and with pg by the string as it is, deleted, and refused', async () => {
  const { serviceId, connectionString } = await usable();
  expect(await statusOf(serviceId)).toMatchObject({ status: 'available', accessMode: 'full', compute: 'running', phase: null, operationId: null, deletedAt: null });
  const client = await connectWith(connectionString);
  await client.query('create table orders (id int primary key, what text)');
  await client.query(`insert into orders values (1, 'tea')`);
  const psql = await promisify(execFile)('psql', [connectionString, '-Atc', 'select what from orders']).catch((error: unknown) => error);
  if (!isAbsent(psql)) expect(psql).toMatchObject({ stdout: 'tea\n' });
  const masked = connectionString.replace(/:[^:@]+@/, ':********@');
  await expect(connectWith(masked)).rejects.toMatchObject({ code: '28P01' });

  const cut = new Promise<void>((resolve) => client.once('end', resolve));
  const { status, body } = await product.ask('DELETE', `/postgres/services/${serviceId}`);
  expect([status, body['status']]).toEqual([202, 'deleting']);
  await cut;
  await expect(connectWith(connectionString)).rejects.toMatchObject({ code: '28000' });
  const operation = body['operation'];
  const operationId = typeof operation === 'object' && operation !== null && 'id' in operation ? String(operation.id) : '';
  expect((await product.finished(operationId)).state).toBe('succeeded');
  expect(await statusOf(serviceId)).toMatchObject({ status: 'deleted', accessMode: 'blocked', compute: 'stopped', operationId: null });
  await expect(connectWith(connectionString)).rejects.toMatchObject({ code: '28000' });
  expect((await product.ask('GET', `/postgres/services/${serviceId}/credentials`)).status).toBe(404);
});

test('created while Temporal stands still: accepted at once, done when it moves again', async () => {
  const temporal = pidOf('temporal');
  process.kill(temporal, 'SIGSTOP');
  let accepted: { serviceId: string; operationId: string };
  try {
    accepted = await product.accept();
    const log = join(product.clone.dir, 'logs/api.log');
    await product.clone.until(async () => (await readFile(log, 'utf8')).split('\n').some((line) => line.includes(accepted.operationId) && line.includes('left to the relay')));
    expect((await statusOf(accepted.serviceId)).status).toBe('provisioning');
  } finally {
    process.kill(temporal, 'SIGCONT');
  }
  expect((await product.finished(accepted.operationId)).state).toBe('succeeded');
});

test('DELETE during provisioning, eight at once: one operation, and nothing left', async () => {
  const { serviceId, operationId } = await product.accept('launch');
  const answers = await Promise.all(Array.from({ length: 8 }, () => product.ask('DELETE', `/postgres/services/${serviceId}`)));
  const ids = new Set(answers.map(({ body }) => JSON.stringify(body['operation'])).map((text) => /"id":"(op_[^"]+)"/.exec(text)?.[1]));
  expect(ids.size).toBe(1);
  expect((await product.finished([...ids][0] ?? '')).state).toBe('succeeded');
  expect((await product.finished(operationId)).state).toBe('cancelled');
  const { rows: [row] } = await product.database.pool.query('select status, host_id, reserved_bytes::int as reserved, (select state from postgres_credential where service_id = id) as credential from postgres_service where id = $1', [serviceId]);
  expect(row).toEqual({ status: 'deleted', host_id: null, reserved: 0, credential: 'destroyed' });
});

test('no password, of a creation, a rotation or a return, is found in logs, histories, answers, processes or the database outside its seal', async () => {
  const { serviceId, connectionString } = await usable();
  const session = await connectWith(connectionString);
  const renewed = async (method: string, path: string, body?: object) => {
    await settled(serviceId, method, path, body);
    const { password, ...credentials } = await product.reveal(serviceId);
    issued.push(password);
    return credentials;
  };
  const overlapping = await renewed('POST', '/credentials/rotate', { mode: 'overlap' });
  const other = await connectWith(overlapping.connectionString);
  await renewed('POST', '/credentials/rotate', { terminateConnections: false });
  await expect(connectWith(overlapping.connectionString)).rejects.toMatchObject({ code: '28P01' });
  const processes = await processTexts();
  expect(processes).toContain(`postgres: ${overlapping.user} app`);
  await Promise.all([session.end(), other.end()]);
  await settled(serviceId, 'DELETE', '');
  await renewed('POST', '/undelete');
  expect(new Set(issued).size).toBe(issued.length);
  const forms = issued.flatMap((password) => [...formsOf(password)]);
  const places = new Map<string, string>([
    ['database', await dump()], ['histories', await histories()], ['processes', processes], ['answers', await answers(serviceId)],
    ...(await files(product.clone.dir)).map(([name, text]) => [name, text] as const),
  ]);
  expect([...places.keys()].filter((name) => name.endsWith('/server.log')).length).toBeGreaterThan(1);
  expect(places.get('histories')).toContain('provisionPostgres');
  expect(places.get('answers')).toContain('"kind":"postgres.rotate_credentials"');
  for (const [place, text] of places) for (const form of forms) expect({ place, found: text.includes(form) }).toEqual({ place, found: false });
});

async function settled(serviceId: string, method: string, path: string, body?: object): Promise<void> {
  const answer = await product.ask(method, `/postgres/services/${serviceId}${path}`, body ? { body } : {});
  expect({ path, status: answer.status }).toEqual({ path, status: 202 });
  expect(await product.finished(operationSchema.parse(answer.body['operation']).id)).toMatchObject({ state: 'succeeded', error: null });
}

/** What `ps` shows of every process of this machine, and their environments. */
async function processTexts(): Promise<string> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const texts = await Promise.all(pids.flatMap((pid) => ['cmdline', 'environ'].map((name) => readFile(`/proc/${pid}/${name}`, 'latin1').catch(() => ''))));
  return texts.join('\n');
}

/** All that the API says of the service but the password itself: settings, operations, audit log, and refusals. */
async function answers(serviceId: string): Promise<string> {
  const paths = ['/postgres/services', `/postgres/services/${serviceId}`, `/postgres/services/${serviceId}/credentials`, `/postgres/services/${serviceId}/metrics`, `/postgres/services/${serviceId}/backups`, '/operations'];
  const read = await Promise.all(paths.map((path) => product.ask('GET', path)));
  const refused = await product.ask('POST', `/postgres/services/${serviceId}/credentials/rotate`, { body: { mode: 'later' } });
  return JSON.stringify([...read, refused].map(({ body }) => body));
}

/** A machine without psql proves it with pg alone. */
function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

async function dump(): Promise<string> {
  const { rows: tables } = await product.database.pool.query<{ name: string }>(`select format('%I', tablename) as name from pg_tables where schemaname = 'public'`);
  const texts = await Promise.all(tables.map(async ({ name }) => (await product.database.pool.query<{ row: string }>(`select t::text as row from ${name} t`)).rows.map(({ row }) => row).join('\n')));
  return texts.join('\n');
}

/** Every event of every run, as the server answers it, with payloads as text. */
async function histories(): Promise<string> {
  const connection = await Connection.connect({ address: `127.0.0.1:${product.clone.settings['TEMPORAL_PORT']}` });
  try {
    const namespace = 'default';
    const { executions } = await connection.workflowService.listWorkflowExecutions({ namespace, pageSize: 1_000 });
    const texts = await Promise.all((executions ?? []).map(async ({ execution, type }) => {
      const { history } = await connection.workflowService.getWorkflowExecutionHistory({ namespace, execution: execution ?? null });
      return `${type?.name}\n${JSON.stringify(history, (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value))}`;
    }));
    return texts.join('\n');
  } finally {
    await connection.close();
  }
}

async function files(dir: string): Promise<[string, string][]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const logs = entries.filter((entry) => entry.isFile() && /\.(log|json)$|^log$/.test(entry.name)).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(logs.map(async (path): Promise<[string, string]> => [path.slice(dir.length), await readFile(path, 'latin1')]));
}
