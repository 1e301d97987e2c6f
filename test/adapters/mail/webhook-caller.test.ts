import { createServer, type Server, type ServerResponse } from 'node:http';
import { CheckedWebhookCaller, type CallerOptions } from '../../../src/adapters/webhook-caller/checked-caller';
import { webhookUrlFault } from '../../../src/mail/rules/webhook-url';

let server: Server;
let port = 0;
let answer: (response: ServerResponse) => void = (response) => void response.end('fine');
const seen: { url: string; host: string; body: string; signature: string }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => {
      seen.push({ url: request.url ?? '', host: request.headers.host ?? '', body: Buffer.concat(chunks).toString(), signature: String(request.headers['webhook-signature']) });
      answer(response);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
beforeEach(() => {
  seen.length = 0;
  answer = (response) => void response.end('fine');
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
});

const post = (url: string, options: Partial<CallerOptions> = {}) => new CheckedWebhookCaller({ allowPrivate: true, ...options }).post({ url, headers: { 'webhook-signature': 'v1,x' }, body: '{"a":1}' });

test('posts the bytes to the address the name was resolved to, under its own name', async () => {
  const answered = await post(`http://hooks.acme.test:${port}/in?x=1`, { resolve: async () => ['127.0.0.1'] });
  expect(answered).toEqual({ status: 200, excerpt: 'fine', error: null, retryAfterSeconds: null });
  expect(seen).toEqual([{ url: '/in?x=1', host: `hooks.acme.test:${port}`, body: '{"a":1}', signature: 'v1,x' }]);
});

test.each(['127.0.0.1', '10.1.2.3', '192.168.0.1', '172.31.0.1', '169.254.169.254', '0.0.0.0', '100.64.1.1', '::1', '::', '::ffff:127.0.0.1', '::ffff:a00:1', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '2002:7f00:1::', 'fe80::1', 'fd00::1', 'ff02::1'])(
  'never calls %s, given as it is or behind a name', async (address) => {
    const literal = `https://${address.includes(':') ? `[${address}]` : address}/`;
    for (const answered of [await post(literal, { allowPrivate: false }), await post('https://hooks.acme.com/', { allowPrivate: false, resolve: async () => [address] })]) {
      expect(answered).toEqual({ status: null, excerpt: null, error: 'The address is not public.', retryAfterSeconds: null });
    }
  });

test('one inner address among public ones is enough to refuse', async () => {
  expect(await post('https://hooks.acme.com/', { allowPrivate: false, resolve: async () => ['93.184.216.34', '127.0.0.1'] })).toMatchObject({ status: null, error: 'The address is not public.' });
});

test('a name that changes its mind gains nothing: it is asked once, and its first answer is what is called', async () => {
  let asked = 0;
  const resolve = async () => [asked++ === 0 ? '127.0.0.1' : '127.0.0.2'];
  expect(await post(`http://rebind.test:${port}/`, { resolve })).toMatchObject({ status: 200 });
  expect([asked, seen.length]).toEqual([1, 1]);
});

test('redirects are not followed', async () => {
  answer = (response) => void response.writeHead(307, { location: `http://127.0.0.1:${port}/inner` }).end();
  expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 307, error: 'Redirects are not followed.' });
  expect(seen.map(({ url }) => url)).toEqual(['/']);
});

test('proxies of the environment are not used', async () => {
  const before = { ...process.env };
  Object.assign(process.env, { HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1', NODE_USE_ENV_PROXY: '1' });
  try {
    expect(await post(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 200 });
  } finally {
    process.env = before;
  }
});

test('of a long or endless answer 4 KiB are read; silence ends in time', async () => {
  answer = (response) => {
    response.writeHead(500, { 'retry-after': '77' });
    const pour = () => {
      while (response.write('\0é'.repeat(4_000)));
      response.once('drain', pour);
    };
    pour();
  };
  const long = await post(`http://127.0.0.1:${port}/`);
  expect(long).toMatchObject({ status: 500, error: null, retryAfterSeconds: 77 });
  expect(Buffer.byteLength(long.excerpt ?? '')).toBeLessThanOrEqual(4_096);
  expect(long.excerpt).not.toContain('\0');
  answer = () => undefined;
  expect(await post(`http://127.0.0.1:${port}/`, { timeoutMs: 60 })).toMatchObject({ status: null, error: 'No answer in time.' });
  expect(await post('http://slow.test/', { timeoutMs: 60, resolve: () => new Promise(() => undefined) })).toMatchObject({ status: null, error: 'No answer in time.' });
  expect(await post('http://127.0.0.1:1/')).toMatchObject({ status: null, error: expect.stringContaining('ECONNREFUSED') });
  expect(await post('http://none.test/', { resolve: async () => [] })).toMatchObject({ status: null, error: 'The name has no address.' });
});

test.each([
  ['https://acme.com/hook', null], ['https://acme.com:8443/hook?x', null], ['http://acme.com/', 'must begin with https://'], ['https://acme.com:444/', 'must use port 443 or 8443'],
  ['https://user:pw@acme.com/', 'must not hold credentials'], ['https://acme.com/#x', 'must not hold a fragment'], ['ftp://acme.com/', 'must begin with https://'], ['acme.com', 'must be an absolute URL'],
  ['https://', 'must be an absolute URL'], ['https:\\\\acme.com', 'must be an absolute URL'], ['javascript:alert(1)', 'must be an absolute URL'],
])('%s', (url, fault) => {
  expect(webhookUrlFault(url, { allowPrivate: false })).toBe(fault);
  if (fault === null) expect(webhookUrlFault(url.replace('https', 'http').replace('8443', '3000'), { allowPrivate: true })).toBeNull();
});
