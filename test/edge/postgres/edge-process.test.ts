import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { withDatabase } from '../../support/database';
import { customer, refusalOf } from '../../support/postgres-gateway';
import { HostSite, newService, type TestService } from '../../support/postgres-host';
import { createTenant } from '../../support/tenant';

const stored = withDatabase();
const masterKey = randomBytes(32).toString('base64');
const announcement = z.object({ ready: z.literal(true), postgres: z.array(z.string()) });
let site: HostSite;
let edge: ChildProcess | undefined;

beforeAll(async () => { site = await HostSite.make(); });
afterAll(async () => {
  edge?.kill('SIGKILL');
  await site.remove();
});

/** The real process with both roles; answers the gateway's port. */
async function startEdge(): Promise<number> {
  edge = fork(resolve('src/edge.ts'), [], {
    execArgv: ['-r', resolve('test/support/typescript.cjs')], stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env['PATH'], EDGE_SERVES: 'postgres-host,postgres', LOG_LEVEL: 'warn', DATABASE_URL: stored.url, TEMPORAL_ADDRESS: '127.0.0.1:1',
      HOLDFAST_MASTER_KEY: masterKey, AUTH_SECRET: 'an auth secret of more than 32 characters', HOLDFAST_DATA_DIR: site.home, PG_DATA_DIR: site.dataDir, PG_RUN_DIR: site.runDir,
      PG_PORT_BASE: String(site.config.PG_PORT_BASE), PG_UID_BASE: String(site.config.PG_UID_BASE), PG_POOL_PREPARED: '0', PG_POOL_RUNNING: 'trial:0', PG_RESERVE_BYTES: '0',
      PG_HOST_NAME: 'edge-test', PG_GATEWAY_ADDR: '127.0.0.1:0', METRICS_ADDR: '127.0.0.1:0',
    },
  });
  const [message] = await once(edge, 'message');
  return Number(announcement.parse(message).postgres[0]?.split(':').at(-1));
}

async function stopEdge(): Promise<number | null> {
  if (!edge) throw new Error('there is no edge process');
  edge.kill('SIGTERM');
  const [code] = await once(edge, 'exit');
  return code;
}

/** A service as the control plane would have made it. */
async function openService(): Promise<TestService> {
  const service = newService('starter');
  const backend = site.backend();
  await backend.ensureInstance({ ...service.ref, version: '18' });
  await backend.ensureAccess({ ...service.ref, logins: [service.login], endSessionsOf: [] });
  backend.close();
  const { orgId, projectId } = await createTenant(stored.database, 'a secret that signs cookies nobody sends');
  await stored.database.pool.query(`insert into postgres_service (id, org_id, project_id, key, display_name, plan, status, region, version, isolation, database, access_open, available_at)
    values ($1, $2, $3, $4, 'orders', 'starter', 'available', 'local', '18', 'instance', 'app', true, now())`, [service.ref.serviceId, orgId, projectId, service.ref.names.key]);
  return service;
}

test('one edge process carries a customer from TLS to the row, closes on command of the database, and ends in order', async () => {
  const port = await startEdge();
  const { rows } = await stored.database.pool.query(`select name, backend, state, capacity_bytes > 0 as room from postgres_host where name = 'edge-test'`);
  expect(rows).toEqual([{ name: 'edge-test', backend: 'embedded', state: 'active', room: true }]);

  const service = await openService();
  const ca = await readFile(join(site.dataDir, 'tls/ca.pem'), 'utf8');
  const client = customer(port, service, { ssl: { ca } });
  await client.connect();
  await client.query('create table kept (n int); insert into kept values (1)');
  const { rows: [secret] } = await stored.database.pool.query(`select sealed, certificate from installation_secret where name = 'certificate-authority'`);
  expect(secret.certificate).toBe(ca);
  expect(secret.sealed).not.toContain('PRIVATE KEY');

  const cut = new Promise((resolve) => client.on('error', resolve));
  await stored.database.pool.query('update postgres_service set access_open = false where id = $1', [service.ref.serviceId]);
  await cut;
  expect(await refusalOf(customer(port, service, { ssl: { ca } }))).toBe('57P03');
  await stored.database.pool.query('update postgres_service set access_open = true where id = $1', [service.ref.serviceId]);
  expect(await refusalOf(customer(port, service, { ssl: { ca } }))).toBeNull();

  expect(await stopEdge()).toBe(0);
  expect(await readdir(site.runDir)).toEqual([]);

  const again = await startEdge();
  const kept = customer(again, service, { ssl: { ca } });
  await kept.connect();
  expect((await kept.query('select n from kept')).rows).toEqual([{ n: 1 }]);
  await kept.end();
  expect(await stopEdge()).toBe(0);
}, 60_000);
