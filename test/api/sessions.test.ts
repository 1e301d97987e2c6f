import { cookieOf, field, idIn, withIdentityApi, type Person } from '../support/identity-api';

const api = withIdentityApi();
const again = async ({ email, password }: Person) => cookieOf(await api.ask('POST', '/api/auth/sign-in', { body: { email, password } }));
const statusOf = async (cookie: string) => (await api.ask('GET', '/api/auth/session', { cookie })).status;
const makeStale = (userId: string) => api.database.pool.query(`update session set fresh_at = now() - interval '601 seconds' where "userId" = $1`, [userId]);

test('getSession says who I am; without a session it is 401', async () => {
  const ann = await api.person();
  expect(await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).toMatchObject({ status: 200, body: { user: { id: ann.userId }, session: { current: true }, memberships: [] } });
  expect(await api.ask('GET', '/api/auth/session')).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
});

test('listSessions shows mine only, newest first, and which is this one; pages fit together', async () => {
  const ann = await api.person();
  await again(ann);
  const third = await again(ann);
  const all = await api.ask('GET', '/api/auth/sessions', { cookie: third });
  expect(all.body).toMatchObject({ sessions: [{ current: true }, { current: false }, { current: false }], hasMore: false, nextCursor: null });
  const first = await api.ask('GET', '/api/auth/sessions?limit=2', { cookie: third });
  const rest = await api.ask('GET', `/api/auth/sessions?limit=2&cursor=${String(first.body['nextCursor'])}`, { cookie: third });
  expect([first.body['sessions'], rest.body['sessions']].flat()).toEqual(all.body['sessions']);
  const other = await api.person();
  expect(await api.ask('GET', `/api/auth/sessions?cursor=${String(first.body['nextCursor'])}`, { cookie: other.cookie })).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
});

test('endSession ends one of mine at once; somebody else’s and an absent one are the same 404', async () => {
  const [ann, bob] = [await api.person(), await api.person()];
  const second = await again(ann);
  const id = idIn((await api.ask('GET', '/api/auth/session', { cookie: second })).body['session']);
  const foreign = await api.ask('DELETE', `/api/auth/sessions/${id}`, { cookie: bob.cookie });
  const absent = await api.ask('DELETE', '/api/auth/sessions/ses_01kahq3v7ye5fr2m8d4xw0zt6c', { cookie: bob.cookie });
  expect({ ...foreign.body, requestId: '' }).toEqual({ ...absent.body, requestId: '' });
  expect(foreign.status).toBe(404);
  expect(await statusOf(second)).toBe(200);
  expect((await api.ask('DELETE', `/api/auth/sessions/${id}`, { cookie: ann.cookie })).body).toEqual({ ok: true, deleted: true, sessionId: id });
  expect(await statusOf(second)).toBe(401);
});

test('endOtherSessions keeps this one', async () => {
  const ann = await api.person();
  const others = [await again(ann), await again(ann)];
  expect((await api.ask('DELETE', '/api/auth/sessions', { cookie: ann.cookie })).body).toMatchObject({ deletedCount: 2 });
  expect(await Promise.all([ann.cookie, ...others].map(statusOf))).toEqual([200, 401, 401]);
});

test('what deletes asks for a fresh session; reauthenticateSession makes it fresh, a wrong password does not', async () => {
  const ann = await api.person();
  await makeStale(ann.userId);
  expect(field((await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).body['session'], 'freshUntil')).toBeNull();
  expect(await api.ask('DELETE', '/api/auth/user', { cookie: ann.cookie })).toMatchObject({ status: 403, body: { code: 'reauthentication_required' } });
  expect(await api.ask('POST', '/api/auth/reauthenticate', { cookie: ann.cookie, body: { password: 'wrong password' } })).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
  const renewed = await api.ask('POST', '/api/auth/reauthenticate', { cookie: ann.cookie, body: { password: ann.password } });
  expect(renewed).toMatchObject({ status: 200, body: { session: { current: true, freshUntil: expect.any(String) } } });
  expect((await api.ask('DELETE', '/api/auth/user', { cookie: ann.cookie })).status).toBe(200);
});

test('changePassword ends the other sessions, keeps this one fresh, and the old password is dead', async () => {
  const ann = await api.person();
  const other = await again(ann);
  await makeStale(ann.userId);
  const body = { currentPassword: ann.password, newPassword: 'another long passphrase' };
  expect(await api.ask('POST', '/api/auth/password', { cookie: ann.cookie, body: { ...body, currentPassword: 'wrong password' } })).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
  expect(await api.ask('POST', '/api/auth/password', { cookie: ann.cookie, body: { ...body, newPassword: ann.email } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await api.ask('POST', '/api/auth/password', { cookie: ann.cookie, body })).toMatchObject({ status: 200, body: { session: { freshUntil: expect.any(String) } } });
  expect(await Promise.all([ann.cookie, other].map(statusOf))).toEqual([200, 401]);
  const signIn = async (password: string) => (await api.ask('POST', '/api/auth/sign-in', { body: { email: ann.email, password } })).status;
  expect([await signIn(ann.password), await signIn(body.newPassword)]).toEqual([401, 200]);
});

test('a session that was not seen for an hour is renewed, its cookie passed on', async () => {
  const ann = await api.person();
  await api.database.pool.query(`update session set "updatedAt" = now() - interval '61 minutes', "expiresAt" = now() + interval '7 days' - interval '61 minutes' where "userId" = $1`, [ann.userId]);
  const answer = await api.ask('GET', '/api/orgs', { cookie: ann.cookie });
  expect(answer.headers.getSetCookie()).toEqual([expect.stringMatching(/^__Host-holdfast_session=.+; Max-Age=604800; Path=\/; HttpOnly; Secure; SameSite=Lax$/)]);
  expect((await api.ask('GET', '/api/orgs', { cookie: cookieOf(answer) })).cookie).toBeNull();
  const { rows } = await api.database.pool.query(`select "expiresAt" > now() + interval '7 days' - interval '1 minute' as renewed from session where "userId" = $1`, [ann.userId]);
  expect(rows).toEqual([{ renewed: true }]);
});

test('updateUser changes the name others see; deleteUser takes account and sessions along, and is refused to a last owner', async () => {
  const ann = await api.person();
  expect((await api.ask('PATCH', '/api/auth/user', { cookie: ann.cookie, body: { displayName: ' Anna ' } })).body).toMatchObject({ user: { displayName: 'Anna' } });
  await api.org(ann);
  expect(await api.ask('DELETE', '/api/auth/user', { cookie: ann.cookie })).toMatchObject({ status: 400, body: { code: 'last_owner' } });
  const bob = await api.person();
  const gone = await api.ask('DELETE', '/api/auth/user', { cookie: bob.cookie });
  expect(gone).toMatchObject({ status: 200, body: { deleted: true, userId: bob.userId } });
  expect(gone.headers.getSetCookie()[0]).toContain('Max-Age=0');
  expect(await statusOf(bob.cookie)).toBe(401);
  expect((await api.ask('POST', '/api/auth/sign-in', { body: { email: bob.email, password: bob.password } })).status).toBe(401);
});
