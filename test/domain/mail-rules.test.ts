import fc from 'fast-check';
import { bounceClass, diagnosticOf, retryHintSeconds } from '../../src/mail/rules/replies';
import { nextAttemptAt } from '../../src/mail/rules/retries';
import { suppressedBy } from '../../src/mail/rules/suppression';

const scheduleSeconds = [60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800];

test.each([
  [550, '5.7.1', 'policy'], [554, '5.7.26', 'policy'], [552, '5.2.2', 'soft'], [552, '5.2.3', 'soft'], [550, '5.3.4', 'soft'], [554, '5.6.0', 'soft'],
  [550, '5.1.1', 'hard'], [550, '5.1.10', 'hard'], [550, '5.2.1', 'hard'], [503, '5.5.0', 'hard'], [550, '5.4.1', 'undetermined'], [554, '5.5.2', 'undetermined'],
  [550, undefined, 'hard'], [551, undefined, 'hard'], [553, undefined, 'hard'], [554, undefined, 'undetermined'], [552, undefined, 'undetermined'], [550, 'nonsense', 'hard'],
])('a refusal with %s %s is %s', (code, enhancedCode, expected) => {
  expect(bounceClass({ code, ...(enhancedCode === undefined ? {} : { enhancedCode }) })).toBe(expected);
});

test.each([
  ['Greylisted, please try again in 300 seconds', 300], ['451 4.7.1 Try again in 5 minutes', 300], ['retry after 00:04:58', 298], ['wait 2 hours', 7_200],
  ['try again in 10 seconds', null], ['try again in 9 hours', null], ['try again later', null], ['mailbox 300 seconds old', null], ['', null],
])('the hint of %j is %s', (text, seconds) => {
  expect(retryHintSeconds({ text })).toBe(seconds);
});

test('waits follow the schedule within 20 %, its last one for ever, and a hint replaces them', () => {
  const now = new Date('2026-03-01T00:00:00Z');
  const expiresAt = new Date(now.getTime() + 72 * 3_600_000);
  fc.assert(fc.property(fc.integer({ min: 1, max: 40 }), fc.double({ min: 0, max: 0.999_999, noNaN: true }), (attempt, share) => {
    const planned = scheduleSeconds[Math.min(attempt, 8) - 1] ?? 0;
    const waited = ((nextAttemptAt({ scheduleSeconds }, { attempt, now, expiresAt }, () => share)?.getTime() ?? 0) - now.getTime()) / 1_000;
    expect(waited).toBeGreaterThanOrEqual(planned * 0.8 - 0.001);
    expect(waited).toBeLessThanOrEqual(planned * 1.2 + 0.001);
  }));
  expect(nextAttemptAt({ scheduleSeconds }, { attempt: 1, now, expiresAt, retryAfterSeconds: 120 })).toEqual(new Date(now.getTime() + 120_000));
  expect(nextAttemptAt({ scheduleSeconds }, { attempt: 1, now, expiresAt, retryAfterSeconds: 5 }, () => 0.5)).toEqual(new Date(now.getTime() + 60_000));
});

test('an attempt beyond the expiry is none', () => {
  const now = new Date('2026-03-01T00:00:00Z');
  expect(nextAttemptAt({ scheduleSeconds }, { attempt: 1, now, expiresAt: new Date(now.getTime() + 47_000) })).toBeNull();
  expect(nextAttemptAt({ scheduleSeconds }, { attempt: 1, now, expiresAt: new Date(now.getTime() + 73_000) })).not.toBeNull();
});

test.each(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'])('%s suppresses its address at once', (enhancedCode) => {
  expect(suppressedBy({ enhancedCode })).toBe('always');
  expect(suppressedBy({ enhancedCode, provider: { permanent: true } })).toBe('always');
  expect(suppressedBy({ enhancedCode, provider: { permanent: false } })).toBe('never');
});

test.each(['5.7.1', '5.7.26', '5.3.4', '5.2.2', '5.6.0', '5.4.4', '5.0.0', null, undefined, 'x'])('%s alone never suppresses', (enhancedCode) => {
  expect(suppressedBy({ enhancedCode })).toBe('never');
});

test('a disabled mailbox suppresses at the second time; a provider\'s General and NoEmail at once, but never against a code that clears the address', () => {
  expect(suppressedBy({ enhancedCode: '5.2.1' })).toBe('second');
  for (const subType of ['General', 'NoEmail']) {
    expect(suppressedBy({ provider: { permanent: true, subType } })).toBe('always');
    expect(suppressedBy({ enhancedCode: '5.7.1', provider: { permanent: true, subType } })).toBe('never');
    expect(suppressedBy({ provider: { permanent: false, subType } })).toBe('never');
  }
  expect(suppressedBy({ provider: { permanent: true, subType: 'MailboxFull' } })).toBe('never');
});

test('a diagnostic is one line of at most 500 characters', () => {
  expect(diagnosticOf('550 no\r\nX-Evil: 1\u2028\u0000 end')).toBe('550 no X-Evil: 1  end');
  expect(diagnosticOf('x'.repeat(900))).toHaveLength(500);
  expect(diagnosticOf('\r\n')).toBeNull();
});
