import fc from 'fast-check';
import { isExpired, nextCheckDelayMs, shownZoneStatus, statusAfterCheck, zoneStatuses, zoneTransitions, type CheckFacts, type LadderFacts } from '../../src/dns/state';

const minute = 60_000;
const hour = 60 * minute;
const now = new Date('2026-11-21T10:00:00.000Z');
const before = (ms: number): Date => new Date(now.getTime() - ms);
const check = (facts: Partial<CheckFacts>): string => statusAfterCheck({ status: 'active', result: 'verified', degrading: false, claimedElsewhere: false, misses: 0, firstMissAt: null, now, ...facts });
const delay = (facts: Partial<LadderFacts>): number => nextCheckDelayMs({ status: 'pending', result: 'not_verified', attempt: 1, startedAt: now, failures: 1, inconclusives: 0, now, random: 0.5, ...facts });

test('deleted hides suspended, suspended hides the stored status', () => {
  expect(shownZoneStatus({ status: 'active', suspendedAt: now, deletedAt: now })).toBe('deleted');
  expect(shownZoneStatus({ status: 'active', suspendedAt: now, deletedAt: null })).toBe('suspended');
  expect(shownZoneStatus({ status: 'moved', suspendedAt: null, deletedAt: null })).toBe('moved');
});

test('a proof activates, with a problem it degrades', () => {
  expect(check({ status: 'pending' })).toBe('active');
  expect(check({ status: 'moved', degrading: true })).toBe('degraded');
  expect(check({ status: 'degraded' })).toBe('active');
});

test('a zone moves after three misses over an hour, or at once when another claim is proven', () => {
  const miss = { result: 'not_verified', degrading: true } as const;
  expect(check({ ...miss, misses: 2, firstMissAt: before(2 * hour) })).toBe('degraded');
  expect(check({ ...miss, misses: 3, firstMissAt: before(hour - 1) })).toBe('degraded');
  expect(check({ ...miss, misses: 3, firstMissAt: before(hour) })).toBe('moved');
  expect(check({ ...miss, misses: 1, firstMissAt: now, claimedElsewhere: true })).toBe('moved');
});

test('while another claim holds the name a proof changes nothing', () => {
  expect(check({ status: 'pending', claimedElsewhere: true })).toBe('pending');
  expect(check({ status: 'active', claimedElsewhere: true })).toBe('active');
});

test('an inconclusive check never changes the status, and every change is one of the table', () => {
  const facts = fc.record({
    status: fc.constantFrom(...zoneStatuses), result: fc.constantFrom('verified' as const, 'not_verified' as const, 'inconclusive' as const), degrading: fc.boolean(), claimedElsewhere: fc.boolean(),
    misses: fc.nat(10), firstMissAt: fc.option(fc.nat(10 * hour).map(before)), now: fc.constant(now),
  });
  fc.assert(fc.property(facts, (given) => {
    const after = statusAfterCheck(given);
    if (given.result === 'inconclusive') expect(after).toBe(given.status);
    else if (after !== given.status) expect(zoneTransitions[given.status]).toContain(after);
  }));
});

test('a pending zone is checked after 1, 2, 5, 10, 20, 30 minutes, hourly for a day, then every six hours', () => {
  expect([1, 2, 3, 4, 5, 6, 7].map((attempt) => delay({ attempt }) / minute)).toEqual([1, 2, 5, 10, 20, 30, 60]);
  expect(delay({ attempt: 20, startedAt: before(24 * hour - 1) })).toBe(hour);
  expect(delay({ attempt: 30, startedAt: before(24 * hour) })).toBe(6 * hour);
});

test('a live zone is checked every 12 hours, a failing one three times in a quarter, then hourly', () => {
  expect(delay({ status: 'active', result: 'verified', failures: 0, random: 0 })).toBe(10.8 * hour);
  expect(delay({ status: 'active', result: 'verified', failures: 0, random: 1 })).toBe(13.2 * hour);
  expect([1, 2, 3, 4].map((failures) => delay({ status: 'degraded', failures }) / minute)).toEqual([15, 15, 15, 60]);
  expect(delay({ status: 'degraded', result: 'verified', failures: 1 })).toBe(15 * minute);
});

test('after an inconclusive check 5 minutes, three times', () => {
  const inconclusive = { status: 'active', result: 'inconclusive', failures: 0, random: 0.5 } as const;
  expect([1, 2, 3].map((inconclusives) => delay({ ...inconclusive, inconclusives }) / minute)).toEqual([5, 5, 5]);
  expect(delay({ ...inconclusive, inconclusives: 4 })).toBe(12 * hour);
  expect(delay({ ...inconclusive, status: 'pending', inconclusives: 4, attempt: 5 })).toBe(20 * minute);
});

test('a pending zone ends only when old and with a recent no', () => {
  const day = 24 * hour;
  const zone = { pendingSince: before(28 * day), lastConclusiveNoAt: before(7 * day) };
  expect(isExpired(zone, 28, now)).toBe(true);
  expect(isExpired({ ...zone, pendingSince: before(28 * day - 1) }, 28, now)).toBe(false);
  expect(isExpired({ ...zone, lastConclusiveNoAt: before(7 * day + 1) }, 28, now)).toBe(false);
  expect(isExpired({ ...zone, lastConclusiveNoAt: null }, 28, now)).toBe(false);
});
