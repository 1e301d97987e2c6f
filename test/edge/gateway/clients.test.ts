import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { sendRaw, withGateway, type Origin } from '../../support/gateway-world';
import { until } from '../../support/until';

const world = withGateway();
const host = 'www.client.test';
const large = Buffer.alloc(65_536);
const open = new Set<ServerResponse>();
let origin: Origin;

beforeAll(async () => {
  origin = await world.origin((request, response) => {
    if (request.url === '/') return void request.resume().on('end', () => response.end('ok'));
    open.add(response);
    response.on('close', () => open.delete(response));
    if (request.url !== '/endless') return;
    const more = () => {
      while (response.write(large));
    };
    response.on('drain', more);
    more();
  });
  await world.zone('client.test', [{ name: 'www', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'off' } });
});

const plain = () => connect(world.httpPort, '127.0.0.1');
const secure = (protocol: string) => connectTls({ port: world.httpsPort, host: '127.0.0.1', servername: host, rejectUnauthorized: false, ALPNProtocols: [protocol] });
const newSession = (): ClientHttp2Session => connectHttp2(`https://127.0.0.1:${world.httpsPort}`, { servername: host, rejectUnauthorized: false }).on('error', () => undefined);

test('who never comes to an end is cut off, whatever the protocol', async () => {
  const head = `Host: ${host}\r\n`;
  const dripping = (socket: Socket, begin: string, piece: string) => {
    const timer = setInterval(() => socket.writable && socket.write(piece), 300);
    return sendRaw(socket, begin, (text) => text.includes('\r\n\r\n')).finally(() => clearInterval(timer));
  };
  const cut = (socket: Socket) => new Promise<string>((done) => {
    socket.on('error', () => undefined).resume().on('close', () => done('cut'));
  });
  const stream = new Promise<number>((done) => {
    const session = newSession();
    const asked = session.request({ ':method': 'POST', ':authority': host, ':path': '/' });
    let status = 0;
    asked.on('response', (answer) => (status = answer[':status'] ?? 0)).on('error', () => undefined).resume();
    asked.on('close', () => {
      session.destroy();
      done(status);
    });
    asked.write('abc');
  });
  const [none, half, halfSecure, body, chunks] = await Promise.all([
    sendRaw(plain(), ''), dripping(plain(), `GET / HTTP/1.1\r\n${head}`, 'X-A: 1\r\n'), dripping(secure('http/1.1'), `GET / HTTP/1.1\r\n${head}`, 'X-A: 1\r\n'),
    dripping(plain(), `POST / HTTP/1.1\r\n${head}Content-Length: 100000\r\n\r\n`, 'abc'), dripping(plain(), `POST / HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\na\r\n'),
  ]);
  expect([none.status, half.status, halfSecure.status, body.status, chunks.status, await stream]).toEqual([408, 408, 408, 408, 408, 408]);
  expect(body.head).toContain('X-Gateway-Event');
  const idle = [connect(world.httpsPort, '127.0.0.1'), secure('h2')];
  const deaf = plain();
  deaf.write(`POST / HTTP/1.1\r\n${head}Content-Length: 100000\r\n\r\nabc`);
  const timer = setInterval(() => deaf.writable && deaf.write('abc'), 300);
  expect(await Promise.all([...idle, deaf].map(cut))).toEqual(['cut', 'cut', 'cut']);
  clearInterval(timer);
}, 120_000);

test('of who goes away nothing is left, not even what has not had its turn', async () => {
  const socket = plain();
  socket.on('error', () => undefined).write(['/endless', '/endless', '/held'].map((path) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join(''));
  await until(() => open.size === 3, 'all to be asked');
  socket.destroy();
  await until(() => open.size === 0, 'all to be let go');
});

test('256 connections of one address, no more; room again when they end', async () => {
  const sockets = Array.from({ length: 300 }, () => plain().on('error', () => undefined).resume());
  await until(() => sockets.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length === 256, '256 to be left');
  for (const socket of sockets) socket.destroy();
  await until(async () => (await world.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status === 200, 'room');
});

test('100 streams of a session at once, and no session with more than 100 resets', async () => {
  const session = newSession();
  await new Promise((done) => session.once('remoteSettings', done));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(100);
  const closed = new Promise((done) => session.once('close', done));
  const reset = async (count: number) => {
    for (let i = 0; i < count && !session.closed && !session.destroyed; i++) {
      const stream = session.request({ ':authority': host, ':path': '/held' });
      const over = new Promise((done) => stream.on('error', () => undefined).on('close', done));
      stream.close(8);
      await over;
    }
  };
  await reset(100);
  const status = await new Promise((done) => session.request({ ':authority': host, ':path': '/' }).on('response', (head) => done(head[':status'])).on('error', done).resume());
  expect(status).toBe(200);
  await reset(1);
  await closed;
});

test('a gateway that is told to leave finishes what is on its way, and waits for nothing else', async () => {
  const server = createServer().on('upgrade', (_request: IncomingMessage, socket: Socket) => void socket.on('error', () => undefined).end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbye'));
  const tunnelled = await world.origin(() => undefined, server);
  await world.zone('tunnel.test', [{ name: '@', value: '127.0.0.1', port: tunnelled.port }], { policy: { mode: 'off' } });
  expect((await world.raw('GET /x HTTP/1.1\r\nHost: tunnel.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')).body).toBe('bye');
  const kept = plain();
  const last = sendRaw(kept, `GET /held HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await until(() => open.size === 1, 'a request to be on its way');
  const { httpPort } = world;
  // The test's own deadline is shorter than what open requests are given.
  const left = world.gateway.stop(600_000);
  await until(async () => (await sendRaw(connect(httpPort, '127.0.0.1'), `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).status === 0, 'nobody to be let in');
  for (const response of open) response.end('late');
  expect(await last).toMatchObject({ status: 200, body: expect.stringContaining('late') });
  await left;
  await world.restart();
}, 60_000);
