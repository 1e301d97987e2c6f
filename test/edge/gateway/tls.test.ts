import { X509Certificate } from 'node:crypto';
import { connect as connectHttp2 } from 'node:http2';
import { createServer as createSecure } from 'node:https';
import { connect as connectTls, createSecureContext, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { createAuthority, issueLeaf } from '../../../src/core/certificates';
import { OriginAgent } from '../../../src/edge/gateway/origin-agent';
import { newId } from '../../../src/core/ids';
import { sendRaw, withGateway, type Origin } from '../../support/gateway-world';
import { until } from '../../support/until';

const world = withGateway();
const authority = createAuthority('test authority');
const zones = new Map<string, string>();
let origin: Origin;

beforeAll(async () => {
  origin = await world.origin((_request, response) => response.end('hello'));
  for (const domain of ['first.test', 'second.test']) zones.set(domain, await world.zone(domain, [{ name: '@', value: '127.0.0.1', port: origin.port }, { name: 'www', value: '127.0.0.1', port: origin.port }]));
});

async function certify(domain: string, hostnames: string[], days = 90): Promise<string> {
  const id = newId('crt');
  const leaf = issueLeaf(authority, { dnsNames: hostnames, ipAddresses: [] }, new Date(), days);
  await world.test.database.pool.query(`insert into gateway_certificate (id, zone_id, org_id, project_id, primary_hostname, hostnames, status, issuer, chain, key_sealed, not_after)
    values ($1, $2, 'org_x', 'prj_x', $3, $4, 'valid', 'self_signed', $5, $6, now() + interval '90 days')`, [id, zones.get(domain), hostnames[0], hostnames, leaf.certificate, world.secrets.seal(leaf.key, `certificate:${id}`)]);
  return new X509Certificate(leaf.certificate).serialNumber;
}

function open(servername: string, more: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((done, fail) => {
    const socket = connectTls({ port: world.httpsPort, host: '127.0.0.1', servername, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'], ...more }, () => done(socket));
    socket.on('error', fail);
  });
}

async function shown(servername: string): Promise<X509Certificate | undefined> {
  const socket = await open(servername);
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return certificate;
}

async function get(host: string, servername: string, path = '/', more: ConnectionOptions = {}) {
  return sendRaw(await open(servername, more), `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
}

test('who gives no name, or one without a certificate, is shown a certificate that names nobody', async () => {
  for (const name of ['', 'nobody.test', 'www.second.test']) {
    const certificate = await shown(name);
    expect(certificate?.subjectAltName).toBeUndefined();
    expect(certificate?.issuer).toBe(certificate?.subject);
  }
});

test('a certificate is shown for its names as soon as it is stored, and the one that replaces it after it', async () => {
  const serial = await certify('first.test', ['first.test', '*.first.test']);
  await until(async () => (await shown('www.first.test'))?.serialNumber === serial, 'the certificate');
  expect((await shown('first.test'))?.serialNumber).toBe(serial);
  expect((await shown('a.b.first.test'))?.subjectAltName).toBeUndefined();
  expect((await shown('www.second.test'))?.subjectAltName).toBeUndefined();
  const next = issueLeaf(authority, { dnsNames: ['first.test'], ipAddresses: [] });
  const { rows } = await world.test.database.pool.query('select id from gateway_certificate where zone_id = $1', [zones.get('first.test')]);
  await world.test.database.pool.query('update gateway_certificate set chain = $2, key_sealed = $3, updated_at = now() where id = $1', [rows[0].id, next.certificate, world.secrets.seal(next.key, `certificate:${rows[0].id}`)]);
  await until(async () => (await shown('first.test'))?.serialNumber === new X509Certificate(next.certificate).serialNumber, 'its successor');
});

test('a connection made for one zone serves no other: 421', async () => {
  expect((await get('www.first.test', 'first.test')).status).toBe(200);
  expect((await get('second.test', 'first.test')).status).toBe(421);
  const session = connectHttp2(`https://127.0.0.1:${world.httpsPort}`, { servername: 'first.test', rejectUnauthorized: false });
  const status = (authorityOf: string) => new Promise((done) => session.request({ ':authority': authorityOf, ':path': '/' }).on('response', (head) => done(head[':status'])).resume());
  expect([await status('www.first.test'), await status('second.test')]).toEqual([200, 421]);
  session.destroy();
});

test('the origin is told that the visitor came by TLS', async () => {
  await get('www.first.test', 'www.first.test');
  expect(origin.seen.at(-1)?.headers).toMatchObject({ 'x-forwarded-proto': 'https', 'forwarded': 'for=127.0.0.1;host="www.first.test";proto=https' });
});

test('transport: redirects in the clear, HSTS over TLS, and an older TLS is refused', async () => {
  await world.writePolicy(zones.get('second.test') ?? '', { mode: 'off', transport: { httpsRedirect: true, minTlsVersion: '1.3', hsts: { enabled: true, maxAgeSeconds: 60, includeSubDomains: true } } });
  const plain = (method: string) => world.raw(`${method} /a?b=1 HTTP/1.1\r\nHost: second.test:80\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
  await until(async () => (await plain('GET')).status === 301, 'the redirect');
  expect((await plain('GET')).head).toContain('Location: https://second.test/a?b=1');
  expect((await plain('POST')).status).toBe(308);
  const secure = await get('second.test', 'second.test');
  expect([secure.status, secure.head]).toEqual([200, expect.stringContaining('Strict-Transport-Security: max-age=60; includeSubDomains')]);
  const older = await get('second.test', 'second.test', '/', { maxVersion: 'TLSv1.2' });
  expect([older.status, older.head]).toEqual([403, expect.stringContaining('X-Gateway-Event')]);
  await expect(open('second.test', { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).rejects.toThrow();
});

test('an ACME token we placed is answered before any redirect, another is the origin\'s', async () => {
  await world.test.database.pool.query(`insert into gateway_acme_token (token, hostname, key_authorization) values ('token-token-token-1', 'second.test', 'token-token-token-1.thumb')`);
  const ask = (token: string) => world.raw(`GET /.well-known/acme-challenge/${token} HTTP/1.1\r\nHost: second.test\r\nConnection: close\r\n\r\n`);
  expect((await ask('token-token-token-1')).body).toBe('token-token-token-1.thumb');
  expect((await ask('token-token-token-2')).status).toBe(301);
});

test('an origin with TLS is verified by the name it is asked for, which is the record\'s host header or the visitor\'s', async () => {
  await world.restart({ agent: new OriginAgent(createSecureContext({ ca: authority.certificate })) });
  const names: (string | false)[] = [];
  const listener = (by: typeof authority) => {
    const leaf = issueLeaf(by, { dnsNames: ['secure.test', 'real.example'], ipAddresses: [] });
    const server = createSecure({ cert: leaf.certificate, key: leaf.key });
    server.on('secureConnection', (socket) => names.push('servername' in socket && (typeof socket.servername === 'string' || socket.servername === false) ? socket.servername : ''));
    return world.origin((_request, response) => response.end('secure'), server);
  };
  const [trusted, stranger] = [await listener(authority), await listener(createAuthority('another authority'))];
  await world.zone('secure.test', [
    { name: '@', value: '127.0.0.1', port: trusted.port, protocol: 'https' }, { name: 'real', value: '127.0.0.1', port: trusted.port, protocol: 'https', hostHeader: 'real.example' },
    { name: 'wrong', value: '127.0.0.1', port: trusted.port, protocol: 'https' }, { name: 'stranger', value: '127.0.0.1', port: stranger.port, protocol: 'https', hostHeader: 'real.example' },
  ]);
  const status = (host: string) => world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`).then((answer) => answer.status);
  names.splice(0);
  expect([await status('secure.test'), await status('real.secure.test')]).toEqual([200, 200]);
  expect(trusted.seen.map(({ headers }) => headers.host)).toEqual(['secure.test', 'real.example']);
  expect(names.filter((name) => name !== 'secure.test')).toEqual(['real.example']);
  expect([await status('wrong.secure.test'), await status('stranger.secure.test')]).toEqual([502, 502]);
  expect([trusted.seen.length, stranger.seen.length]).toEqual([2, 0]);
});
