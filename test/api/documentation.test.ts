import { createHash } from 'node:crypto';
import express from 'express';
import { z } from 'zod';
import { documentation } from '../../src/http/docs';
import { operationsOf } from '../../src/http/operation';
import { createApp } from '../../src/http/server';
import { withFrame } from '../support/frame';
import { send, serveApp } from '../support/http';

const { open, project } = operationsOf<unknown>();
const operations = [
  project('postgres:create')({
    id: 'buildShelf', method: 'post', path: '/shelves/:shelfId', summary: 'Builds <b>it</b>', description: 'With `care` & "love".', tag: 'Shelves', aliases: ['/shelves/:shelfId'],
    body: z.strictObject({ wood: z.enum(['oak', 'elm']), note: z.string().optional() }), answer: z.object({ shelf: z.object({ id: z.string() }).meta({ id: 'Shelf' }) }), handle: async () => ({ shelf: { id: 'x' } }),
  }),
  open({ id: 'lookAtShelf', method: 'get', path: '/api/shelf', summary: 'Looks', tag: 'Other', answer: z.object({}), handle: async () => ({}) }),
];
const frame = withFrame(() => []);
let served: Awaited<ReturnType<typeof serveApp>>;
beforeAll(async () => {
  served = await serveApp(createApp(frame.deps, [], documentation(operations)));
});
afterAll(() => served.stop());
const get = (path: string) => send(served.port, 'GET', path);

test.each(['/docs', '/v1/docs'])('%s shows every operation on one page', async (path) => {
  const { status, headers, text } = await get(path);
  expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'text/html; charset=utf-8' });
  for (const part of ['/api/orgs/{orgSlug}/projects/{projectSlug}/shelves/{shelfId}', 'id="buildShelf"', 'href="#buildShelf"', 'id="schema-Shelf"', 'postgres:create', '<code>oak</code>', '/api/shelf']) expect(text).toContain(part);
  expect(text).toContain('Builds &#60;b&#62;it&#60;/b&#62;');
  expect(text).toContain('With <code>care</code> &#38; &#34;love&#34;.');
});

test('the page runs nothing and loads nothing, and its policy says so', async () => {
  const { headers, text } = await get('/docs');
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(text) ?? [];
  expect(headers['content-security-policy']).toBe(`default-src 'none'; style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`);
  expect(text).not.toMatch(/<script|<iframe|<img|@import|url\(|\son\w+=|\sstyle=|\ssrc=/i);
  const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link]) => link);
  expect(links.filter((link) => !/^(#|data:,$|\/v1\/openapi\.json$)/.test(link ?? ''))).toEqual([]);
  const ids = new Set([...text.matchAll(/id="([^"]+)"/g)].map(([, id]) => id));
  expect(links.filter((link) => link?.startsWith('#') && !ids.has(link.slice(1)))).toEqual([]);
});

test.each(['/v1/openapi.json', '/openapi.json'])('%s is the document of the list', async (path) => {
  const { headers, body } = await get(path);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(body).toMatchObject({ openapi: '3.1.1', paths: { '/shelves/{shelfId}': { post: { 'x-alias-of': '/api/orgs/{orgSlug}/projects/{projectSlug}/shelves/{shelfId}' } } } });
});

test.each(['/docs', '/v1/openapi.json'])('%s answers nothing but GET and HEAD', async (path) => {
  expect(await send(served.port, 'HEAD', path)).toMatchObject({ status: 200, text: '' });
  expect(await send(served.port, 'POST', path)).toMatchObject({ status: 404, headers: { allow: 'GET, HEAD' }, body: { code: 'route_not_found' } });
});

test('the pages answer without a database', async () => {
  const app = express();
  documentation(operations)(app);
  const alone = await serveApp(app);
  expect((await send(alone.port, 'GET', '/docs')).status).toBe(200);
  await alone.stop();
});
