import fc from 'fast-check';
import { accessModeOf, before, failureReason, mayBecome, statuses, storageStates, transitional, transitions } from '../../src/postgres/state';

test('every status can be left, and deletion is reachable from every living one', () => {
  for (const from of statuses) {
    expect(transitions[from].length).toBeGreaterThan(0);
    expect(mayBecome(from, 'deleting')).toBe(from !== 'deleting' && from !== 'deleted');
  }
});

test('what a compare-and-set accepts is the transition table read backwards', () => {
  fc.assert(fc.property(fc.constantFrom(...statuses), fc.constantFrom(...statuses), (from, to) => before(to).includes(from) === mayBecome(from, to)));
});

test('from every status a final one is reached, whatever path is taken', () => {
  const reaches = (from: (typeof statuses)[number], seen: string[] = []): boolean =>
    from === 'deleted' || transitions[from].some((to) => !seen.includes(to) && reaches(to, [...seen, from]));
  for (const from of statuses) expect(reaches(from)).toBe(true);
  for (const status of transitional) expect(statuses).toContain(status);
});

test('closed access is blocked whatever storage says; open access is what storage allows', () => {
  for (const storageState of storageStates) {
    expect(accessModeOf({ accessOpen: false, storageState })).toBe('blocked');
    expect(accessModeOf({ accessOpen: true, storageState })).toBe(storageState === 'ok' || storageState === 'warning' ? 'full' : storageState);
  }
});

test('a reason is always one of the four of failed', () => {
  fc.assert(fc.property(fc.string(), (code) => ['no_capacity', 'backend_error', 'verification_failed', 'deadline_exceeded'].includes(failureReason(code))));
  expect(failureReason('deadline_exceeded')).toBe('deadline_exceeded');
});
