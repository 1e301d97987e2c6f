import { ensureDemo, issueSetupToken } from '../../src/identity/service';
import { cookieOf, field, withIdentityApi } from '../support/identity-api';

const body = { email: 'owner@first.test', displayName: 'Owner', password: 'a good long passphrase', orgDisplayName: 'First' };

describe('a new installation', () => {
  const api = withIdentityApi();
  const setUp = (token: string, i = 0) => api.ask('POST', '/api/auth/setup', { body: { ...body, email: `owner${i}@first.test`, token } });

  test('refuses a wrong and an expired token; of fifty set-ups with good ones at once one wins, then the address is gone', async () => {
    const tokens = [await issueSetupToken(api.deps), await issueSetupToken(api.deps)].map(String);
    expect(await setUp('wrong')).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
    const expired = String(await issueSetupToken(api.deps));
    await api.database.pool.query(`update setup_token set expires_at = now() where digest = encode(sha256(convert_to($1, 'UTF8')), 'hex')`, [expired]);
    expect((await setUp(expired)).status).toBe(401);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => setUp(tokens[i % 2] ?? '', i)));
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    expect(answers.map(({ status, body: { code } }) => `${status} ${typeof code === 'string' ? code : 'ok'}`).filter((one) => one !== '404 not_found')).toEqual(['200 ok']);
    const [first] = won;
    if (!first) throw new Error('nobody won');
    expect(first.body).toMatchObject({ user: { emailVerified: true }, org: { slug: 'first', role: 'owner' }, project: { slug: 'default' } });
    expect((await api.ask('GET', '/api/orgs', { cookie: cookieOf(first) })).body).toMatchObject({ orgs: [{ slug: 'first' }] });
    expect(await setUp(tokens[0] ?? '')).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await issueSetupToken(api.deps)).toBeNull();
    const { rows } = await api.database.pool.query('select (select count(*)::int from "user") as users, (select count(*)::int from organization) as orgs, (select count(*)::int from setup_token) as tokens');
    expect(rows).toEqual([{ users: 1, orgs: 1, tokens: 0 }]);
  }, 60_000);
});

describe('development', () => {
  const api = withIdentityApi();

  test('the demo organisation is made once, however many processes ask, and its login works', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => ensureDemo(api.deps, { email: 'owner@demo.test' })));
    const [login] = made.filter((one) => one !== null);
    expect(made.filter((one) => one !== null)).toHaveLength(1);
    expect(login).toEqual({ email: 'owner@demo.test', password: expect.any(String), orgSlug: 'demo', projectSlug: 'default' });
    expect(await ensureDemo(api.deps, { email: 'owner@demo.test' })).toBeNull();
    const answer = await api.ask('POST', '/api/auth/sign-in', { body: { email: login?.email, password: login?.password } });
    expect(answer).toMatchObject({ status: 200, body: { memberships: [{ orgSlug: 'demo', role: 'owner' }] } });
    expect(field((await api.ask('GET', '/api/orgs/demo/projects/default', { cookie: cookieOf(answer) })).body['project'], 'status')).toBe('active');
    expect((await api.ask('POST', '/api/auth/setup', { body: { ...body, token: 'any' } })).status).toBe(404);
  });
});
