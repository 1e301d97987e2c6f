import { createHash } from 'node:crypto';
import { createServer, request as requestHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { sendRaw, withGateway, type Origin } from '../../support/gateway-world';
import { until } from '../../support/until';

const world = withGateway({ bodyBytesMax: 30_000_000 });
const host = 'www.clear.test';
const large = Buffer.alloc(20_000_000, 'abcdefgh');
let origin: Origin;
let emit: ServerResponse | undefined;
const tell = (text: string) => emit?.write(`data: ${text}\n\n`);

function answer(request: IncomingMessage, response: ServerResponse): void {
  response.sendDate = false;
  switch (request.url) {
    case '/plain': return void response.writeHead(200, { 'Content-Length': 5, 'ETag': '"x"' }).end('hello');
    case '/range': return void response.writeHead(206, 'Partial Content', { 'Content-Range': 'bytes 0-1/5', 'Content-Length': 2 }).end('he');
    case '/304': return void response.writeHead(304, { ETag: '"x"' }).end();
    case '/204': return void response.writeHead(204).end();
    case '/chunks': response.write('one'); return void setTimeout(() => response.end('two'), 20);
    case '/trailers': response.writeHead(200, { Trailer: 'X-T' }); response.write('body'); response.addTrailers({ 'X-T': 'yes' }); return void response.end();
    case '/hints': response.writeEarlyHints({ link: '</a.css>; rel=preload' }); return void response.writeHead(200, { 'Content-Length': 2 }).end('ok');
    case '/error': return void response.writeHead(500, 'Oh No', ['Content-Length', '3', 'WWW-Authenticate', 'Basic', 'WWW-Authenticate', 'Digest']).end('bad');
    case '/latin': return void response.writeHead(200, ['X-Name', 'caf\xe9', 'Content-Length', '0']).end();
    case '/large': return void response.writeHead(200, { 'Content-Length': large.length }).end(large);
    case '/events': emit = response; response.writeHead(200, { 'Content-Type': 'text/event-stream' }); return response.flushHeaders();
    case '/broken': response.writeHead(200, { 'Content-Length': 100 }).write('half'); return void setTimeout(() => response.destroy(), 20);
    default: {
      const hash = createHash('sha256');
      request.on('data', (chunk: Buffer) => hash.update(chunk)).on('end', () => response.end(hash.digest('hex')));
    }
  }
}

beforeAll(async () => {
  const server = createServer();
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (request.headers['upgrade'] !== 'websocket' || request.url === '/no-socket') return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x-${request.headers['sec-websocket-key']}\r\n\r\nfirst`);
    if (head.length > 0) socket.write(head);
    socket.on('error', () => undefined).pipe(socket);
  });
  origin = await world.origin(answer, server);
  await world.zone('clear.test', [{ name: 'www', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'off' } });
});

/** As it is with and without the gateway, but for what the contract says changes. */
async function both(path: string, method = 'GET', more = ''): Promise<[string, string]> {
  const bytes = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`;
  const [direct, through] = await Promise.all([sendRaw(connect(origin.port, '127.0.0.1'), bytes), world.raw(bytes)]);
  const kept = (text: string) => text.split('\r\n').filter((line) => !/^(?:via|x-request-id|connection|keep-alive|transfer-encoding):/i.test(line)).join('\r\n');
  return [kept(direct.text), kept(through.text)];
}

test.each(['/plain', '/range', '/304', '/204', '/chunks', '/trailers', '/hints', '/error', '/latin'])('%s comes as the origin sends it, byte for byte', async (path) => {
  const [direct, through] = await both(path);
  expect(through).toBe(direct);
});

type Whole = { status: number; headers: [string, string][]; interim: number[]; body: string; trailers: [string, string][] };
/** What ends at a hop, and what we add. */
const hop = /^(?:via|x-request-id|connection|keep-alive|transfer-encoding|:status|trailer|date)$/;
const pairs = (raw: readonly string[]): [string, string][] => raw.flatMap((name, i): [string, string][] => (i % 2 === 0 && !hop.test(name.toLowerCase()) ? [[name.toLowerCase(), raw[i + 1] ?? '']] : [])).sort();

function direct(path: string, method: string): Promise<Whole> {
  return new Promise((done, fail) => {
    const interim: number[] = [];
    requestHttp({ host: '127.0.0.1', port: origin.port, path, method, headers: { host }, agent: false }, (response) => {
      let body = '';
      response.setEncoding('latin1').on('data', (text: string) => (body += text)).on('error', fail)
        .on('end', () => done({ status: response.statusCode ?? 0, headers: pairs(response.rawHeaders), interim, body, trailers: pairs(response.rawTrailers) }));
    }).on('information', ({ statusCode }) => void interim.push(statusCode)).on('error', fail).end();
  });
}

function overHttp2(session: ClientHttp2Session, path: string, method: string, upload?: Buffer): Promise<Whole> {
  return new Promise((done, fail) => {
    const whole: Whole = { status: 0, headers: [], interim: [], body: '', trailers: [] };
    const flat = (headers: object) => pairs(Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((one: unknown) => [name, String(one)])));
    const stream = session.request({ ':authority': host, ':path': path, ':method': method }, { endStream: upload === undefined });
    stream.setEncoding('latin1').on('headers', (headers) => void whole.interim.push(headers[':status'] ?? 0)).on('trailers', (headers) => (whole.trailers = flat(headers)))
      .on('response', (headers) => Object.assign(whole, { status: headers[':status'], headers: flat(headers) })).on('data', (text: string) => (whole.body += text)).on('error', fail).on('close', () => done(whole));
    if (upload) stream.end(upload);
  });
}

describe('over HTTP/2', () => {
  let session: ClientHttp2Session;
  beforeAll(() => {
    session = connectHttp2(`https://127.0.0.1:${world.httpsPort}`, { servername: host, rejectUnauthorized: false });
  });
  afterAll(() => session.destroy());

  test.each([['/plain', 'GET'], ['/plain', 'HEAD'], ['/range', 'GET'], ['/304', 'GET'], ['/204', 'GET'], ['/chunks', 'GET'], ['/trailers', 'GET'], ['/hints', 'GET'], ['/latin', 'GET'], ['/large', 'GET']])('%s (%s) is what the origin sends', async (path, method) => {
    const through = await overHttp2(session, path, method);
    const { body, ...rest } = await direct(path, method);
    expect(through).toMatchObject(rest);
    expect(through.body === body).toBe(true);
  }, 60_000);

  test('20 MB go up unchanged, and events come one by one', async () => {
    expect((await overHttp2(session, '/up-load', 'PUT', large)).body).toBe(createHash('sha256').update(large).digest('hex'));
    let seen = '';
    const stream = session.request({ ':authority': host, ':path': '/events' });
    stream.on('data', (data: Buffer) => (seen += data.toString())).on('error', () => undefined);
    await new Promise((done) => stream.once('response', done));
    for (const text of ['one', 'two']) {
      tell(text);
      await until(() => seen.includes(`data: ${text}`), text);
    }
    const gone = new Promise((done) => emit?.once('close', done));
    stream.close(8);
    await gone;
  }, 60_000);
});

test('HEAD has the head of GET and no body', async () => {
  const [direct, through] = await both('/plain', 'HEAD');
  expect(through).toBe(direct);
  expect(through).toContain('Content-Length: 5');
});

test('20 MB go down and up unchanged', async () => {
  const { body } = await world.raw(`GET /large HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(Buffer.from(body, 'latin1').equals(large)).toBe(true);
  const up = await world.raw(Buffer.concat([Buffer.from(`PUT /up-load HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${large.length}\r\nConnection: close\r\n\r\n`), large]));
  expect(up.body).toContain(createHash('sha256').update(large).digest('hex'));
}, 60_000);

test('events come one by one, while the answer goes on', async () => {
  const seen: string[] = [];
  const socket = connect(world.httpPort, '127.0.0.1');
  socket.on('data', (data) => void seen.push(data.toString())).on('error', () => undefined);
  socket.write(`GET /events HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await until(() => seen.join('').includes('text/event-stream'), 'the head');
  for (const text of ['one', 'two']) {
    tell(text);
    await until(() => seen.join('').includes(`data: ${text}`), text);
  }
  const gone = new Promise((done) => emit?.once('close', done));
  socket.destroy();
  await gone;
});

test('an answer that breaks off is seen to break off', async () => {
  const { head, body } = await world.raw(`GET /broken HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(head).toContain('Content-Length: 100');
  expect(body).toBe('half');
});

test('100 comes from the origin, and the body after it', async () => {
  const socket = connect(world.httpPort, '127.0.0.1');
  let text = '';
  socket.on('data', (data) => {
    text += data.toString();
    if (text.endsWith('100 Continue\r\n\r\n')) socket.write('hello');
  });
  socket.write(`POST /hash HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n`);
  await until(() => text.includes(createHash('sha256').update('hello').digest('hex')), 'the answer');
});

test('a WebSocket is a tunnel both ways', async () => {
  const ask = `GET /chat HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n`;
  const bytes = Buffer.concat([Buffer.from(ask), Buffer.from([0, 1, 2, 255])]);
  const answered = await world.raw(bytes, (text) => text.endsWith('first\x00\x01\x02\xff'));
  expect(answered.head).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
  expect(answered.head).toContain('Sec-WebSocket-Accept: x-k');
  await until(() => world.records.some(({ request }) => request.facts.path === '/chat' && request.status === 101), 'the record');
});

test('a WebSocket the origin does not want is answered as the origin says, and one the policy refuses never reaches it', async () => {
  const upgrade = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`;
  const refused = await world.raw(upgrade('/no-socket'));
  expect([refused.status, refused.body]).toEqual([403, 'nope']);
  const zoneId = world.records.at(-1)?.request.facts.zoneId ?? '';
  await world.writePolicy(zoneId, { mode: 'block' });
  await until(async () => (await world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nX-Block: 1\r\nConnection: close\r\n\r\n`)).status === 403, 'the policy');
  const blocked = await world.raw(upgrade('/chat', 'X-Block: 1\r\n'));
  expect(blocked.head).toContain('X-Gateway-Event');
  expect(blocked.status).toBe(403);
});

test('another upgrade is left out and the request served', async () => {
  const answered = await world.raw(`GET /plain HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n`);
  expect([answered.status, answered.body]).toEqual([200, 'hello']);
  expect(origin.seen.at(-1)?.headers).not.toHaveProperty('http2-settings');
});

test('a body larger than the gateway takes is refused, announced or not', async () => {
  const announced = await world.raw(`POST /hash HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 30000001\r\n\r\n`, (text) => text.includes('</html>'));
  expect(announced.status).toBe(413);
  const chunk = Buffer.concat([Buffer.from('f4240\r\n'), Buffer.alloc(1_000_000), Buffer.from('\r\n')]);
  const streamed = await world.raw(Buffer.concat([Buffer.from(`POST /hash HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`), ...Array<Buffer>(31).fill(chunk)]), (text) => text.includes('</html>'));
  expect(streamed.status).toBe(413);
}, 60_000);
