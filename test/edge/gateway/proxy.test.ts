import { request } from 'node:http';
import { withGateway } from '../../support/gateway-world';
import { until } from '../../support/until';

const world = withGateway();
const get = (host: string, path = '/', more = '') => world.raw(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`);

test('a proxied name of an active zone is led to its origin, and its answer comes back as it is', async () => {
  const origin = await world.origin((_request, response) => response.writeHead(207, 'Odd Words', ['X-Twice', 'a', 'x-twice', 'b', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Date', 'once']).end('hello'));
  await world.zone('one.test', [{ name: 'www', value: '127.0.0.1', port: origin.port }]);
  const answer = await get('www.one.test', '/a/../b?q=%zz&r', 'X-Mine: 1\r\nX-Forwarded-For: 8.8.8.8\r\n');
  expect(answer.head).toMatch(/^HTTP\/1\.1 207 Odd Words\r\nX-Twice: a\r\nx-twice: b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nDate: once\r\n/);
  expect(answer.body).toContain('hello');
  expect(answer.head).toMatch(/X-Request-Id: req_[0-7][0-9a-z]{25}/);
  const [seen] = origin.seen;
  expect(seen?.url).toBe('/a/../b?q=%zz&r');
  expect(seen?.headers).toMatchObject({ 'host': 'www.one.test', 'x-mine': '1', 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http', 'x-real-ip': '127.0.0.1', 'via': '1.1 holdfast', 'cdn-loop': 'test.holdfast' });
});

test('a policy is in force when it is written, and the mode decides what becomes of what it finds', async () => {
  const origin = await world.origin((_request, response) => response.end('through'));
  const zoneId = await world.zone('two.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'monitor' } });
  expect((await get('two.test', '/', 'X-Block: 1\r\n')).status).toBe(200);
  await world.writePolicy(zoneId, { mode: 'block' });
  await until(async () => (await get('two.test', '/', 'X-Block: 1\r\n')).status === 403, 'the policy');
  const refused = await get('two.test', '/', 'X-Block: 1\r\nAccept: application/json\r\n');
  const eventId = /X-Gateway-Event: (gwe_\w+)/.exec(refused.head)?.[1];
  expect(JSON.parse(refused.body)).toMatchObject({ ok: false, code: 'request_blocked', eventId });
  expect(refused.text).not.toContain('custom');
  await until(async () => (await world.test.database.pool.query('select policy_version from gateway_ack where zone_id = $1', [zoneId])).rows[0]?.policy_version === 2, 'the acknowledgement');
  await until(() => world.records.some((record) => record.eventId === eventId), 'the record');
  expect(world.records.find((record) => record.eventId === eventId)?.request).toMatchObject({ status: 403, originStatus: null, policyVersion: 2, mode: 'block', decision: { outcome: 'block' } });
});

test('bodies go through, long ones in chunks too', async () => {
  const origin = await world.origin((incoming, response) => {
    response.setHeader('Trailer', 'X-Sum');
    let bytes = 0;
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    }).on('end', () => {
      response.write('got ');
      response.addTrailers({ 'X-Sum': String(bytes) });
      response.end(`${bytes} ${incoming.headers['transfer-encoding'] ?? incoming.headers['content-length']} ${JSON.stringify(incoming.trailers)}`);
    });
  });
  await world.zone('three.test', [{ name: '@', value: '127.0.0.1', port: origin.port }]);
  const body = Buffer.alloc(3_000_000, 'x');
  const answer = await new Promise<{ text: string; trailers: object }>((done, fail) => {
    const sent = request({ port: world.httpPort, host: '127.0.0.1', method: 'POST', path: '/', headers: { 'host': 'three.test', 'trailer': 'X-End', 'transfer-encoding': 'chunked' } }, (response) => {
      let text = '';
      response.setEncoding('latin1').on('data', (chunk: string) => (text += chunk)).on('end', () => done({ text, trailers: response.trailers }));
    }).on('error', fail);
    sent.write(body);
    sent.addTrailers({ 'X-End': 'yes' });
    sent.end();
  });
  expect(answer).toEqual({ text: 'got 3000000 chunked {"x-end":"yes"}', trailers: { 'x-sum': '3000000' } });
});

test('of a trusted proxy the right-most address that is not one is the client, and its scheme counts', async () => {
  const origin = await world.origin((_request, response) => response.end('ok'));
  await world.zone('trust.test', [{ name: '@', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'off', transport: { httpsRedirect: true } } });
  const told = 'X-Forwarded-For: 203.0.113.9, 198.51.100.7:4711, 127.0.0.5\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 8.8.8.8\r\nForwarded: for=8.8.8.8\r\nX-Request-Id: mine\r\n';
  expect((await get('trust.test', '/', told)).status).toBe(301);
  await world.restart({ trustedProxies: ['127.0.0.0/8'] });
  expect((await get('trust.test', '/', told.replace(':4711', ''))).status).toBe(200);
  expect(origin.seen.at(-1)?.headers).toMatchObject({
    'x-forwarded-for': '198.51.100.7', 'x-real-ip': '198.51.100.7', 'x-forwarded-proto': 'https', 'forwarded': 'for=198.51.100.7;host="trust.test";proto=https', 'x-request-id': expect.stringMatching(/^req_/),
  });
  await get('trust.test', '/', 'X-Forwarded-For: 198.51.100.7, junk, 127.0.0.5\r\nX-Forwarded-Proto: https\r\n');
  expect(origin.seen.at(-1)?.headers['x-forwarded-for']).toBe('127.0.0.5');
  await world.restart();
});

test('an answer of ours is JSON for who prefers it, else a page that is the same for everybody', async () => {
  const typeOf = async (accept: string) => /Content-Type: (\S+?);/.exec((await get('nobody.test', '/', `Accept: ${accept}\r\n`)).head)?.[1];
  expect([await typeOf('*/*'), await typeOf('text/html, application/json'), await typeOf('text/html;q=0.5, application/json')]).toEqual(['text/html', 'text/html', 'application/json']);
  expect([await typeOf('application/json'), await typeOf('application/problem+json;q=0.2'), await typeOf('application/json, text/html')]).toEqual(['application/json', 'application/json', 'application/json']);
  expect((await get('nobody.test')).body).toBe((await get('else.test')).body);
});

test('an unknown host is told nothing', async () => {
  const answer = await get('nobody.test');
  expect(answer.status).toBe(404);
  expect(answer.head).not.toContain('X-Gateway-Event');
});
