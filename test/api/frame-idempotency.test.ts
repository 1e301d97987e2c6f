import { EventEmitter, once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { AppError } from '../../src/core/errors';
import { execute, rows } from '../../src/db/client';
import { findKeptAnswer, transactOnce } from '../../src/http/idempotency';
import { operationsOf, Reply } from '../../src/http/operation';
import { withFrame, type FrameTestDeps } from '../support/frame';

const { open, self, scoped } = operationsOf<FrameTestDeps>();
const common = { summary: '', tag: '', idempotent: true } as const;
let refuse: (() => Error) | null = null;
let during: (() => Promise<unknown>) | null = null;
let number = 0;

const frame = withFrame(() => [
  self({
    ...common, id: 'buildShelf', method: 'post', path: '/api/shelves', body: z.strictObject({ name: z.string().trim(), fail: z.boolean().optional() }), secrets: ['key'],
    answer: z.object({ shelf: z.object({ id: z.number(), name: z.string() }), key: z.string().nullable() }),
    handle: async ({ body, caller, transact }) => transact(async (tx) => {
      await execute(tx, `insert into rate_limit (key, arrival_at) values ($1, now())`, `shelf|${caller.displayName}|${body.name}|${number}`);
      await during?.();
      if (refuse) throw refuse();
      return new Reply({ shelf: { id: ++number, name: body.name }, key: 'hunter2' }, { headers: { Location: '/shelf' }, cookies: ['secret=cookie'] });
    }),
  }),
  scoped('mail:send')({ ...common, id: 'sendShelf', method: 'post', path: '/api/send', status: 202, answer: z.object({ sent: z.number() }), handle: async ({ transact }) => transact(async () => ({ sent: ++number })) }),
  open({ ...common, id: 'lendShelf', method: 'post', path: '/api/lend', answer: z.object({ lent: z.number() }), handle: async ({ transact }) => transact(async () => ({ lent: ++number })) }),
]);

beforeEach(() => {
  refuse = null;
  during = null;
});

const build = (key: string, name: string, as = 'ann') => frame.ask('POST', '/v1/api/shelves', { headers: { cookie: `as=${as}`, 'idempotency-key': key }, json: { name } });
const keptKeys = () => rows<{ key: string; body: unknown; headers: unknown }>(frame.database.prisma, 'select key, body, headers from idempotency_key');

test('20 equal requests at once have one effect and one answer', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => build('twenty', 'oak')));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
  expect(new Set(answers.map(({ body }) => body.shelf.id)).size).toBe(1);
  const first = answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined);
  expect(first.map(({ body }) => body.key)).toEqual(['hunter2']);
  expect(answers.filter(({ headers, body }) => headers['idempotency-replayed'] === 'true' && body.key === null)).toHaveLength(19);
  expect(await rows(frame.database.prisma, `select 1 from rate_limit where key like 'shelf|ann|oak|%'`)).toHaveLength(1);
});

test('a replay repeats status and headers, never a secret or a cookie; nothing secret is kept', async () => {
  const first = await build('replay', 'elm');
  const again = await build('replay', 'elm');
  expect(first.headers['set-cookie']).toEqual(['secret=cookie']);
  expect(again).toMatchObject({ status: 200, body: { ...first.body, key: null }, headers: { location: '/shelf', 'idempotency-replayed': 'true' } });
  expect(again.headers['set-cookie']).toBeUndefined();
  expect(JSON.stringify(await keptKeys())).not.toMatch(/hunter2|secret=cookie/);
});

test('the same key with another body is 400, with the same meaning in other words it is the same request', async () => {
  await build('reused', 'ash');
  expect(await build('reused', 'fir')).toMatchObject({ status: 400, body: { code: 'idempotency_key_reused' } });
  expect((await build('reused', ' ash ')).headers['idempotency-replayed']).toBe('true');
  const reordered = await frame.ask('POST', '/v1/api/shelves', { headers: { cookie: 'as=ann', 'idempotency-key': 'reused', 'content-type': 'application/json' }, raw: '{ "name" : "ash" }' });
  expect(reordered.headers['idempotency-replayed']).toBe('true');
});

test('a key belongs to who sent it and to one operation', async () => {
  const ann = await build('mine', 'yew');
  const bob = await build('mine', 'yew', 'bob');
  expect(bob.body.shelf.id).not.toBe(ann.body.shelf.id);
  const sent = await frame.ask('POST', '/v1/api/send', { headers: { authorization: 'Bearer mail:send', 'idempotency-key': 'mine' } });
  expect(sent.headers['idempotency-replayed']).toBeUndefined();
  expect(await frame.ask('POST', '/v1/api/send', { headers: { authorization: 'Bearer mail:send', 'idempotency-key': 'mine' } })).toMatchObject({ status: 202, body: sent.body, headers: { 'idempotency-replayed': 'true', 'retry-after': '1' } });
});

test.each([
  ['a refusal', () => new AppError('conflict', 'No.'), 400], ['a limit', () => new AppError('rate_limited', 'Later.'), 429], ['a fault of ours', () => new Error('broken'), 500],
])('%s leaves no row: the key may be used again', async (_, error, status) => {
  refuse = error;
  const key = `refused-${status}`;
  expect((await build(key, 'box')).status).toBe(status);
  expect((await keptKeys()).map((row) => row.key)).not.toContain(key);
  refuse = null;
  expect(await build(key, 'another body')).toMatchObject({ status: 200 });
});

test.each([['empty', ''], ['too long', 'k'.repeat(256)], ['not ASCII', 'k\u00e9y']])('a key that is %s is 400', async (_, key) => {
  expect(await build(key, 'x')).toMatchObject({ status: 400, body: { code: 'validation_error', issues: [{ path: 'Idempotency-Key' }] } });
});

test('a key of 255 characters is kept whole', async () => {
  await build('k'.repeat(255), 'long');
  expect(await build('k'.repeat(255), 'long')).toMatchObject({ headers: { 'idempotency-replayed': 'true' } });
});

test('where nobody in particular calls, no key is kept', async () => {
  const lend = () => frame.ask('POST', '/v1/api/lend', { headers: { 'idempotency-key': 'open' } });
  const [first, second] = [await lend(), await lend()];
  expect(second.body.lent).toBe(first.body.lent + 1);
});

test('in another process a second caller waits for the first and gets its answer', async () => {
  const scope = { principal: 'usr_x', operation: 'buildShelf', key: 'two processes', fingerprint: 'f' };
  const keep = (result: { n: number }) => ({ status: 200, headers: {}, body: { n: result.n } });
  const moments = new EventEmitter();
  const begun = once(moments, 'begun');
  const first = transactOnce(frame.database, scope, async () => {
    moments.emit('begun');
    await once(moments, 'finished');
    return { n: 1 };
  }, keep);
  await begun;
  const second = transactOnce(frame.database, scope, async () => ({ n: 2 }), keep);
  await waitingForALock();
  moments.emit('finished');
  expect(await first).toEqual({ result: { n: 1 } });
  expect(await second).toEqual({ replayed: { status: 200, headers: {}, body: { n: 1 } } });
  expect(await findKeptAnswer(frame.database.prisma, scope)).toMatchObject({ body: { n: 1 } });
});

test('who has waited five seconds for the first is told to come again, whichever process the first is in', async () => {
  await build('mine already', 'oak');
  const elsewhere = await frame.database.pool.connect();
  await elsewhere.query('begin');
  await elsewhere.query(`insert into idempotency_key (principal, operation, key, fingerprint)
    select principal, operation, 'elsewhere', fingerprint from idempotency_key where key = 'mine already'`);
  const moments = new EventEmitter();
  const begun = once(moments, 'begun');
  during = async () => {
    moments.emit('begun');
    await once(moments, 'finished');
  };
  const first = build('here', 'oak');
  await begun;
  const since = performance.now();
  const waited = await Promise.all([build('here', 'oak'), build('elsewhere', 'oak')]);
  const waitedMs = performance.now() - since;
  during = null;
  moments.emit('finished');
  await elsewhere.query('rollback');
  elsewhere.release();
  const late = { status: 429, headers: { 'retry-after': '1' }, body: { code: 'idempotency_in_progress' } };
  expect(waited).toMatchObject([late, late]);
  expect(waitedMs).toBeGreaterThan(4_900);
  expect(await build('here', 'oak')).toMatchObject({ status: 200, body: { shelf: (await first).body.shelf }, headers: { 'idempotency-replayed': 'true' } });
  const again = await build('elsewhere', 'oak');
  expect([again.status, again.headers['idempotency-replayed']]).toEqual([200, undefined]);
});

async function waitingForALock(): Promise<void> {
  for (;;) {
    const waiting = await frame.database.pool.query(`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`);
    if (waiting.rowCount) return;
    await pause(5);
  }
}
