import { z } from 'zod';
import { operationsOf } from '../../src/http/operation';
import { createLimiter } from '../../src/http/rate-limit';
import { withFrame, type FrameTestDeps } from '../support/frame';

const { open, self } = operationsOf<FrameTestDeps>();
const common = { summary: '', tag: '', answer: z.object({}), handle: async () => ({}) } as const;
const frame = withFrame(() => [
  self({ ...common, id: 'readShelf', method: 'get', path: '/api/shelf' }),
  open({ ...common, id: 'signIn', method: 'post', path: '/api/sign-in', body: z.strictObject({ email: z.string() }), limits: ({ ip, body }) => [
    { rule: { name: 'sign-in-address', limit: 8, periodSeconds: 60 }, key: ip }, { rule: { name: 'sign-in-account', limit: 3, periodSeconds: 60 }, key: body.email },
  ] }),
], { managementRate: { name: 'management', limit: 6, periodSeconds: 300 } });

const read = (as: string) => frame.ask('GET', '/v1/api/shelf', { headers: { cookie: `as=${as}` } });
const signIn = (email: string) => frame.ask('POST', '/v1/api/sign-in', { json: { email } });

test('limited routes say what the limit is and what is left', async () => {
  expect((await read('ann')).headers).toMatchObject({ 'ratelimit-policy': '"management";q=6;w=300', ratelimit: '"management";r=5;t=50' });
  expect((await read('ann')).headers['ratelimit']).toMatch(/^"management";r=4;t=(99|100)$/);
});

test('beyond the limit it is 429 with Retry-After, for that caller alone', async () => {
  for (let i = 0; i < 6; i++) expect((await read('bob')).status).toBe(200);
  const { status, headers, body } = await read('bob');
  expect({ status, body }).toMatchObject({ status: 429, body: { ok: false, code: 'rate_limited', limit: 6, resetAt: expect.stringMatching(/^\d{4}-.*Z$/) } });
  expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  expect(Number(headers['retry-after'])).toBeLessThanOrEqual(50);
  expect(headers).toMatchObject({ 'ratelimit-policy': '"management";q=6;w=300', ratelimit: expect.stringMatching(/^"management";r=0;t=\d+$/) });
  expect((await read('cleo')).status).toBe(200);
});

test('an operation of several limits is held by the tightest', async () => {
  for (let i = 0; i < 3; i++) expect((await signIn('a@x.test')).headers['ratelimit']).toContain(`"sign-in-account";r=${2 - i}`);
  expect(await signIn('a@x.test')).toMatchObject({ status: 429 });
  expect((await signIn('b@x.test')).status).toBe(200);
});

test('requests at once through several processes are counted exactly', async () => {
  const rule = { name: 'exact', limit: 10, periodSeconds: 3_600 };
  const [first, second, third] = [createLimiter(frame.database), createLimiter(frame.database), createLimiter(frame.database)];
  const outcomes = await Promise.allSettled(Array.from({ length: 60 }, (_, index) => (index % 3 === 0 ? first : index % 3 === 1 ? second : third).take(rule, 'subject')));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
});

test('a burst beyond the steady rate is let through once', async () => {
  const rule = { name: 'burst', limit: 10, periodSeconds: 36_000, burst: 30 };
  const limiter = createLimiter(frame.database);
  for (let i = 0; i < 30; i++) await limiter.take(rule, 'subject');
  await expect(limiter.take(rule, 'subject')).rejects.toMatchObject({ code: 'rate_limited' });
});
