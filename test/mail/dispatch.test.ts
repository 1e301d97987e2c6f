import { createMetrics } from '../../src/core/metrics';
import { createListener, type Listener } from '../../src/db/listen';
import { AppError } from '../../src/core/errors';
import { createPendingMail } from '../../src/mail/pending';
import { isFlood, startMailDeliveryRelay } from '../../src/mail/relay';
import { createMailStarts } from '../../src/mail/starts';
import { silent } from '../support/accepted-work';
import { withDatabase } from '../support/database';
import { acceptMessage, createMailTenant, messageOf, type MailTenant } from '../support/mail-delivery';
import { createTenant } from '../support/tenant';
import { until } from '../support/until';

const test_ = withDatabase();
const db = () => test_.database;
let tenant: MailTenant;
let listener: Listener;
beforeAll(async () => {
  tenant = await createMailTenant(db(), await createTenant(db(), 'secret'));
  listener = createListener({ url: test_.url, process: 'test', log: silent });
});
afterAll(() => listener.close());
beforeEach(() => db().pool.query('update mail_message set dispatched_at = now() where dispatched_at is null'));
const metrics = createMetrics('test');

test('an API process starts so many a second; after five failures it leaves all to the relay, and tries one every two seconds', async () => {
  let now = 0;
  let down = true;
  const tried: string[] = [];
  const starts = createMailStarts({ db: db(), log: silent, metrics, perSecond: 5, nowMs: () => now, start: async ({ id }) => {
    tried.push(id);
    if (down) throw new Error('no Temporal');
  } });
  const go = async (count: number): Promise<boolean[]> => {
    const claims: boolean[] = [];
    for (let i = 0; i < count; i++) {
      const id = await acceptMessage(db(), tenant);
      claims.push(starts.claim());
      starts.accepted({ id, orgId: 'org_x', projectId: 'prj_x' }, claims.at(-1) ?? false);
      await starts.drain();
    }
    return claims;
  };
  expect(await go(6)).toEqual([true, true, true, true, true, false]);
  now += 1_000;
  expect(await go(1)).toEqual([false]);
  now += 1_001;
  expect(await go(2)).toEqual([true, false]);
  down = false;
  now += 2_001;
  expect(await go(3)).toEqual([true, true, true]);
  expect(tried).toHaveLength(9);
  const last = tried.at(-1) ?? '';
  expect(await messageOf(db(), last)).toMatchObject({ dispatched_at: expect.any(Date), workflow_id: `mail-deliver/${last}` });
});

test('in a flood an API process starts nothing by itself: what comes together goes in batches', () => {
  let now = 0;
  const starts = createMailStarts({ db: db(), log: silent, metrics, perSecond: 5, nowMs: () => now, start: async () => undefined });
  const second = (count: number) => Array.from({ length: count }, () => {
    now += 1_000 / count;
    return starts.claim();
  }).filter(Boolean).length;
  expect(second(90)).toBeGreaterThanOrEqual(5);
  expect(second(400)).toBeLessThanOrEqual(5);
  expect([second(400), second(90)]).toEqual([0, 0]);
  expect(second(10)).toBeGreaterThanOrEqual(1);
  expect(second(10)).toBeGreaterThanOrEqual(5);
});

type Fake = { singles: string[]; batches: string[][]; failing: boolean; taken: boolean };
function relay(fake: Fake, { startsPerSecond = 3, batchSize = 4 } = {}) {
  return startMailDeliveryRelay({
    db: db(), listener, log: silent, metrics, startsPerSecond, batchSize,
    startDelivery: async ({ id }) => {
      if (fake.failing) throw new Error('no Temporal');
      fake.singles.push(id);
    },
    startBatch: async (ids) => {
      if (fake.failing) throw new Error('no Temporal');
      if (fake.taken) return 'taken';
      fake.batches.push([...ids]);
      return 'started';
    },
  });
}
const waiting = async () => Number((await db().pool.query('select count(*) as n from mail_message where dispatched_at is null')).rows[0].n);

test('the relay starts one run each while there are tokens, batches when more waits than those, and never one twice', async () => {
  const few = [await acceptMessage(db(), tenant), await acceptMessage(db(), tenant)];
  const fake: Fake = { singles: [], batches: [], failing: false, taken: false };
  const running = relay(fake);
  await until(async () => await waiting() === 0);
  expect([fake.singles.toSorted(), fake.batches]).toEqual([few.toSorted(), []]);
  const many = await Promise.all(Array.from({ length: 23 }, () => acceptMessage(db(), tenant)));
  await until(async () => await waiting() === 0);
  await running.stop();
  const started = [...fake.singles.slice(2), ...fake.batches.flat()];
  expect(started.toSorted()).toEqual(many.toSorted());
  expect(fake.batches.length).toBeGreaterThan(0);
  expect(Math.max(...fake.batches.map((ids) => ids.length))).toBeLessThanOrEqual(4);
  const [batch = []] = fake.batches;
  expect(await messageOf(db(), batch[1] ?? '')).toMatchObject({ workflow_id: `mail-batch/${batch[0]}` });
});

test.each([
  ['few go one by one', 9, { tokens: 20, before: false }, false], ['many go at once while batches are full', 1_000, { tokens: 20, before: true }, false],
  ['many more than tokens gather', 10, { tokens: 1, before: false }, true], ['and go on gathering while a pause nearly fills a batch', 33, { tokens: 5, before: true }, true],
  ['not when it does not', 32, { tokens: 5, before: true }, false], ['nor when each can have its own run', 40, { tokens: 40, before: true }, false],
])('%s', (_, claimed, given, flood) => {
  expect(isFlood(claimed, { batchSize: 50, ...given })).toBe(flood);
});

test('while Temporal is away everything waits, and goes when it is back; a batch that was started before is left to runs of its own', async () => {
  const fake: Fake = { singles: [], batches: [], failing: true, taken: false };
  const ids = await Promise.all(Array.from({ length: 9 }, () => acceptMessage(db(), tenant)));
  const running = relay(fake, { startsPerSecond: 2, batchSize: 5 });
  await until(async () => (await metrics.registry.getSingleMetricAsString('operation_starts')).includes('by="mail-relay",result="failed"'));
  expect(await waiting()).toBe(9);
  Object.assign(fake, { failing: false, taken: true });
  await until(async () => await waiting() === 0);
  await running.stop();
  expect(fake.singles.toSorted()).toEqual(ids.toSorted());
});

test('new mail is refused while too much waits, or the oldest for too long; it is counted every five seconds', async () => {
  await acceptMessage(db(), tenant);
  const refusalOf = (limits: { countMax: number; ageSecondsMax: number }) => createPendingMail(db(), limits).requireRoom().then(() => null, (error: unknown) => (error instanceof AppError ? [error.code, error.retryAfterSeconds] : error));
  expect(await refusalOf({ countMax: 1, ageSecondsMax: 600 })).toBeNull();
  await acceptMessage(db(), tenant);
  expect(await refusalOf({ countMax: 1, ageSecondsMax: 600 })).toEqual(['too_many_pending', 30]);
  await db().pool.query(`update mail_message set created_at = now() - interval '11 minutes' where dispatched_at is null`);
  expect(await refusalOf({ countMax: 100, ageSecondsMax: 600 })).toEqual(['too_many_pending', 30]);
});
