import { connect as connectHttp2, constants, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { sendRaw, withGateway, type Origin } from '../../support/gateway-world';
import { askRawHttp2, type RawHeaders } from '../../support/raw-http2';
import { rounds } from '../../support/rounds';
import { until } from '../../support/until';

const world = withGateway();
const host = 'www.strict.test';
let origin: Origin;
beforeAll(async () => {
  origin = await world.origin((incoming, response) => incoming.resume().on('end', () => response.end('reached')));
  await world.zone('strict.test', [{ name: 'www', value: '127.0.0.1', port: origin.port }, { name: 'other', value: '127.0.0.1', port: origin.port }], { policy: { mode: 'off' } });
});
beforeEach(() => void origin.seen.splice(0));

const post = (headers: string, body = '') => `POST / HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n${body}`;
const chunk = '5\r\nhello\r\n0\r\n\r\n';
const rows: Record<string, string> = {
  'length and chunks': post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', chunk),
  'chunks and length': post('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', chunk),
  'two lengths': post('Content-Length: 5\r\nContent-Length: 6\r\n', 'hello!'),
  'the same length twice': post('Content-Length: 5\r\nContent-Length: 5\r\n', 'hello'),
  'a list of lengths': post('Content-Length: 5, 5\r\n', 'hello'),
  'a signed length': post('Content-Length: +5\r\n', 'hello'),
  'a folded header': post('X-A: 1\r\n folded\r\nContent-Length: 0\r\n'),
  'a bare line feed': `POST / HTTP/1.1\nHost: ${host}\nContent-Length: 0\n\n`,
  'a space before the colon': post('Content-Length : 5\r\n', 'hello'),
  'a NUL': post('X-A: a\0b\r\nContent-Length: 0\r\n'),
  'a chunk without a size': post('Transfer-Encoding: chunked\r\n', 'x\r\nhello\r\n0\r\n\r\n'),
  'a chunk that is longer than it says': post('Transfer-Encoding: chunked\r\n', '3\r\nhello\r\n0\r\n\r\n'),
  'another coding before chunked': post('Transfer-Encoding: gzip, chunked\r\n', chunk),
  'another coding': post('Transfer-Encoding: xchunked\r\n', chunk),
  'chunked in other letters': post('Transfer-Encoding: Chunked\r\n', chunk),
  'chunked twice': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', chunk),
  'chunked and identity': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', chunk),
  'chunks in HTTP/1.0': `POST / HTTP/1.0\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`,
  'HTTP/0.9': 'GET /\r\n\r\n',
  'HTTP/2.0 in the clear': `GET / HTTP/2.0\r\nHost: ${host}\r\n\r\n`,
  'no Host': 'GET / HTTP/1.1\r\n\r\n',
  'two Hosts': `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: other.strict.test\r\n\r\n`,
  'the same Host twice': `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`,
  'an absolute target of another host': `GET http://other.strict.test/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  'an absolute target of another port': `GET http://${host}:81/ HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  'CONNECT': `CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  'a fragment': `GET /a#b HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  'an asterisk without OPTIONS': `GET * HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  'a Host with a path': `GET / HTTP/1.1\r\nHost: ${host}/x\r\n\r\n`,
  'a Host with a user': `GET / HTTP/1.1\r\nHost: a@${host}\r\n\r\n`,
  'a Host with spaces': `GET / HTTP/1.1\r\nHost: ${host} other.strict.test\r\n\r\n`,
  'a port that is none': `GET / HTTP/1.1\r\nHost: ${host}:99999\r\n\r\n`,
  'Content_Length': post('Content_Length: 5\r\nContent-Length: 0\r\n'),
  'Transfer_Encoding': post('Transfer_Encoding: chunked\r\nContent-Length: 0\r\n'),
  'X_Forwarded_For': `GET / HTTP/1.1\r\nHost: ${host}\r\nX_Forwarded_For: 127.0.0.1\r\n\r\n`,
  'X_Forwarded-For': `GET / HTTP/1.1\r\nHost: ${host}\r\nX_Forwarded-For: 127.0.0.1\r\n\r\n`,
  'X_Forwarded_Ssl': `GET / HTTP/1.1\r\nHost: ${host}\r\nX_Forwarded_Ssl: on\r\n\r\n`,
  'X_Real_IP': `GET / HTTP/1.1\r\nHost: ${host}\r\nX_Real_IP: 127.0.0.1\r\n\r\n`,
  'headers of more than 16 KiB': `GET / HTTP/1.1\r\nHost: ${host}\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`,
  'more than 100 headers': `GET / HTTP/1.1\r\nHost: ${host}\r\n${Array.from({ length: 101 }, (_, i) => `X-${i}: 1\r\n`).join('')}\r\n`,
  'an address of more than 8 KiB': `GET /${'a'.repeat(8_200)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  'a WebSocket with a body': `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\nhello`,
};

test.each(Object.entries(rows))('HTTP/1.1: %s is refused and reaches nobody', async (_name, bytes) => {
  const answer = await world.raw(bytes);
  expect(answer.status).toBe(400);
  expect(origin.seen).toHaveLength(0);
});

test.each([rows['another coding before chunked'], rows['chunks in HTTP/1.0'], rows['Content_Length'], rows['two Hosts']])('what follows on the connection is not served: %j', async (bytes = '') => {
  const { text } = await world.raw(`${bytes}GET /hidden HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  expect(origin.seen.map(({ url }) => url)).toEqual([]);
});

test('a request that waited for its turn on a connection that broke is counted too', async () => {
  const before = world.records.length;
  const paths = () => world.records.slice(before).map(({ request }) => request.facts.rawPath).toSorted();
  await world.raw(`HEAD /first HTTP/1.1\r\nHost: ${host}\r\n\r\nHEAD /second HTTP/1.1\r\nHost: ${host}\r\n\r\nno request\r\n\r\n`);
  await until(() => paths().length === 2, 'both to be recorded');
  expect(paths()).toEqual(['/first', '/second']);
});

test('what is refused for a known zone is an event of its own, without a word about the rule in the answer', async () => {
  const before = world.records.length;
  const answer = await world.raw(rows['a fragment'] ?? '');
  await until(() => world.records.length > before, 'the record');
  const { request, eventId } = world.records.at(-1) ?? {};
  expect(request?.decision).toMatchObject({ outcome: 'block', source: 'protocol', ruleId: 'protocol.target' });
  expect(answer.head).toContain(`X-Gateway-Event: ${eventId}`);
  expect(answer.body).not.toContain('protocol');
});

describe('HTTP/2', () => {
  let session: ClientHttp2Session;
  beforeEach(() => {
    session = connectHttp2(`https://127.0.0.1:${world.httpsPort}`, { servername: host, rejectUnauthorized: false });
    session.on('error', () => undefined);
  });
  afterEach(() => session.destroy());
  const ask = (headers: OutgoingHttpHeaders, body?: string): Promise<number> => new Promise((done) => {
    const stream = session.request({ ':authority': host, ':path': '/', ...headers }, { endStream: body === undefined });
    let status = 0;
    stream.on('response', (head) => (status = head[':status'] ?? 0)).on('error', () => undefined).on('close', () => done(status)).resume();
    if (body !== undefined) stream.end(body);
  });

  test('goes through when it is in order', async () => {
    expect(await ask({})).toBe(200);
    expect(await ask({ ':method': 'POST', 'cookie': ['a=1', 'b=2'] }, 'hello')).toBe(200);
    expect(origin.seen.map((seen) => [seen.method, seen.headers.host, seen.headers.cookie, seen.headers['transfer-encoding']])).toEqual([['GET', host, undefined, undefined], ['POST', host, 'a=1; b=2', 'chunked']]);
  });

  const refused: [string, OutgoingHttpHeaders, string?][] = [
    ['a Host besides another authority', { 'host': 'other.strict.test' }],
    ['a fragment', { ':path': '/a#b' }],
    ['a path that does not begin with a slash', { ':path': 'a' }],
    ['an asterisk without OPTIONS', { ':path': '*' }],
    ['an authority that is none', { ':authority': `a@${host}` }],
    ['X_Forwarded_For', { 'x_forwarded_for': '1.1.1.1' }],
    ['content_length', { 'content_length': '5' }],
    ['more than 100 headers', Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, '1']))],
    ['an address of more than 8 KiB', { ':path': `/${'a'.repeat(8_200)}` }],
    ['a length that its body has not', { ':method': 'POST', 'content-length': '50' }, 'hello'],
  ];
  test.each(refused.map(([name, headers, body]) => ({ name, headers, body })))('$name is refused and reaches nobody', async ({ name, headers, body }) => {
    const status = await ask(headers, body);
    // 0: the stream was reset by the protocol's own parser.
    expect([0, 400]).toContain(status);
    expect(name.startsWith('a length') ? origin.seen.filter(({ complete }) => complete) : origin.seen).toHaveLength(0);
  });

  test('a session that only resets its streams is closed after a hundred', async () => {
    const closed = new Promise((done) => session.once('close', done));
    for (let i = 0; i < 130 && !session.closed; i++) {
      const stream = session.request({ ':authority': host, ':path': '/slow' });
      stream.on('error', () => undefined).close(constants.NGHTTP2_CANCEL);
      if (i % 20 === 19) await new Promise((done) => setImmediate(done));
    }
    await closed;
  });
});

describe('HTTP/2, byte by byte', () => {
  const others: RawHeaders = [[':scheme', 'https'], [':authority', host], [':path', '/']];
  const get: RawHeaders = [[':method', 'GET'], ...others];
  const post: RawHeaders = [[':method', 'POST'], ...others];
  const changed = (name: string, value: string): RawHeaders => get.map(([key, before]) => [key, key === name ? value : before]);
  const hello = Buffer.from('hello');
  const ask = (headers: RawHeaders, body: Buffer | null = null) => askRawHttp2(connectTls({ port: world.httpsPort, host: '127.0.0.1', servername: host, rejectUnauthorized: false, ALPNProtocols: ['h2'] }), headers, body);

  test('goes through when it is in order', async () => {
    expect([await ask(get), await ask(post, hello), await ask([...post, ['content-length', '5'], ['te', 'trailers']], hello)]).toEqual([200, 200, 200]);
    expect(origin.seen).toHaveLength(3);
  });

  const refused: [string, RawHeaders, Buffer?][] = [
    ['chunks', [...post, ['transfer-encoding', 'chunked']], Buffer.from('0\r\n\r\nGET /b HTTP/1.1\r\n\r\n')],
    ['length and chunks', [...post, ['content-length', '5'], ['transfer-encoding', 'chunked']], hello],
    ['two lengths', [...post, ['content-length', '5'], ['content-length', '6']], hello],
    ['the same length twice', [...post, ['content-length', '5'], ['content-length', '5']], hello],
    ['a list of lengths', [...post, ['content-length', '5, 5']], hello],
    ['a signed length', [...post, ['content-length', '+5']], hello],
    ['a length without a body', [...get, ['content-length', '5']]],
    ['a name in capitals', [...get, ['X-A', '1']]],
    ['Connection', [...get, ['connection', 'close']]],
    ['Upgrade', [...get, ['upgrade', 'websocket']]],
    ['TE that is not trailers', [...get, ['te', 'gzip']]],
    ['a path with a line break', changed(':path', '/ HTTP/1.1\r\nHost: b\r\n\r\nGET /')],
    ['a path with a space', changed(':path', '/a b')],
    ['a path that is an address', changed(':path', `http://${host}/`)],
    ['an empty path', changed(':path', '')],
    ['a method with a space', changed(':method', 'GET /b HTTP/1.1')],
    ['a method in small letters', changed(':method', 'get')],
    ['another scheme', changed(':scheme', 'ftp')],
    ['a scheme that is more', changed(':scheme', 'https://b/?')],
    ['two paths', [...get, [':path', '/b']]],
    ['two authorities', [...get, [':authority', 'other.strict.test']]],
    ['neither authority nor Host', get.filter(([name]) => name !== ':authority')],
    ['Host besides another authority', [...get, ['host', 'other.strict.test']]],
    ['two Hosts', [...get, ['host', host], ['host', host]]],
    ['two Hosts without authority', [...get.filter(([name]) => name !== ':authority'), ['host', host], ['host', 'other.strict.test']]],
    ['CONNECT', [[':method', 'CONNECT'], [':authority', `${host}:443`]]],
    ['CONNECT for WebSocket', [[':method', 'CONNECT'], [':protocol', 'websocket'], ...others]],
    ['a pseudo header after others', [[':method', 'GET'], [':scheme', 'https'], [':authority', host], ['x-a', '1'], [':path', '/']]],
    ['a pseudo header that is none', [...get, [':a', '1']]],
  ];
  test.each(refused.map(([name, headers, body]) => ({ name, headers, body })))('$name is refused and reaches nobody', async ({ headers, body }) => {
    expect([400, 'reset', 'closed']).toContain(await ask(headers, body ?? null));
    expect(origin.seen).toHaveLength(0);
  });

  test.each([['x-a', 'marker\r\nX: y'], ['x-a', 'marker\ny: z'], ['x-a', 'marker\0'], ['x-a', 'marker\x01'], ['x-a\r\nmarker: y', 'b'], ['marker:', 'b'], ['marker ', 'b']])('%j is left out by the parser: no byte of it reaches the origin', async (name, value) => {
    await ask([...get, [name, value]]);
    expect(origin.seen.flatMap(({ rawHeaders }) => rawHeaders).join()).not.toContain('marker');
  });
});

describe('an upgrade', () => {
  const upgrade = (to: string, more = '') => `GET /up-to HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${to}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n${more}`;

  test('waits for the answers of earlier requests', async () => {
    const first = `GET /first HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const { text } = await world.raw(`${first}${first}${upgrade('websocket', '\r\n')}`);
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
    expect(origin.seen.map(({ url }) => url)).toEqual(['/first', '/first', '/up-to']);
  });

  test('to something else is left out: the body and the requests behind it are what they say', async () => {
    const { text } = await world.raw(`${upgrade('h2c', 'Content-Length: 5\r\n\r\n')}hello${upgrade('h2c', 'Transfer-Encoding: chunked\r\n\r\n')}${chunk}${upgrade('h2c', '\r\n')}GET /last HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(4);
    expect(origin.seen.map(({ url }) => url)).toEqual(['/up-to', '/up-to', '/up-to', '/last']);
    expect(origin.seen.filter(({ headers }) => headers.upgrade || headers['http2-settings'])).toEqual([]);
  });

  test('does not help a request that is refused', async () => {
    expect((await world.raw(`${upgrade('h2c', 'Transfer-Encoding: gzip, chunked\r\n\r\n')}${chunk}`)).status).toBe(400);
    expect(origin.seen).toHaveLength(0);
  });
});

test('CONNECT to a known zone is an event of it, by both protocols', async () => {
  const before = world.records.length;
  expect((await world.raw(rows['CONNECT'] ?? '')).head).toContain('X-Gateway-Event');
  await askRawHttp2(connectTls({ port: world.httpsPort, host: '127.0.0.1', servername: host, rejectUnauthorized: false, ALPNProtocols: ['h2'] }), [[':method', 'CONNECT'], [':authority', `${host}:443`]]);
  await until(() => world.records.length === before + 2, 'the records');
  expect(world.records.slice(before).map(({ request }) => request.decision.ruleId)).toEqual(['protocol.method', 'protocol.method']);
});

test('whatever bytes come, the origin has seen exactly the requests that the gateway says it forwarded', async () => {
  const pieces = ['GET / HTTP/1.1\r\n', 'POST /p HTTP/1.1\r\n', `Host: ${host}\r\n`, 'Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Transfer-Encoding: chunked\r\n', '\r\n', 'hello', '5\r\nhello\r\n', '0\r\n\r\n', '\r\n\r\n', '\n', ' ', 'X: y\r\n', 'Connection: keep-alive\r\n', '\0', 'GET /b HTTP/1.1\r\nHost: www.strict.test\r\n\r\n'];
  const before = world.records.length;
  await world.raw(`GET /whole HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  // A request that is cut off by its client may reach the origin and have no status.
  await fc.assert(fc.asyncProperty(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 14 }), async (chosen) => {
    const socket = connect(world.httpPort, '127.0.0.1');
    const end = setTimeout(() => socket.end(), 30);
    await sendRaw(socket, chosen.join(''));
    clearTimeout(end);
  }), { numRuns: rounds(40, 2_000) });
  const ids = () => world.records.slice(before).map(({ request }) => request.facts.requestId);
  const seen = origin.seen.map((request) => String(request.headers['x-request-id']));
  await until(() => seen.every((id) => ids().includes(id)), 'every request the origin has seen to be known');
  const forwarded = world.records.slice(before).filter(({ request }) => request.originStatus !== null).map(({ request }) => request.facts.requestId);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen).toEqual(expect.arrayContaining(forwarded));
  expect(forwarded.length).toBeGreaterThan(0);
}, rounds(60_000, 600_000));
