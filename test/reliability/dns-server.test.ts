import type { ChildProcess } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rrsetsOf, transferZone } from '../../src/adapters/dns-backend/axfr-client';
import { changeSetOf } from '../../src/dns/rules/change-set';
import { platformOf } from '../../src/dns/rules/platform';
import { platformTransferKeys } from '../../src/dns/rules/transfer-key';
import { readZone } from '../../src/dns/store/feed';
import { withApi } from '../support/api';
import { ask, lines, type At } from '../support/dns-client';
import { startDnsLoad } from '../support/dns-load';
import { freeDnsPort, killProcess, startDnsProcess } from '../support/dns-process';
import { openGate, type Gate } from '../support/gate';
import { rounds } from '../support/rounds';
import { createTenant, type Tenant } from '../support/tenant';
import { until } from '../support/until';

const host = '127.0.0.71';
let gate: Gate;
let home = '';
let at: At;
let edge: ChildProcess | undefined;

/** Everybody reaches the database through the gate. */
const api = withApi(async (databaseUrl) => {
  gate = await openGate(databaseUrl);
  return { DATABASE_URL: gate.url };
});
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'holdfast-test-dns-'));
  at = { host, port: await freeDnsPort(host) };
});
afterEach(async () => {
  if (edge?.exitCode === null && edge.signalCode === null) await killProcess(edge);
});
afterAll(async () => {
  await gate.shut();
  await rm(home, { recursive: true, force: true });
});

const start = async (env: Record<string, string> = {}): Promise<void> => {
  edge = await startDnsProcess({ DATABASE_URL: gate.url, DNS_LISTEN: `${at.host}:${at.port}`, DNS_RRL_PER_SECOND: '0', ...env });
};
const request = (tenant: Tenant, method: string, path: string, json: unknown) => api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/dns${path}`, { headers: { cookie: tenant.cookies.owner }, json });
const newZone = async (domain: string) => {
  const tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  const { body } = await request(tenant, 'POST', '/zones', { domain, mode: 'full_hosting' });
  const { id } = body.zone;
  return {
    id, domain,
    write: (name: string, value: string) => request(tenant, 'POST', `/zones/${id}/records`, { type: 'A', name, value }),
    change: (recordId: string, value: string) => request(tenant, 'PATCH', `/zones/${id}/records/${recordId}`, { value }),
  };
};
const addressesOf = async (name: string): Promise<string[]> => lines((await ask(at, name, 'A')).answers).map((line) => line.split(' ')[3] ?? '');
const answers = (name: string, address: string) => async (): Promise<boolean> => (await addressesOf(name)).includes(address);

/** What the server has equals what the database says it should. */
async function isPublished(zoneId: string, domain: string): Promise<boolean> {
  const { db, config } = api.deps;
  const reading = await readZone(db, zoneId, null);
  if (reading.kind === 'gone') return false;
  const [key] = platformTransferKeys(config.HOLDFAST_MASTER_KEY);
  const transfer = await transferZone({ server: { address: at.host, port: at.port }, domain, ...(key && { key }) });
  const wanted = changeSetOf(reading, platformOf(config)).replace;
  return transfer.outcome === 'zone' && JSON.stringify(rrsetsOf(transfer.records)) === JSON.stringify(wanted);
}

test('answers outlive the database, for any process that answers and for one that starts without it', async () => {
  const zone = await newZone('outlives.test');
  await zone.write('www', '192.0.2.1');
  const env = { DNS_WORKERS: '2', DNS_SNAPSHOT_FILE: join(home, 'snapshot') };
  await start(env);
  await until(answers('www.outlives.test', '192.0.2.1'));
  const load = startDnsLoad(at, { name: 'www.outlives.test', type: 'A' }, { perSecond: 300, isRight: (answer) => answer.readUInt16BE(6) === 1 });
  await gate.shut();
  expect((await zone.write('later', '192.0.2.2')).status).toBe(500);
  await new Promise((done) => setTimeout(done, rounds(3_000, 60_000)));
  const report = await load.stop();
  expect(report).toEqual({ asked: report.asked, answered: report.asked, wrong: 0 });
  expect(report.asked).toBeGreaterThan(rounds(500, 10_000));

  await killProcess(edge ?? fail());
  await start(env);
  expect(await addressesOf('www.outlives.test')).toEqual(['192.0.2.1']);
  await gate.open();
  await until(async () => (await zone.write('later', '192.0.2.2').catch(() => ({ status: 0 }))).status === 200);
  await until(answers('later.outlives.test', '192.0.2.2'));
  expect(await isPublished(zone.id, zone.domain)).toBe(true);
}, rounds(60_000, 150_000));

test('without the database and without a snapshot of its own a server does not bind', async () => {
  const zone = await newZone('unbound.test');
  await gate.shut();
  const snapshot = join(home, 'broken');
  await writeFile(snapshot, 'holdfast dns snapshot 1\n{"zoneId":');
  const starting = start({ DNS_SNAPSHOT_FILE: snapshot });
  const early = await Promise.race([starting.then(() => 'bound'), new Promise((done) => setTimeout(done, 1_500, 'waits'))]);
  expect(early).toBe('waits');
  await gate.open();
  await starting;
  await until(() => isPublished(zone.id, zone.domain));
}, 60_000);

test('what was committed is published, whichever process is killed', async () => {
  const zone = await newZone('killed.test');
  /** A zone holds 200 records on no plan: these take turns, whatever the number of rounds. */
  const names = await Promise.all(Array.from({ length: 10 }, async (_, i) => ({ name: `r${i}`, id: (await zone.write(`r${i}`, '192.0.2.0')).body.record.id })));
  const acknowledged = new Map<string, string>();
  let count = 0;
  let writing = true;
  await start({ DNS_WORKERS: '2' });
  const writer = (async () => {
    for (let i = 1; writing; i++) {
      const { name = '', id = '' } = names[i % names.length] ?? {};
      const value = `192.0.${2 + Math.floor(i / 250)}.${i % 250}`;
      const { status } = await zone.change(id, value).catch(() => ({ status: 0 }));
      if (status !== 200) continue;
      acknowledged.set(name, value);
      count += 1;
    }
  })();
  for (let round = 0; round < rounds(2, 20); round++) {
    const before = count;
    await until(() => count > before + 5);
    await killProcess(edge ?? fail());
    await start({ DNS_WORKERS: '2' });
  }
  writing = false;
  await writer;
  await until(() => isPublished(zone.id, zone.domain));
  for (const [name, value] of acknowledged) expect(await addressesOf(`${name}.killed.test`)).toEqual([value]);
}, rounds(90_000, 600_000));

test('a worker that is killed is replaced by one that has every zone', async () => {
  const zone = await newZone('worker.test');
  await zone.write('www', '192.0.2.1');
  await start({ DNS_WORKERS: '2' });
  await until(answers('www.worker.test', '192.0.2.1'));
  const [first = 0, second = 0] = await childrenOf(edge?.pid ?? 0);
  process.kill(first, 'SIGKILL');
  await zone.write('next', '192.0.2.2');
  await until(answers('next.worker.test', '192.0.2.2'));
  await until(async () => (await childrenOf(edge?.pid ?? 0)).length === 2);
  process.kill(second, 'SIGKILL');
  await until(() => isPublished(zone.id, zone.domain));
  expect(await addressesOf('next.worker.test')).toEqual(['192.0.2.2']);
}, 60_000);

test('notifications that are lost with their connection cost a poll, not an answer', async () => {
  const zone = await newZone('deaf.test');
  await start();
  await until(() => isPublished(zone.id, zone.domain));
  for (let round = 0; round < rounds(3, 50); round++) {
    const write = zone.write(`r${round}`, '192.0.2.9');
    gate.cut();
    await until(async () => (await write.catch(() => ({ status: 0 }))).status === 200 || (await zone.write(`r${round}`, '192.0.2.9').catch(() => ({ status: 0 }))).status !== 500);
    await until(answers(`r${round}.deaf.test`, '192.0.2.9'));
  }
}, rounds(60_000, 300_000));

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.trim().split(/\s+/).filter(Boolean).map(Number);
}

function fail(): never {
  throw new Error('it was started');
}
