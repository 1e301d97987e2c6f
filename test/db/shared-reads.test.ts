import { shareReads } from '../../src/db/shared-reads';

/** Reads that end when the test says so. */
function reads() {
  const running: { at: number; end: (value: string) => void; fail: (error: Error) => void }[] = [];
  let clock = 0;
  const read = shareReads((key: string) => key, () => new Promise<{ at: number; value: string }>((resolve, reject) => {
    const at = clock;
    running.push({ at, end: (value) => resolve({ at, value }), fail: reject });
  }));
  return { running, read, tick: () => { clock += 1; return clock; } };
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('each answer comes from a read that began after it was asked for; those that wait share one', async () => {
  const { running, read, tick } = reads();
  const first = read('a');
  const askedAt = tick();
  const others = [read('a'), read('a'), read('a')];
  expect(running).toHaveLength(1);
  running[0]?.end('old');
  expect((await first).value).toBe('old');
  await settled();
  expect(running).toHaveLength(2);
  running[1]?.end('new');
  for (const { at, value } of await Promise.all(others)) expect([at >= askedAt, value]).toEqual([true, 'new']);
  await settled();
  void read('a');
  expect(running).toHaveLength(3);
});

test('a read that fails fails who asked for it, not who waits for the next; another key waits for nobody', async () => {
  const { running, read } = reads();
  const first = read('a');
  const second = read('a');
  void read('b');
  expect(running).toHaveLength(2);
  running[0]?.fail(new Error('broken'));
  await expect(first).rejects.toThrow('broken');
  await settled();
  running[2]?.end('fine');
  expect((await second).value).toBe('fine');
});
