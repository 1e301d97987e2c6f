import { cookieOf, newAddress, withIdentityApi, type Answer } from '../support/identity-api';

describe('signIn, where addresses need no verification', () => {
  const api = withIdentityApi();
  const signIn = (email: string, password: string, headers: Record<string, string> = {}) => api.ask('POST', '/api/auth/sign-in', { body: { email, password }, headers });

  test('the right password gives a fresh session and the memberships', async () => {
    const ann = await api.person();
    const org = await api.org(ann);
    const answer = await signIn(` ${ann.email.toUpperCase()} `, ann.password, { 'user-agent': 'curl/8' });
    expect(answer).toMatchObject({
      status: 200,
      body: {
        user: { id: ann.userId, email: ann.email },
        session: { current: true, freshUntil: expect.stringMatching(/Z$/), userAgent: 'curl/8', ip: expect.stringMatching(/^10\./) },
        memberships: [{ orgId: org.orgId, orgSlug: org.slug, displayName: 'Acme', role: 'owner' }],
      },
    });
    expect((await api.ask('GET', '/api/orgs', { cookie: cookieOf(answer) })).status).toBe(200);
  });

  test('unknown address, wrong password and disabled account answer alike but for the request id', async () => {
    const [ann, off] = [await api.person(), await api.person()];
    await api.database.pool.query('update "user" set disabled_at = now() where id = $1', [off.userId]);
    const answers = [await signIn('nobody@people.test', ann.password), await signIn(ann.email, 'wrong password'), await signIn(off.email, off.password)];
    const seen = answers.map(({ status, body: { requestId, ...body }, cookie }) => ({ status, body, cookie, named: typeof requestId }));
    expect(seen[0]).toEqual({ status: 401, body: { ok: false, code: 'invalid_credentials', message: expect.any(String) }, cookie: null, named: 'string' });
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
  });

  test('a disabled account has no session any more', async () => {
    const off = await api.person();
    await api.database.pool.query('update "user" set disabled_at = now() where id = $1', [off.userId]);
    expect(await api.ask('GET', '/api/auth/session', { cookie: off.cookie })).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
  });

  test('five guesses a minute reach an account, from however many addresses; the sixth is refused before hashing', async () => {
    const ann = await api.person();
    const statuses: number[] = [];
    for (let i = 0; i < 7; i++) statuses.push((await signIn(ann.email, 'wrong password')).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
    const refused = await signIn(ann.email, ann.password);
    expect(refused).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('five guesses a minute come from one address, at however many accounts; an IPv6 network of /64 is one address', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await signIn(`guess${i}@people.test`, 'wrong password', { 'x-forwarded-for': `2001:db8:0:1::${i + 1}` })).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  });

  test('of a hundred guesses at once five are hashed', async () => {
    const ann = await api.person();
    const answers = await Promise.all(Array.from({ length: 100 }, () => signIn(ann.email, 'wrong password')));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(5);
  });

  test('done and denied sign-ins stand in the audit of the installation, without the address that was tried', async () => {
    const ann = await api.person();
    await signIn(ann.email, 'wrong password');
    await signIn(ann.email, ann.password);
    const { rows } = await api.database.pool.query(`select actor_kind, actor_id, outcome from audit_entry where chain = 'installation' and action = 'signIn' order by seq desc limit 2`);
    expect(rows).toEqual([{ actor_kind: 'user', actor_id: ann.userId, outcome: 'done' }, { actor_kind: 'anonymous', actor_id: null, outcome: 'denied' }]);
  });

  test('a twenty-first session ends the oldest', async () => {
    const ann = await api.person();
    await api.database.pool.query(`insert into session (id, "userId", token, "expiresAt", "createdAt")
      select 'ses_' || i || $1, $1, 'tok_' || i || $1, now() + interval '7 days', now() - interval '1 hour' + i * interval '1 second' from generate_series(1, 19) i`, [ann.userId]);
    await api.database.pool.query(`update session set "createdAt" = now() - interval '2 hours' where "userId" = $1 and id not like 'ses_%' || $1`, [ann.userId]);
    expect((await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).status).toBe(200);
    await signIn(ann.email, ann.password);
    expect((await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).status).toBe(401);
    expect((await api.database.pool.query('select 1 from session where "userId" = $1', [ann.userId])).rowCount).toBe(20);
  });

  test('signOut ends the session and clears the cookie, and says the same without one', async () => {
    const ann = await api.person();
    const out = await api.ask('POST', '/api/auth/sign-out', { cookie: ann.cookie });
    expect(out).toMatchObject({ status: 200, body: { ok: true, signedOut: true } });
    expect(out.headers.getSetCookie()).toEqual(['__Host-holdfast_session=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax']);
    expect((await api.ask('GET', '/api/auth/session', { cookie: ann.cookie })).status).toBe(401);
    expect(await api.ask('POST', '/api/auth/sign-out')).toMatchObject({ status: 200, body: { signedOut: true } });
  });

  test('a sign-in another site caused is refused', async () => {
    const ann = await api.person();
    const answer = await signIn(ann.email, ann.password, { 'sec-fetch-site': 'cross-site', 'x-forwarded-for': newAddress() });
    expect(answer).toMatchObject({ status: 403, body: { code: 'csrf_rejected' }, cookie: null });
  });
});

describe('where addresses must be verified', () => {
  const api = withIdentityApi({ EMAIL_VERIFICATION: 'required' });
  const body = { displayName: 'Ann', password: 'a good long passphrase' };
  const comparable = ({ status, body: { requestId: _, ...rest }, cookie }: Answer) => ({ status, rest, cookie });

  test('signUp answers a new and a known address alike; the known one is told by mail', async () => {
    const email = 'known@verify.test';
    const first = await api.ask('POST', '/api/auth/sign-up', { body: { ...body, email } });
    const second = await api.ask('POST', '/api/auth/sign-up', { body: { ...body, email } });
    expect(comparable(first)).toEqual({ status: 200, rest: { ok: true, user: null, verificationRequired: true }, cookie: null });
    expect(comparable(second)).toEqual(comparable(first));
    const { rows } = await api.database.pool.query('select kind from account_mail where recipient = $1 order by id', [email]);
    expect(rows).toEqual([{ kind: 'verify_email' }, { kind: 'address_known' }]);
  });

  test('only after the right password is the missing verification named; then the mailed link opens the door', async () => {
    const email = 'late@verify.test';
    await api.ask('POST', '/api/auth/sign-up', { body: { ...body, email } });
    expect((await api.ask('POST', '/api/auth/sign-in', { body: { email, password: 'wrong password' } })).body['code']).toBe('invalid_credentials');
    expect(await api.ask('POST', '/api/auth/sign-in', { body: { email, password: body.password } })).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'verified_email' } });
    const token = await api.mailedToken(email);
    expect(await api.ask('POST', '/api/auth/verify-email', { body: { token } })).toMatchObject({ status: 200, body: { verified: true } });
    expect(await api.ask('POST', '/api/auth/sign-in', { body: { email, password: body.password } })).toMatchObject({ status: 200, body: { user: { emailVerified: true } } });
  });
});
