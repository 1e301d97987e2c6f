import { cookieOf, field, withIdentityApi } from '../support/identity-api';

const api = withIdentityApi();
const body = { email: 'Ann@Acme.test ', displayName: 'Ann', password: 'a good long passphrase' };

test('a new person gets an account, a session and its cookie; the address is stored lower-cased', async () => {
  const answer = await api.ask('POST', '/api/auth/sign-up', { body });
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ ok: true, user: { email: 'ann@acme.test', displayName: 'Ann', emailVerified: false, disabledAt: null }, memberships: [] });
  expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-holdfast_session=[^;]+; Max-Age=604800; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
  expect(answer.headers.get('cache-control')).toContain('no-store');
  const session = await api.ask('GET', '/api/auth/session', { cookie: cookieOf(answer) });
  expect(session.body).toMatchObject({ user: answer.body['user'], session: answer.body['session'] });
});

test('a known address is refused where addresses need no verification', async () => {
  await api.ask('POST', '/api/auth/sign-up', { body: { ...body, email: 'twice@acme.test' } });
  const again = await api.ask('POST', '/api/auth/sign-up', { body: { ...body, email: 'twice@acme.test' } });
  expect(again).toMatchObject({ status: 400, body: { code: 'conflict' }, cookie: null });
});

test('of 8 equal sign-ups at once one makes the account', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => api.ask('POST', '/api/auth/sign-up', { body: { ...body, email: 'race@acme.test' } })));
  expect(answers.map((answer) => answer.status).toSorted()).toEqual([200, 400, 400, 400, 400, 400, 400, 400]);
});

test.each([
  ['short', 'password'], ['password123', 'password'], ['ann@acme.test', 'password'], ['Somebody Long', 'password'],
])('the password %p is refused', async (password) => {
  const answer = await api.ask('POST', '/api/auth/sign-up', { body: { email: 'ann@acme.test', displayName: 'Somebody Long', password } });
  expect(answer).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(field(Array.isArray(answer.body['issues']) ? answer.body['issues'][0] : null, 'path')).toBe('password');
});

test('six sign-ups of one client within the hour are one too many', async () => {
  const headers = { 'x-forwarded-for': '192.0.2.77' };
  const statuses: number[] = [];
  for (let i = 0; i < 6; i++) statuses.push((await api.ask('POST', '/api/auth/sign-up', { headers, body: { ...body, email: `many${i}@acme.test` } })).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
});
