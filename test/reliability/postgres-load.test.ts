import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { connectWith, Product } from '../support/product';
import type { Tenant } from '../support/tenant';
import { rounds } from '../support/rounds';
import { until } from '../support/until';

/** What holds while processes are killed under customers' load (contract postgres.md §10, "Committed stays"). */
jest.setTimeout(rounds(240_000, 900_000));
let product: Product;

beforeAll(async () => {
  product = await Product.start({ PG_POOL_RUNNING: 'starter:1', PG_POOL_PREPARED: '2', RATE_REVEAL_PER_MINUTE: '1000' });
});
afterAll(() => product?.stop());

async function usable(tenant?: Tenant) {
  const { serviceId, operationId } = await product.accept('starter', tenant);
  expect(await product.finished(operationId, tenant)).toMatchObject({ state: 'succeeded' });
  return { serviceId, ...await product.reveal(serviceId, tenant) };
}

function pidOf(name: string): number {
  const pid = product.file.processes.find((process) => process.name === name)?.pid;
  if (!pid) throw new Error(`${name} does not run.`);
  return pid;
}

/** The supervisor has another process of this name, and it serves. */
async function replaced(name: string, former: number): Promise<void> {
  const file = await product.clone.until((found) => {
    const pid = found.processes.find((process) => process.name === name)?.pid;
    return pid !== undefined && pid !== former;
  });
  Object.assign(product.file, file);
  if (name === 'api') await until(async () => (await fetch(`${file.apiUrl}/readyz`).catch(() => null))?.ok === true, 'the API to serve');
}

async function instancesDir(): Promise<string> {
  return join((await product.environment())['PG_DATA_DIR'] ?? '', 'instances');
}

/** Postmasters that stand in the data directory of this service. */
async function postmasters(serviceId: string): Promise<number[]> {
  const root = await instancesDir();
  for (const id of await readdir(root)) {
    const text = await readFile(join(root, id, 'instance.json'), 'utf8').catch(() => '{}');
    if (JSON.parse(text).serviceId !== serviceId) continue;
    const found: number[] = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (cwd === join(root, id, 'data') && command.includes('\0-D\0')) found.push(Number(pid));
    }
    return found;
  }
  return [];
}

/** Four customers insert and remember what was acknowledged, coming back after every loss of their session. */
class Load {
  readonly acknowledged = new Set<number>();
  private stopped = false;
  private next = 0;
  private readonly workers: Promise<void>[];

  constructor(private readonly connectionString: string) {
    this.workers = Array.from({ length: 4 }, () => this.work());
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.workers);
  }

  /** So many more rows were acknowledged. */
  async more(rows: number): Promise<void> {
    const wanted = this.acknowledged.size + rows;
    await until(() => this.acknowledged.size >= wanted, `${rows} more rows`);
  }

  private async work(): Promise<void> {
    while (!this.stopped) {
      const client = await connectWith(this.connectionString).catch(() => null);
      while (client && !this.stopped) {
        const n = this.next++;
        if (!await client.query('insert into ledger values ($1)', [n]).then(() => true, () => false)) break;
        this.acknowledged.add(n);
      }
      await client?.end().catch(() => undefined);
      if (!client) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

test('every acknowledged row is there after postmaster, host, gateway and worker were killed under load, and no second postmaster ever ran', async () => {
  const { serviceId, connectionString } = await usable();
  const first = await connectWith(connectionString);
  await first.query('create table ledger (n int primary key)');
  await first.end();
  const load = new Load(connectionString);
  await load.more(50);
  for (let round = 0; round < rounds(1, 5); round++) {
    for (const victim of ['postmaster', 'edge-postgres-host', 'edge-postgres', 'worker']) {
      const pids = victim === 'postmaster' ? await postmasters(serviceId) : [pidOf(victim)];
      expect(pids).toHaveLength(1);
      for (const pid of pids) process.kill(pid, 'SIGKILL');
      if (victim !== 'postmaster') await replaced(victim, pids[0] ?? 0);
      await load.more(50);
      expect(await postmasters(serviceId)).toHaveLength(1);
    }
  }
  await load.stop();
  const reader = await connectWith(connectionString);
  const { rows } = await reader.query<{ n: number }>('select n from ledger');
  await reader.end();
  const kept = new Set(rows.map(({ n }) => n));
  expect([...load.acknowledged].filter((n) => !kept.has(n))).toEqual([]);
});

test('a session goes on while API, worker and host are replaced', async () => {
  const { connectionString } = await usable();
  const client = await connectWith(connectionString);
  await client.query('create temp table mine (n int)');
  for (const name of ['api', 'worker', 'edge-postgres-host']) {
    const former = pidOf(name);
    process.kill(former, 'SIGKILL');
    await replaced(name, former);
    await client.query('insert into mine values (1)');
  }
  expect((await client.query('select count(*)::int as n from mine')).rows).toEqual([{ n: 3 }]);
  await client.end();
});

test('who has a service logs in while database and Temporal stand still', async () => {
  const { connectionString } = await usable();
  const frozen = [pidOf('temporal'), pidOf('database')];
  for (const pid of frozen) process.kill(pid, 'SIGSTOP');
  try {
    for (let login = 0; login < 5; login++) {
      const client = await connectWith(connectionString);
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      await client.end();
    }
  } finally {
    for (const pid of frozen) process.kill(pid, 'SIGCONT');
  }
});

test('sleeping services woken all at once are all served', async () => {
  const count = rounds(4, 50);
  const services: Awaited<ReturnType<typeof usable>>[] = [];
  for (let made = 0; made < count; made++) services.push(await usable(await product.newTenant()));
  const asleep = await Promise.all(services.map(async ({ serviceId }) => (await postmasters(serviceId))[0] ?? 0));
  for (const pid of asleep) process.kill(pid, 'SIGINT');
  await until(async () => (await Promise.all(services.map(({ serviceId }) => postmasters(serviceId)))).flat().length === 0, 'all to sleep');
  const answers = await Promise.all(services.map(async ({ connectionString }) => {
    const client = await connectWith(connectionString);
    const { rows } = await client.query('select session_user::text as login');
    await client.end();
    return rows[0].login;
  }));
  expect(answers).toEqual(services.map(({ user }) => user));
});

test('no password is in any process’s list of arguments or environment, nor in a server’s log', async () => {
  const { password, connectionString } = await usable();
  const client = await connectWith(connectionString);
  await client.query('select 1');
  const forms = [password, encodeURIComponent(password), Buffer.from(password).toString('base64').replace(/=+$/, '')];
  const texts: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    for (const file of ['cmdline', 'environ']) texts.push(await readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => ''));
  }
  for (const id of await readdir(await instancesDir())) texts.push(await readFile(join(await instancesDir(), id, 'server.log'), 'latin1').catch(() => ''));
  await client.end();
  expect(texts.join('\n')).toContain('postgres');
  for (const form of forms) expect(texts.filter((text) => text.includes(form))).toEqual([]);
});
