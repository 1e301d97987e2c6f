import { z } from 'zod';
import { operationsOf } from '../../src/http/operation';
import { withFrame, type FrameTestDeps } from '../support/frame';

const { open, self, scoped } = operationsOf<FrameTestDeps>();
const common = { summary: '', tag: '', answer: z.object({}), handle: async () => ({}) } as const;
const frame = withFrame(() => [
  self({ ...common, id: 'writeShelf', method: 'post', path: '/api/shelf' }),
  self({ ...common, id: 'readShelf', method: 'get', path: '/api/shelf' }),
  open({ ...common, id: 'signIn', method: 'post', path: '/api/auth/sign-in' }),
  scoped('mail:send')({ ...common, id: 'sendShelf', method: 'post', path: '/api/send' }),
]);

const host = 'console.holdfast.test';
const sites = [undefined, '', 'same-origin', 'none', 'same-site', 'cross-site', 'nonsense'];
const origins = [undefined, '', `https://${host}`, `http://${host}`, 'https://evil.test', `https://${host}.evil.test`, `https://${host}:8443`, `https://evil.test/${host}`, 'null', host];

/** Go 1.25, net/http CrossOriginProtection.Check, for an unsafe method. */
function goAllows(site: string | undefined, origin: string | undefined): boolean {
  if (site === 'same-origin' || site === 'none') return true;
  if (site !== undefined && site !== '') return false;
  if (origin === undefined || origin === '') return true;
  return URL.canParse(origin) && new URL(origin).host === host;
}

const table = sites.flatMap((site) => origins.map((origin) => ({ site, origin, allowed: goAllows(site, origin) })));

test.each(table)('a write with Sec-Fetch-Site $site and Origin $origin is let in: $allowed', async ({ site, origin, allowed }) => {
  const headers = { host, ...(site === undefined ? {} : { 'sec-fetch-site': site }), ...(origin === undefined ? {} : { origin }) };
  const expected = allowed ? { status: 200 } : { status: 403, body: { ok: false, code: 'csrf_rejected' } };
  expect(await frame.ask('POST', '/v1/api/shelf', { headers: { ...headers, cookie: 'as=ann' } })).toMatchObject(expected);
  expect(await frame.ask('POST', '/v1/api/auth/sign-in', { headers })).toMatchObject(expected);
});

test('reading is never refused for where it comes from, and a key is not a cookie', async () => {
  const headers = { host, 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' };
  expect((await frame.ask('GET', '/v1/api/shelf', { headers: { ...headers, cookie: 'as=ann' } })).status).toBe(200);
  expect((await frame.ask('POST', '/v1/api/send', { headers: { ...headers, authorization: 'Bearer mail:send' } })).status).toBe(200);
});
