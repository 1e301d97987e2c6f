import fc from 'fast-check';
import { afterCheck, nextCheckDelayMs, windowMs, type DomainFacts, type Verdict } from '../../src/mail/rules/domain-checks';

const minute = 60_000;
const hour = 60 * minute;
const start = new Date('2026-01-01T00:00:00.000Z');
const at = (ms: number) => new Date(start.getTime() + ms);
const fresh: DomainFacts = { status: 'pending', failureReason: null, misses: 0, missedAt: null, verificationDeadline: at(windowMs), degradedAt: null };

/** A domain lives through checks at these times; `degradedAt` is written as the store writes it. */
function live(domain: DomainFacts, checks: readonly { ms: number; verdict: Verdict; asked?: boolean }[]): DomainFacts {
  return checks.reduce((now, { ms, verdict, asked = false }) => {
    const change = afterCheck(now, verdict, { now: at(ms), asked });
    return { ...now, ...change, degradedAt: change.status === 'degraded' ? now.degradedAt ?? at(ms) : null };
  }, domain);
}

test('pending: checks at 0, 15 s, 30 s, 1, 2, 5, 10, 15, 30 min, 1 h of the window, then hourly', () => {
  const times = [0];
  for (let ms = 0; times.length < 13;) {
    ms += nextCheckDelayMs(fresh, 'miss', { now: at(ms), random: 0.5, rotating: false }) ?? NaN;
    times.push(ms);
  }
  expect(times).toEqual([0, 15_000, 30_000, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 4 * hour]);
});

test('pending: no rung is asked twice, and each within a tenth of its time', () => {
  const rungs = [0, 15_000, 30_000, ...[1, 2, 5, 10, 15, 30, 60].map((minutes) => minutes * minute)];
  fc.assert(fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 9, maxLength: 9 }), (randoms) => {
    let ms = 0;
    randoms.forEach((random, i) => {
      ms += nextCheckDelayMs(fresh, 'miss', { now: at(ms), random, rotating: false }) ?? NaN;
      expect(Math.abs(ms - (rungs[i + 1] ?? 0))).toBeLessThanOrEqual((rungs[i + 1] ?? 0) * 0.1 + 1);
    });
  }));
});

test('verified: 24 h ± 2 h, hourly while a miss is counted or a key waits; degraded: hourly; unknown: 15 min; failed and suspended: none', () => {
  const next = (domain: Partial<DomainFacts>, verdict: Verdict, random: number, rotating = false) => nextCheckDelayMs({ ...fresh, ...domain }, verdict, { now: start, random, rotating });
  expect([0, 1].map((random) => next({ status: 'verified' }, 'ok', random))).toEqual([22 * hour, 26 * hour]);
  expect([next({ status: 'verified', misses: 1 }, 'miss', 0), next({ status: 'verified' }, 'ok', 0, true), next({ status: 'degraded' }, 'miss', 0)]).toEqual([hour, hour, hour]);
  for (const status of ['pending', 'verified', 'degraded'] as const) expect(next({ status }, 'unknown', 0.3)).toBe(15 * minute);
  for (const status of ['failed', 'suspended'] as const) expect(next({ status }, 'unknown', 0.3)).toBeNull();
});

test('a pending domain fails by a check after its window, not before, and never by silence', () => {
  expect(live(fresh, [{ ms: windowMs - 1, verdict: 'miss' }]).status).toBe('pending');
  expect(live(fresh, [{ ms: windowMs, verdict: 'miss' }])).toMatchObject({ status: 'failed', failureReason: 'window_expired' });
  expect(live(fresh, [{ ms: 2 * windowMs, verdict: 'unknown' }]).status).toBe('pending');
  expect(live(fresh, [{ ms: 2 * windowMs, verdict: 'ok' }]).status).toBe('verified');
});

const verified = live(fresh, [{ ms: 0, verdict: 'ok' }]);

test('three misses in a row, each an hour after the last that counted, degrade; 72 h later a miss fails, a find restores', () => {
  const misses = [hour, 1.5 * hour, 2 * hour, 3 * hour].map((ms) => ({ ms, verdict: 'miss' as const }));
  expect(live(verified, misses.slice(0, 3))).toMatchObject({ status: 'verified', misses: 2 });
  const degraded = live(verified, misses);
  expect(degraded).toMatchObject({ status: 'degraded', misses: 3, degradedAt: at(3 * hour) });
  expect(live(degraded, [{ ms: 3 * hour + windowMs - 1, verdict: 'miss' }]).status).toBe('degraded');
  expect(live(degraded, [{ ms: 3 * hour + windowMs, verdict: 'unknown' }]).status).toBe('degraded');
  expect(live(degraded, [{ ms: 3 * hour + windowMs, verdict: 'miss' }])).toMatchObject({ status: 'failed', failureReason: 'records_lost', degradedAt: null });
  expect(live(degraded, [{ ms: 3 * hour + windowMs, verdict: 'ok' }])).toMatchObject({ status: 'verified', misses: 0, degradedAt: null });
  expect(live(verified, [...misses.slice(0, 3), { ms: 2.5 * hour, verdict: 'ok' }, ...misses.slice(3)])).toMatchObject({ status: 'verified', misses: 1 });
});

const checks = fc.array(fc.record({ ms: fc.integer({ min: 0, max: 30 * 24 * hour }), verdict: fc.constantFrom<Verdict>('ok', 'miss', 'unknown') }), { maxLength: 40 })
  .map((list) => list.toSorted((a, b) => a.ms - b.ms));

test('silence of DNS changes nothing, whenever it comes', () => {
  fc.assert(fc.property(checks, (list) => {
    expect(live(fresh, list)).toEqual(live(fresh, list.filter(({ verdict }) => verdict !== 'unknown')));
  }));
});

test('whatever customers ask, it takes nothing away, and the count of misses is as without them', () => {
  fc.assert(fc.property(checks, checks, (list, asks) => {
    const asked = asks.filter(({ verdict }) => verdict !== 'ok').map((ask) => ({ ...ask, asked: true }));
    expect(live(fresh, [...list, ...asked].toSorted((a, b) => a.ms - b.ms))).toEqual(live(fresh, list));
  }));
});

test('a verified domain never fails at once: it is degraded for 72 hours first', () => {
  fc.assert(fc.property(checks, (list) => {
    let domain = verified;
    for (const check of list) {
      const next = live(domain, [check]);
      if (domain.status === 'verified') expect(['verified', 'degraded']).toContain(next.status);
      if (next.status === 'failed' && domain.status === 'degraded') expect(check.ms - (domain.degradedAt?.getTime() ?? 0) + start.getTime()).toBeGreaterThanOrEqual(windowMs);
      domain = next;
    }
  }));
});
