import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { displayName, flag, text } from '../../src/core/fields';
import { digits, pageAnswer, pageQuery } from '../../src/core/page';
import { operationsOf } from '../../src/http/operation';
import { withFrame, type FrameTestDeps } from '../support/frame';

const { self, signed } = operationsOf<FrameTestDeps>();
const frame = withFrame(() => [
  self({
    id: 'buildShelf', method: 'post', path: '/api/shelves', summary: '', tag: '', answer: z.object({ shelf: z.unknown() }),
    body: z.strictObject({ displayName, rows: z.number().int().min(1).max(9), doors: z.array(z.strictObject({ colour: z.enum(['red', 'blue']) })).optional(), note: z.string().optional(), labels: z.record(z.string(), z.string()).optional() }),
    handle: async ({ body, deps }) => {
      deps.seen.push(body);
      return { shelf: body };
    },
  }),
  self({ id: 'dustShelf', method: 'post', path: '/api/shelves/:shelfId/dust', summary: '', tag: '', answer: z.object({ shelfId: z.string() }), handle: async ({ params }) => ({ shelfId: params.shelfId }) }),
  self({ id: 'paintShelf', method: 'post', path: '/api/paint', summary: '', tag: '', bodyOptional: true, body: z.strictObject({ colour: text.default('red') }), answer: z.object({ colour: z.string() }), handle: async ({ body }) => ({ colour: body.colour }) }),
  self({
    id: 'listShelves', method: 'get', path: '/api/shelves', summary: '', tag: '', answer: z.object({ query: z.unknown(), ...pageAnswer }),
    query: z.object({ ...pageQuery, wait: digits.optional(), empty: flag.optional(), name: text.optional() }), handle: async ({ query }) => ({ query, nextCursor: null, hasMore: false }),
  }),
  signed({ id: 'hearShelf', method: 'post', path: '/api/heard', summary: '', tag: '', bodyMaxBytes: 1_000, answer: z.object({ bytes: z.number() }), handle: async ({ request }) => ({ bytes: request.rawBody.length }) }),
]);

const cookie = 'as=ann';
const post = (json: unknown) => frame.ask('POST', '/v1/api/shelves', { headers: { cookie }, json });
const raw = (body: string | Buffer, headers: Record<string, string> = {}) => frame.ask('POST', '/v1/api/shelves', { headers: { cookie, 'content-type': 'application/json', ...headers }, raw: body });
const good = { displayName: ' Oak ', rows: 3 };

test('a good body reaches the handler as its schema gives it', async () => {
  const answer = await post(good);
  expect(answer).toMatchObject({ status: 200, body: { ok: true, shelf: { displayName: 'Oak', rows: 3 } } });
});

test('every fault of body is named at once, with where it is', async () => {
  const { status, body } = await post({ displayName: '', rows: 0.5, doors: [{ colour: 'red' }, { colour: 'green', handel: 1 }] });
  expect({ status, ok: body.ok, code: body.code }).toEqual({ status: 400, ok: false, code: 'validation_error' });
  expect(body.issues.map((issue: { path: string }) => issue.path)).toEqual(['displayName', 'rows', 'doors.1.colour', 'doors.1.handel']);
  expect(body.message).toContain('4 faults');
  expect(body.requestId).toMatch(/^req_/);
});

test('an unknown key is refused and the nearest known one suggested', async () => {
  const { body } = await post({ ...good, displayname: 'x', colour: 'red' });
  expect(body.issues).toEqual([
    { path: 'displayname', message: 'unknown key, not supported; did you mean "displayName"?' },
    { path: 'colour', message: expect.stringMatching(/^unknown key, not supported; known are displayName, rows/) },
  ]);
});

test.each([
  ['garbage', '{"displayName":', 'invalid_json'], ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'invalid_json'], ['two values', '{} {}', 'invalid_json'],
  ['an array', '[]', 'validation_error'], ['null', 'null', 'validation_error'], ['a number', '7', 'validation_error'], ['a string', '"x"', 'validation_error'],
  ['deep nesting', '['.repeat(100_000) + ']'.repeat(100_000), 'validation_error'], ['deep nesting inside', `{"note":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'validation_error'],
  ['__proto__', '{"displayName":"a","rows":1,"__proto__":{"x":1}}', 'validation_error'], ['constructor', '{"displayName":"a","rows":1,"constructor":1}', 'validation_error'],
])('a body that is %s is 400', async (_, body, code) => {
  expect(await raw(body)).toMatchObject({ status: 400, body: { ok: false, code } });
});

test('no body where one is required says so', async () => {
  const { status, body } = await frame.ask('POST', '/v1/api/shelves', { headers: { cookie } });
  expect({ status, body }).toMatchObject({ status: 400, body: { code: 'validation_error', issues: [{ path: '', message: 'a JSON object is required as the body' }] } });
});

test.each([['\\u0000', 'note'], ['\\ud800', 'note'], ['\\udc00x', 'note']])('%s is refused in any string of a body, whatever its schema says', async (escape, path) => {
  const { status, body } = await raw(`{"displayName":"a","rows":1,"note":"x${escape}"}`);
  expect({ status, body }).toMatchObject({ status: 400, body: { code: 'validation_error', issues: [{ path }] } });
  expect((await raw(`{"displayName":"a","rows":1,"labels":{"a":"${escape}"}}`)).body).toMatchObject({ code: 'validation_error', issues: [{ path: 'labels.a' }] });
  expect((await raw(`{"displayName":"a","rows":1,"labels":{"k${escape}":"v"}}`)).status).toBe(400);
});

test('U+0000 in a query is 400, in a path it names nothing', async () => {
  expect(await frame.ask('GET', '/v1/api/shelves?name=a%00', { headers: { cookie } })).toMatchObject({ status: 400, body: { code: 'validation_error', issues: [{ path: 'name' }] } });
  expect((await frame.ask('POST', '/v1/api/shelves/a%00b/dust', { headers: { cookie } })).body.shelfId).toBe('a\uFFFDb');
});

test.each(['%', '%zz', '%E0%A4%A', '%ff'])('a malformed percent escape (%s) is 400 in path and query', async (escape) => {
  const inPath = await frame.ask('POST', `/v1/api/shelves/${escape}/dust`, { headers: { cookie } });
  expect(inPath).toMatchObject({ status: 400, body: { ok: false, code: 'validation_error' }, headers: { 'x-content-type-options': 'nosniff' } });
  expect(await frame.ask('GET', `/v1/api/shelves?name=${escape}`, { headers: { cookie } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
});

test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'application/json; charset=latin1', '', 'multipart/form-data; boundary=x'])('a body of the type "%s" is 400 unsupported_media_type', async (type) => {
  const headers: Record<string, string> = { cookie, ...(type ? { 'content-type': type } : {}) };
  expect(await frame.ask('POST', '/v1/api/shelves', { headers, raw: '{}' })).toMatchObject({ status: 400, body: { code: 'unsupported_media_type' } });
});

test.each(['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"', 'application/json'])('a body of the type %s is read', async (type) => {
  expect((await raw(JSON.stringify(good), { 'content-type': type })).status).toBe(200);
});

test('a body beyond the limit is 400 payload_too_large with the limit, at the limit it is read', async () => {
  const body = (length: number) => JSON.stringify(good).replace(' Oak ', 'Oak').padEnd(length, ' ');
  expect(await raw(body(262_145))).toMatchObject({ status: 400, body: { code: 'payload_too_large', limit: 262_144 } });
  expect((await raw(body(262_144))).status).toBe(200);
  const signed = (length: number) => frame.ask('POST', '/v1/api/heard', { headers: { 'content-type': 'application/json' }, raw: Buffer.alloc(length, 32) });
  expect((await signed(1_000)).body).toEqual({ ok: true, bytes: 1_000 });
  expect((await signed(1_001)).body).toMatchObject({ code: 'payload_too_large', limit: 1_000 });
});

test('a compressed body is read, counted unpacked, and refused when it is broken', async () => {
  expect((await raw(gzipSync(JSON.stringify(good)), { 'content-encoding': 'gzip' })).status).toBe(200);
  expect((await raw(gzipSync(' '.repeat(5_000_000)), { 'content-encoding': 'gzip' })).body).toMatchObject({ code: 'payload_too_large' });
  expect(await raw('no gzip', { 'content-encoding': 'gzip' })).toMatchObject({ status: 400, body: { code: 'invalid_json' } });
  expect(await raw('x', { 'content-encoding': 'rot13' })).toMatchObject({ status: 400, body: { code: 'unsupported_media_type' } });
});

test('a request whose body the contract names "none" takes nothing or {}', async () => {
  const dust = (ask: object) => frame.ask('POST', '/v1/api/shelves/s/dust', { headers: { cookie }, ...ask });
  expect((await dust({})).status).toBe(200);
  expect((await dust({ json: {} })).status).toBe(200);
  expect((await dust({ json: { x: 1 } })).body).toMatchObject({ code: 'validation_error', issues: [{ path: 'x' }] });
  expect((await frame.ask('POST', '/v1/api/paint', { headers: { cookie } })).body).toEqual({ ok: true, colour: 'red' });
});

test.each(['0', '101', '-1', '+5', '5.0', ' 5', '0x10', '1e1', '', 'abc', '99999999999999999999'])('the limit "%s" is 400, never clamped', async (limit) => {
  expect(await frame.ask('GET', `/v1/api/shelves?limit=${encodeURIComponent(limit)}`, { headers: { cookie } })).toMatchObject({ status: 400, body: { code: 'validation_error', issues: [{ path: 'limit' }] } });
});

test('a repeated query key is 400, an unknown one is ignored', async () => {
  expect((await frame.ask('GET', '/v1/api/shelves?limit=1&limit=1&wait=x', { headers: { cookie } })).body.issues.map((issue: { path: string }) => issue.path)).toEqual(['limit', 'wait']);
  expect((await frame.ask('GET', '/v1/api/shelves?limt=1&limt=2&empty=true', { headers: { cookie } })).body.query).toEqual({ empty: true });
});
