import { connect } from 'node:net';
import { z } from 'zod';
import { AppError } from '../../src/core/errors';
import { Reply, operationsOf } from '../../src/http/operation';
import { withFrame, type FrameTestDeps } from '../support/frame';

const { open, self, org, project, scoped } = operationsOf<FrameTestDeps>();
const answer = z.object({ id: z.string() });
const common = { summary: '', tag: '', answer, handle: async () => ({ id: 'x' }) } as const;
const frame = withFrame(() => [
  open({ ...common, id: 'lookAtShelf', method: 'get', path: '/api/shelf' }),
  self({ ...common, id: 'keepShelf', method: 'put', path: '/api/shelf', noStore: true }),
  org('org:delete')({ ...common, id: 'burnShelf', method: 'delete', path: '/shelves/:shelfId', fresh: true, handle: async ({ caller, params }) => ({ id: `${caller.org.slug} ${caller.role} ${params.shelfId}` }) }),
  project('mail:write')({ ...common, id: 'moveShelf', method: 'post', path: '/shelves', status: 202, answer: z.object({ operation: answer }), handle: async () => new Reply({ operation: { id: 'op_1' } }, { headers: { Location: '/v1/api/x' }, cookies: ['a=b', 'c=d'] }) }),
  scoped('mail:send')({ ...common, id: 'sendShelf', method: 'post', path: '/api/mail/shelf', aliases: ['/mail/shelf/:shelfId'], handle: async ({ caller }) => ({ id: caller.name }) }),
  open({ ...common, id: 'breakShelf', method: 'get', path: '/api/broken', handle: async () => { throw new Error('password hunter2 in /etc/secret'); } }),
  open({ ...common, id: 'refuseShelf', method: 'get', path: '/api/refused', handle: async () => { throw new AppError('rate_limited', 'Later.', { code: 'mine', ok: true, limit: 3 }, { retryAfterSeconds: 7 }); } }),
]);

test('an operation answers below /v1, without a version, and at its aliases', async () => {
  for (const path of ['/v1/api/shelf', '/api/shelf']) expect(await frame.ask('GET', path)).toMatchObject({ status: 200, body: { ok: true, id: 'x' } });
  for (const path of ['/v1/api/mail/shelf', '/api/mail/shelf', '/v1/mail/shelf/1', '/mail/shelf/1']) {
    expect(await frame.ask('POST', path, { headers: { authorization: 'Bearer mail:send' } })).toMatchObject({ status: 200, body: { id: 'mail:send' } });
  }
});

test.each(['/', '/v1', '/v2/api/shelf', '/v1/shelf', '/v1/api/nothing', '/V1/api/shelf', '/v1/api/Shelf'])('%s is 404 route_not_found in the envelope', async (path) => {
  const { status, body, headers } = await frame.ask('GET', path);
  expect({ status, body }).toMatchObject({ status: 404, body: { ok: false, code: 'route_not_found', message: expect.any(String), requestId: headers['x-request-id'] } });
});

test('an existing path with another method is 404 with Allow', async () => {
  for (const method of ['POST', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
    expect(await frame.ask(method, '/v1/api/shelf')).toMatchObject({ status: 404, body: { code: 'route_not_found' }, headers: { allow: 'GET, PUT, HEAD' } });
  }
  expect((await frame.ask('GET', '/v1/api/orgs/acme/shelves/x')).headers['allow']).toBe('DELETE');
});

test('HEAD answers as GET without a body', async () => {
  expect(await frame.ask('HEAD', '/v1/api/shelf')).toMatchObject({ status: 200, text: '', headers: { 'content-type': 'application/json; charset=utf-8' } });
});

test('every answer carries the request id, the security headers and no trace of the server', async () => {
  for (const path of ['/v1/api/shelf', '/v1/api/nothing', '/v1/api/broken', '/%']) {
    const { headers, body } = await frame.ask('GET', path, { headers: { 'x-request-id': 'mine' } });
    expect(headers['x-request-id']).toMatch(/^req_[0-9a-z]{26}$/);
    expect(headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8', 'cache-control': 'private, no-cache', 'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining("default-src 'none'"), 'strict-transport-security': expect.any(String),
    });
    expect(headers['x-powered-by']).toBeUndefined();
    if (body.ok === false) expect(body.requestId).toBe(headers['x-request-id']);
  }
  expect(frame.logged).toContainEqual(expect.objectContaining({ facts: expect.objectContaining({ clientRequestId: 'mine', operation: 'lookAtShelf', status: 200 }) }));
});

test('what must not be stored says so', async () => {
  expect((await frame.ask('PUT', '/v1/api/shelf', { headers: { cookie: 'as=ann' } })).headers['cache-control']).toBe('no-store, private');
  expect((await frame.ask('PUT', '/v1/api/shelf')).headers['cache-control']).toBe('no-store, private');
});

test('a fault of ours is 500 with a fixed text; the log has the cause', async () => {
  const { status, body } = await frame.ask('GET', '/v1/api/broken');
  expect({ status, body }).toEqual({ status: 500, body: { ok: false, code: 'internal_error', message: expect.not.stringContaining('hunter2'), requestId: expect.any(String) } });
  expect(frame.logged).toContainEqual(expect.objectContaining({ level: 'error', facts: expect.objectContaining({ requestId: body.requestId }) }));
});

test('facts stand beside the fixed members of a refusal and never replace them', async () => {
  expect(await frame.ask('GET', '/v1/api/refused')).toMatchObject({ status: 429, headers: { 'retry-after': '7' }, body: { ok: false, code: 'rate_limited', message: 'Later.', limit: 3 } });
});

test('who calls decides in this order: 401, then 404, then 403, then a stale session, then the faults of the request', async () => {
  const burn = (orgSlug: string, cookie: string) => frame.ask('DELETE', `/v1/api/orgs/${orgSlug}/shelves/s?x=1`, { headers: cookie ? { cookie } : {}, json: { unknown: 1 } });
  expect(await burn('acme', '')).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
  expect(await burn('foreign', 'as=ann,viewer')).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect(await burn('acme', 'as=ann,admin')).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'org:delete' } });
  expect(await burn('acme', 'as=ann,owner')).toMatchObject({ status: 403, body: { code: 'reauthentication_required' } });
  expect(await burn('acme', 'as=ann,owner,fresh')).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await frame.ask('DELETE', '/v1/api/orgs/acme/shelves/s', { headers: { cookie: 'as=ann,owner,fresh' } })).toMatchObject({ status: 200, body: { id: 'acme owner s' } });
});

test('a key counts only where a key is asked for, a cookie only where a session is', async () => {
  const send = (headers: Record<string, string>) => frame.ask('POST', '/v1/api/mail/shelf', { headers });
  expect(await send({ cookie: 'as=ann' })).toMatchObject({ status: 401, body: { code: 'invalid_api_key' }, headers: { 'www-authenticate': 'Bearer' } });
  expect(await send({ authorization: 'Bearer mail:read' })).toMatchObject({ status: 403, body: { code: 'insufficient_scope', required: 'mail:send' } });
  expect(await frame.ask('PUT', '/v1/api/shelf', { headers: { authorization: 'Bearer mail:send' } })).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
});

test('a 202 says where its resource is, where the work is followed and when to look', async () => {
  const { status, headers } = await frame.ask('POST', '/v1/api/orgs/acme/projects/web/shelves', { headers: { cookie: 'as=ann' } });
  expect({ status, headers }).toMatchObject({
    status: 202, headers: { location: '/v1/api/x', link: '</v1/api/orgs/acme/projects/web/operations/op_1>; rel="monitor"', 'retry-after': '1', 'set-cookie': ['a=b', 'c=d'] },
  });
});

test.each([
  ['no HTTP at all', 'nonsense\r\n\r\n'], ['a header too long', `GET /v1/api/shelf HTTP/1.1\r\nHost: x\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`],
  ['no Host', 'GET /v1/api/shelf HTTP/1.1\r\nConnection: close\r\n\r\n'], ['a bad length', 'POST /v1/api/shelf HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n'],
])('%s is 400 in the envelope', async (_, bytes) => {
  const [head = '', body = ''] = (await exchange(bytes)).split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1.1 400 /);
  expect(head.toLowerCase()).toContain('content-type: application/json; charset=utf-8');
  expect(JSON.parse(body)).toMatchObject({ ok: false, code: 'validation_error', message: expect.any(String), requestId: expect.stringMatching(/^req_/) });
});

test('an expectation we do not know is no reason for a tenth status', async () => {
  expect(await exchange('GET /v1/api/shelf HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /);
});

function exchange(bytes: string): Promise<string> {
  return new Promise((done, fail) => {
    let text = '';
    const socket = connect(frame.port, '127.0.0.1', () => socket.write(bytes)).on('error', fail);
    socket.on('data', (chunk: Buffer) => (text += chunk.toString())).on('end', () => socket.end()).on('close', () => done(text));
  });
}
