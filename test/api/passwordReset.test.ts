import { createResetLink } from '../../src/identity/service';
import { cookieOf, withIdentityApi, type Answer } from '../support/identity-api';

const api = withIdentityApi();
const plain = ({ status, body: { requestId: _, ...body } }: Answer) => ({ status, body });
const request = (email: string) => api.ask('POST', '/api/auth/password-reset', { body: { email } });
const confirm = (token: string, newPassword = 'another long passphrase') => api.ask('POST', '/api/auth/password-reset/confirm', { body: { token, newPassword } });

test('requestPasswordReset answers alike for known and unknown addresses, and writes the same rows', async () => {
  const ann = await api.person();
  const count = async (sql: string) => Number((await api.database.pool.query<{ count: string }>(sql)).rows[0]?.count);
  const rows = async () => [await count('select count(*) from verification'), await count('select count(*) from account_mail'), await count('select count(*) from audit_entry')];
  const before = await rows();
  const known = await request(ann.email);
  const between = await rows();
  const unknown = await request('nobody@people.test');
  const after = await rows();
  expect(plain(known)).toEqual({ status: 200, body: { ok: true, sent: true } });
  expect(plain(unknown)).toEqual(plain(known));
  expect(between.map((value, i) => value - (before[i] ?? 0))).toEqual(after.map((value, i) => value - (between[i] ?? 0)));
});

test('confirmPasswordReset sets the password once, ends every session and proves the address', async () => {
  const ann = await api.person();
  await request(ann.email);
  const token = await api.mailedToken(ann.email);
  expect(await confirm(token, ann.email)).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await confirm(token)).toMatchObject({ status: 200, body: { reset: true } });
  expect(await confirm(token)).toMatchObject({ status: 400, body: { code: 'invalid_token' } });
  expect((await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).status).toBe(401);
  expect((await api.ask('POST', '/api/auth/sign-in', { body: { email: ann.email, password: ann.password } })).status).toBe(401);
  const signedIn = await api.ask('POST', '/api/auth/sign-in', { body: { email: ann.email, password: 'another long passphrase' } });
  expect(signedIn).toMatchObject({ status: 200, body: { user: { emailVerified: true } } });
});

test('a token works once, eight times at once', async () => {
  const ann = await api.person();
  await request(ann.email);
  const token = await api.mailedToken(ann.email);
  const answers = await Promise.all(Array.from({ length: 8 }, () => confirm(token)));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400, 400, 400, 400, 400]);
});

test('an expired token, one of another purpose and one nobody issued are the same refusal', async () => {
  const [ann, bob] = [await api.person(), await api.person()];
  await request(ann.email);
  const expired = await api.mailedToken(ann.email);
  await api.database.pool.query(`update verification set "expiresAt" = now() - interval '1 second' where value = $1`, [ann.userId]);
  const other = await api.mailedToken(bob.email); // of the sign-up's verification mail
  const answers = [await confirm(expired), await confirm(other), await confirm('nonsense')].map(plain);
  expect(answers[0]).toMatchObject({ status: 400, body: { code: 'invalid_token' } });
  expect(answers).toEqual([answers[0], answers[0], answers[0]]);
});

test('the operator’s link (user:reset-link) works once, and is told apart from a mailed one in the audit', async () => {
  const ann = await api.person();
  const link = await createResetLink(api.deps, ann.email.toUpperCase());
  expect(await confirm(new URL(link ?? '').searchParams.get('token') ?? '')).toMatchObject({ status: 200 });
  expect(await createResetLink(api.deps, 'nobody@people.test')).toBeNull();
  const { rows } = await api.database.pool.query(`select actor_kind from audit_entry where action = 'createResetLink' and target_id = $1`, [ann.userId]);
  expect(rows).toEqual([{ actor_kind: 'system' }]);
});

test('three reset mails an hour go to one account', async () => {
  const ann = await api.person();
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await request(ann.email)).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
});

test('verifyEmail verifies once; resendVerification answers alike whether anybody waits for it', async () => {
  const ann = await api.person();
  const resend = (email: string) => api.ask('POST', '/api/auth/verify-email/resend', { body: { email } });
  const first = await api.mailedToken(ann.email);
  expect(plain(await resend(ann.email))).toEqual(plain(await resend('nobody@people.test')));
  const second = await api.mailedToken(ann.email);
  expect(second).not.toBe(first);
  const verify = (token: string) => api.ask('POST', '/api/auth/verify-email', { body: { token } });
  expect(await verify(second)).toMatchObject({ status: 200, body: { verified: true } });
  expect(await verify(second)).toMatchObject({ status: 400, body: { code: 'invalid_token' } });
  expect((await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).body).toMatchObject({ user: { emailVerified: true } });
});

test('no token, link or password stands in the database in the clear', async () => {
  const ann = await api.person();
  await request(ann.email);
  const secrets = [await api.mailedToken(ann.email), ann.password, cookieOf({ ...await request('x@people.test'), cookie: ann.cookie }).slice(-44)];
  const { rows } = await api.database.pool.query<{ text: string }>(`select coalesce(string_agg(t::text, ' '), '') as text from (
    select v::text as t from verification v union all select m::text from account_mail m union all select a::text from account a union all select e::text from audit_entry e) all_rows`);
  expect(secrets.filter((secret) => rows[0]?.text.includes(secret))).toEqual([]);
});
