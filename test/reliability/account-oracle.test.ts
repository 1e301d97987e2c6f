import { newId } from '../../src/core/ids';
import { withIdentityApi, type Answer } from '../support/identity-api';
import { rounds } from '../support/rounds';

const api = withIdentityApi({
  EMAIL_VERIFICATION: 'required', RATE_SIGN_IN_PER_MINUTE: '10000', RATE_RESET_PER_HOUR: '10000', RATE_RESET_ADDRESS_PER_HOUR: '10000', RATE_SIGN_UP_PER_HOUR: '10000',
});
const known = 'known@people.test';
const password = 'a good long passphrase';
/** Of the slower median. The few tries of an ordinary run on a busy machine tell apart what hashes from what does not, no more. */
const difference = rounds(0.5, 0.2);

const signUp = (email: string) => api.ask('POST', '/api/auth/sign-up', { body: { email, displayName: 'Ann', password } });
const plain = ({ status, body: { requestId: _, ...body }, cookie }: Answer) => ({ status, body, cookie });

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

beforeAll(async () => {
  await signUp(known);
});

test.each([
  ['sign-in', (email: string) => api.ask('POST', '/api/auth/sign-in', { body: { email, password: 'wrong password' } })],
  ['password reset', (email: string) => api.ask('POST', '/api/auth/password-reset', { body: { email } })],
  ['sign-up with verification', signUp],
])('by %s nobody learns whether an address has an account: same answer, same time', async (_, ask) => {
  const timesMs: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] };
  const answers = new Set<string>();
  const take = async (which: 'known' | 'unknown') => {
    const email = which === 'known' ? known : `${newId('usr')}@people.test`;
    const since = performance.now();
    const answer = await ask(email);
    timesMs[which].push(performance.now() - since);
    answers.add(JSON.stringify(plain(answer)));
  };
  for (let i = 0; i < rounds(25, 200); i++) for (const which of i % 2 ? ['known', 'unknown'] as const : ['unknown', 'known'] as const) await take(which);
  expect([...answers]).toHaveLength(1);
  const medians = [median(timesMs.known), median(timesMs.unknown)];
  expect(1 - Math.min(...medians) / Math.max(...medians)).toBeLessThan(difference);
}, rounds(60_000, 600_000));
