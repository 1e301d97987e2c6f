import fc from 'fast-check';
import {
  applies, factTypes, isSettled, merge, messageStatus, rankOf, recipientTransitions, worstFirst, type Fact, type Standing,
} from '../../src/mail/rules/recipients';
import { recipientStatuses, type RecipientStatus } from '../../src/mail/state';

const fresh: Standing = { status: 'queued', retryOwner: 'us', factAt: null, factId: null };
const fact = fc.record({
  type: fc.constantFrom(...factTypes),
  occurredAt: fc.integer({ min: 0, max: 3 }).map((seconds) => new Date(seconds * 1_000)),
  eventId: fc.integer({ min: 0, max: 20 }).map((n) => `evt_${String(n).padStart(3, '0')}`),
});
/** Events told once each: an id belongs to one fact. */
const facts = fc.uniqueArray(fact, { maxLength: 6, selector: ({ eventId }) => eventId });
const fold = (from: Standing, told: readonly Fact[]) => told.reduce(merge, from);
const starts: Standing[] = (['queued', 'sending', 'deferred', 'suppressed', 'cancelled'] as const).map((status) => ({ ...fresh, status }));

test('neither the order nor the repetition of facts matters to what a recipient becomes', () => {
  fc.assert(fc.property(fc.constantFrom(...starts), facts, fc.infiniteStream(fc.nat()), (start, told, picks) => {
    const shuffled = told.flatMap((one) => [one, one]).map((one) => ({ one, at: picks.next().value ?? 0 })).toSorted((a, b) => a.at - b.at).map(({ one }) => one);
    expect(fold(start, shuffled)).toEqual(fold(start, told));
  }), { numRuns: 2_000 });
});

test('all permutations of every kind of fact end alike, for every place in our own loop', () => {
  const told = factTypes.map((type, index): Fact => ({ type, occurredAt: new Date((index % 3) * 1_000), eventId: `evt_${index}` }));
  for (const start of starts) {
    for (const subset of subsetsOf(told)) expect(new Set(permutationsOf(subset).map((order) => JSON.stringify(fold(start, order)))).size).toBe(1);
  }
});

test('a fact of lower rank changes nothing, nor does any about a suppressed or cancelled recipient', () => {
  fc.assert(fc.property(facts, fact, (told, late) => {
    const standing = fold(fresh, told);
    const lower = rankOf({ status: late.type, retryOwner: 'provider' }) < rankOf(standing);
    if (lower) expect(merge(standing, late)).toBe(standing);
    for (const status of ['suppressed', 'cancelled'] as const) expect(applies({ ...fresh, status }, late)).toBe(false);
  }));
});

test('every change by a fact is in the table of transitions, and every status of the table is a status', () => {
  const allowed = (from: RecipientStatus, to: RecipientStatus) => from === to || (recipientTransitions[from] as readonly RecipientStatus[]).includes(to);
  fc.assert(fc.property(fc.constantFrom(...starts), facts, (start, told) => {
    let standing = start;
    for (const one of told) {
      const next = merge(standing, one);
      expect(allowed(standing.status, next.status)).toBe(true);
      standing = next;
    }
  }));
  expect(Object.keys(recipientTransitions).toSorted()).toEqual(recipientStatuses.toSorted());
  expect(worstFirst.toSorted()).toEqual(recipientStatuses.toSorted());
});

test('between sent and deferred by a provider the later one stands, then the greater event id', () => {
  const sent: Fact = { type: 'sent', occurredAt: new Date(1_000), eventId: 'evt_2' };
  expect(fold(fresh, [sent, { type: 'deferred', occurredAt: new Date(2_000), eventId: 'evt_1' }])).toMatchObject({ status: 'deferred', retryOwner: 'provider' });
  expect(fold(fresh, [sent, { type: 'deferred', occurredAt: new Date(1_000), eventId: 'evt_1' }])).toMatchObject({ status: 'sent' });
  expect(fold(fresh, [sent, { type: 'deferred', occurredAt: new Date(1_000), eventId: 'evt_3' }])).toMatchObject({ status: 'deferred', retryOwner: 'provider' });
});

test('a message has the worst status of its recipients, and with one recipient that one\'s', () => {
  for (const status of recipientStatuses) expect(messageStatus([{ status }])).toBe(status);
  fc.assert(fc.property(fc.array(fc.constantFrom(...recipientStatuses), { minLength: 1, maxLength: 8 }), (statuses) => {
    expect(messageStatus(statuses.map((status) => ({ status })))).toBe(worstFirst.find((status) => statuses.includes(status)));
  }));
});

test('a message is settled when no recipient is queued, sending or deferred with the retry ours', () => {
  expect(isSettled([{ status: 'delivered', retryOwner: 'us' }, { status: 'deferred', retryOwner: 'provider' }, { status: 'sent', retryOwner: 'us' }])).toBe(true);
  for (const status of ['queued', 'sending', 'deferred'] as const) expect(isSettled([{ status: 'delivered', retryOwner: 'us' }, { status, retryOwner: 'us' }])).toBe(false);
});

function subsetsOf<T>(items: readonly T[]): T[][] {
  return items.reduce<T[][]>((sets, item) => [...sets, ...sets.map((set) => [...set, item])], [[]]);
}

function permutationsOf<T>(items: readonly T[]): T[][] {
  return items.length === 0 ? [[]] : items.flatMap((item, at) => permutationsOf(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}
