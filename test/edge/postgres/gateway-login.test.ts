import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { createAuthority, issueLeaf } from '../../../src/core/certificates';
import type pg from 'pg';
import type { EmbeddedBackend } from '../../../src/adapters/postgres-backend/embedded';
import { writeStartup } from '../../../src/edge/postgres/gateway/wire';
import { systemCode } from '../../../src/core/files';
import type { PostgresHost } from '../../../src/edge/postgres/host/host';
import { newPassword } from '../../../src/postgres/rules';
import { authority, customer, customerBy, domain, makeService, refusalOf, startGateway, TestRoutes } from '../../support/postgres-gateway';
import { HostSite, newService, until, type TestService } from '../../support/postgres-host';

let site: HostSite;
let host: PostgresHost;
let backend: EmbeddedBackend;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let service: TestService;
let other: TestService;
const routes = new TestRoutes();
jest.setTimeout(60_000);

beforeAll(async () => {
  site = await HostSite.make();
  host = await site.start();
  backend = site.backend();
  gateway = await startGateway({ site, routes });
  service = await makeService(backend, routes);
  other = await makeService(backend, routes);
});
afterAll(async () => {
  await gateway.drain(0);
  backend.close();
  await host.stop();
  await site.remove();
});

const hostOf = ({ ref }: TestService) => `${ref.names.label}.${domain}`;

async function query(client: pg.Client, sql: string): Promise<unknown[]> {
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

test('a driver that checks the certificate logs in with SCRAM and works', async () => {
  await query(customer(gateway.port, service), 'create table kept (n int); insert into kept values (1)');
  expect(await query(customer(gateway.port, service), 'select n, current_user::text as owner, session_user::text as login from kept'))
    .toEqual([{ n: 1, owner: service.ref.names.owner, login: service.login.name }]);
});

test('a certificate of another authority, or another name, is seen through', async () => {
  expect(await refusalOf(customer(gateway.port, service, { ssl: { rejectUnauthorized: true } }))).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  expect(await refusalOf(customerBy('elsewhere.test', gateway.port, service))).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
});

test('a wrong password is refused by the server itself', async () => {
  expect(await refusalOf(customer(gateway.port, service, { password: newPassword() }))).toBe('28P01');
});

test('without TLS nobody is let in', async () => {
  expect(await refusalOf(customer(gateway.port, service, { ssl: false }))).toBe('28000');
});

test('without TLS a gateway for this machine alone lets in', async () => {
  const plain = await startGateway({ site, routes, tlsRequired: false });
  expect(await refusalOf(customer(plain.port, service, { ssl: false }))).toBeNull();
  await plain.drain(0);
});

test('nobody reaches a service we do not know, nor the platform’s own role', async () => {
  expect(await refusalOf(customer(gateway.port, newService()))).toBe('28000');
  expect(await refusalOf(customer(gateway.port, service, { user: 'postgres' }))).toBe('28000');
  expect(await refusalOf(customer(gateway.port, service, { user: '' }))).toBe('28000');
  expect(await refusalOf(customer(gateway.port, service, { user: 'holdfast_admin' }))).toBe('28000');
  expect(await refusalOf(customer(gateway.port, service, { user: 'holdfast_admin', options: `-c holdfast.service=${service.ref.serviceId}` }))).toBe('28000');
  expect(await refusalOf(customerBy(hostOf(service), gateway.port, service, { user: 'holdfast_admin' }))).toBe('28000');
});

test('a role the customer made comes in by host name or by option', async () => {
  const password = newPassword();
  await query(customer(gateway.port, service), `create role reader login password '${password}'; grant connect on database app to reader`);
  const reader = { user: 'reader', password };
  expect(await refusalOf(customer(gateway.port, service, reader))).toBe('28000');
  expect(await refusalOf(customer(gateway.port, service, { ...reader, options: `-c holdfast.service=${service.ref.serviceId}` }))).toBeNull();
  expect(await refusalOf(customerBy(hostOf(service), gateway.port, service, reader))).toBeNull();
  expect(await refusalOf(customer(gateway.port, service, { ...reader, options: `-c holdfast.service=${other.ref.serviceId}` }))).toBe('28P01');
});

test('the host name decides before the login does, so a login of one service never reaches another', async () => {
  expect(await refusalOf(customerBy(hostOf(other), gateway.port, service))).toBe('28P01');
  const rows = await query(customerBy(hostOf(other), gateway.port, other), 'select current_user::text as owner');
  expect(rows).toEqual([{ owner: other.ref.names.owner }]);
});

test('psql finds a service by its host name alone, the certificate verified in full', async () => {
  const password = newPassword();
  await query(customer(gateway.port, service), `create role analyst login password '${password}'; grant connect on database app to analyst`);
  const address = `host=${hostOf(service)} hostaddr=127.0.0.1 port=${gateway.port} user=analyst dbname=app sslmode=verify-full sslrootcert=${join(site.dataDir, 'tls/ca.pem')}`;
  const answer = await promisify(execFile)('psql', ['-XAtc', 'select current_user', address], { env: { PATH: process.env['PATH'], PGPASSWORD: password } })
    .catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return { stdout: 'analyst\n' }; // the drivers' tests above prove the same where psql is not installed
      throw error;
    });
  expect(answer.stdout).toBe('analyst\n');
});

test('sixty sessions of two services at once each end where they belong', async () => {
  const logins = Array.from({ length: 60 }, (_, index) => (index % 2 ? service : other));
  const owners = await Promise.all(logins.map(async (login) => query(customer(gateway.port, login), 'select current_user::text as owner')));
  expect(owners).toEqual(logins.map((login) => [{ owner: login.ref.names.owner }]));
});

test('TLS from the first byte works with ALPN postgresql, and not without', async () => {
  const direct = connectTls({ host: '127.0.0.1', port: gateway.port, ca: authority.certificate, servername: 'localhost', ALPNProtocols: ['postgresql'] });
  await once(direct, 'secureConnect');
  direct.write(writeStartup({ protocol: 196_608, parameters: new Map([['user', service.login.name], ['database', 'app']]) }));
  const [answer] = await once(direct, 'data');
  expect(answer.toString('latin1', 0, 1)).toBe('R');
  direct.destroy();
  const silent = connectTls({ host: '127.0.0.1', port: gateway.port, ca: authority.certificate, servername: 'localhost' });
  silent.on('error', () => undefined);
  await once(silent, 'close');
});

test('GSS encryption is declined and TLS is offered after it', async () => {
  const socket = connectTcp(gateway.port, '127.0.0.1');
  socket.write(Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30]));
  expect((await once(socket, 'data'))[0].toString()).toBe('N');
  socket.write(Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]));
  expect((await once(socket, 'data'))[0].toString()).toBe('S');
  socket.destroy();
});

test('a running statement is cancelled by its own session’s secret and by no other', async () => {
  const client = customer(gateway.port, service);
  await client.connect();
  const { rows: [{ pid }] } = await client.query('select pg_backend_pid() as pid');
  const statement = client.query('select pg_sleep(60)').then(() => 'ended', (error: unknown) => systemCode(error));
  const watcher = customer(gateway.port, service);
  await watcher.connect();
  const sleeping = async () => (await watcher.query(`select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'`, [pid])).rows.length === 1;
  await until(sleeping, 'the statement');
  await sendCancel(pid, Buffer.from('wrong!!!'.slice(0, 4)));
  expect(await sleeping()).toBe(true);
  const secret = 'secretKey' in client ? Number(client.secretKey) : 0;
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(secret);
  await sendCancel(pid, bytes);
  expect(await statement).toBe('57014');
  await Promise.all([client.end(), watcher.end()]);
});

test('a cancel request finds its server over TLS as well', async () => {
  const client = customer(gateway.port, service);
  await client.connect();
  const { rows: [{ pid }] } = await client.query('select pg_backend_pid() as pid');
  const statement = client.query('select pg_sleep(60)').then(() => 'ended', (error: unknown) => systemCode(error));
  const watcher = customer(gateway.port, service);
  await watcher.connect();
  await until(async () => (await watcher.query(`select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'`, [pid])).rows.length === 1, 'the statement');
  const bytes = Buffer.alloc(16);
  bytes.writeInt32BE(16, 0);
  bytes.writeInt32BE(80_877_102, 4);
  bytes.writeInt32BE(pid, 8);
  bytes.writeInt32BE('secretKey' in client ? Number(client.secretKey) : 0, 12);
  const direct = connectTls({ host: '127.0.0.1', port: gateway.port, ca: authority.certificate, servername: 'localhost', ALPNProtocols: ['postgresql'] });
  direct.resume().write(bytes);
  await once(direct, 'close');
  expect(await statement).toBe('57014');
  await Promise.all([client.end(), watcher.end()]);
});

test('an operator’s certificate is replaced while a session goes on', async () => {
  const [certificate, key] = [join(site.home, 'operator.pem'), join(site.home, 'operator.key')];
  const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] };
  const [first, second] = [createAuthority('First'), createAuthority('Second')];
  const show = async (issuer: typeof first) => {
    const leaf = issueLeaf(issuer, names);
    await writeFile(key, leaf.key);
    await writeFile(certificate, leaf.certificate);
  };
  await show(first);
  const own = await startGateway({ site, routes, files: { certificate, key } });
  const session = customer(own.port, service, { ssl: { ca: first.certificate } });
  await session.connect();
  await writeFile(certificate, 'half a certificate');
  await show(second);
  await until(async () => (await refusalOf(customer(own.port, service, { ssl: { ca: second.certificate } }))) === null, 'the new certificate');
  expect((await session.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  await session.end();
  await own.drain(0);
});

async function sendCancel(pid: number, secret: Buffer): Promise<void> {
  const packet = Buffer.alloc(12);
  packet.writeInt32BE(12 + secret.length, 0);
  packet.writeInt32BE(80_877_102, 4);
  packet.writeInt32BE(pid, 8);
  const socket = connectTcp(gateway.port, '127.0.0.1');
  socket.write(Buffer.concat([packet, secret]));
  socket.resume();
  await once(socket, 'close');
}

test('a megabyte each way arrives whole', async () => {
  const client = customer(gateway.port, service);
  await client.connect();
  const text = 'x'.repeat(1_000_000);
  const { rows } = await client.query('select length($1::text) as sent, repeat($1::text, 8) as back', [text]);
  expect(rows[0].sent).toBe(1_000_000);
  expect(rows[0].back).toHaveLength(8_000_000);
  await client.end();
});
