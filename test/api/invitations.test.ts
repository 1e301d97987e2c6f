import { inTransaction } from '../../src/db/transaction';
import { cookieOf, field, idIn, withIdentityApi } from '../support/identity-api';
import { rounds } from '../support/rounds';

describe('with account mail', () => {
  const api = withIdentityApi({ LIMIT_PENDING_INVITATIONS: '3' });
  const invite = (path: string, cookie: string, email: string, role = 'member') => api.ask('POST', `${path}/invitations`, { cookie, body: { email, role } });
  const accept = (cookie: string, token: string) => api.ask('POST', '/api/invitations/accept', { cookie, body: { token } });

  test('createInvitation is mailed to the address, shown by listInvitations, and acceptInvitation makes its owner a member with a verified address', async () => {
    const [ann, bob] = [await api.person('Ann'), await api.person()];
    const org = await api.org(ann);
    const made = await invite(org.path, ann.cookie, bob.email.toUpperCase());
    expect(made).toMatchObject({ status: 200, body: { invitation: { email: bob.email, role: 'member', status: 'pending', invitedBy: { id: ann.userId, displayName: 'Ann' }, acceptedAt: null } } });
    expect(made.body).not.toHaveProperty('acceptUrl');
    const token = await api.mailedToken(bob.email);
    const joined = await accept(bob.cookie, token);
    expect(joined).toMatchObject({ status: 200, body: { org: { id: org.orgId, role: 'member' }, member: { id: bob.userId, role: 'member' } } });
    expect((await api.ask('GET', '/api/auth/session', { cookie: bob.cookie })).body).toMatchObject({ user: { emailVerified: true }, memberships: [{ orgId: org.orgId }] });
    expect((await api.ask('GET', `${org.path}/invitations`, { cookie: ann.cookie })).body).toMatchObject({ invitations: [{ status: 'accepted', acceptedAt: expect.any(String) }] });
    expect(await accept(bob.cookie, token)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await invite(org.path, ann.cookie, bob.email)).toMatchObject({ status: 400, body: { code: 'already_member' } });
  });

  test('eight acceptances at once make one member', async () => {
    for (let round = 0; round < rounds(5, 500); round++) {
      const [ann, bob] = [await api.person(), await api.person()];
      const org = await api.org(ann);
      await invite(org.path, ann.cookie, bob.email);
      const token = await api.mailedToken(bob.email);
      const answers = await Promise.all(Array.from({ length: 8 }, () => accept(bob.cookie, token)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 404, 404, 404, 404, 404, 404, 404]);
      expect((await api.database.pool.query('select 1 from member where "organizationId" = $1 and "userId" = $2', [org.orgId, bob.userId])).rowCount).toBe(1);
    }
  }, rounds(60_000, 1_200_000));

  test('unknown, used, revoked, expired and (resendInvitation) replaced tokens are the same 404; another address is 403', async () => {
    const [ann, bob, eve] = [await api.person(), await api.person(), await api.person()];
    const org = await api.org(ann);
    const tokens = ['never-was'];
    const one = await invite(org.path, ann.cookie, bob.email);
    tokens.push(await api.mailedToken(bob.email));
    const resent = await api.ask('POST', `${org.path}/invitations/${idIn(one.body['invitation'])}/resend`, { cookie: ann.cookie, body: {} });
    expect(resent).toMatchObject({ status: 200, body: { invitation: { id: idIn(one.body['invitation']), status: 'pending' } } });
    tokens.push(await api.mailedToken(bob.email));
    expect(await accept(eve.cookie, tokens[2] ?? '')).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    await invite(org.path, ann.cookie, bob.email, 'viewer');
    const newest = await api.mailedToken(bob.email);
    tokens.push(newest);
    await api.database.pool.query(`update invitation set "expiresAt" = now() where email = $1 and status = 'pending'`, [bob.email]);
    const answers = await Promise.all(tokens.map((token) => accept(bob.cookie, token)));
    expect(answers.map(({ status, body: { requestId: _, ...body } }) => ({ status, body }))).toEqual(tokens.map(() => ({ status: 404, body: { ok: false, code: 'not_found', message: 'Invitation not found.' } })));
    expect((await api.ask('GET', `${org.path}/invitations`, { cookie: ann.cookie })).body).toMatchObject({ invitations: [{ status: 'expired' }, { status: 'revoked' }] });
  });

  test('revokeInvitation revokes once and resendInvitation sends what is pending; what is settled is in no state to be sent or revoked', async () => {
    const ann = await api.person();
    const org = await api.org(ann);
    const id = idIn((await invite(org.path, ann.cookie, 'gone@people.test')).body['invitation']);
    expect(await api.ask('DELETE', `${org.path}/invitations/${id}`, { cookie: ann.cookie })).toMatchObject({ status: 200, body: { deleted: true, invitationId: id, invitation: { status: 'revoked' } } });
    expect(await api.ask('DELETE', `${org.path}/invitations/${id}`, { cookie: ann.cookie })).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    expect(await api.ask('POST', `${org.path}/invitations/${id}/resend`, { cookie: ann.cookie })).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
    const other = await api.org(ann);
    expect((await api.ask('DELETE', `${other.path}/invitations/${id}`, { cookie: ann.cookie })).status).toBe(404);
  });

  test('nobody invites to a role above their own; four pending are one too many', async () => {
    const ann = await api.person();
    const org = await api.org(ann);
    const admin = await api.member(org, 'admin');
    expect(await invite(org.path, admin.cookie, 'x@people.test', 'owner')).toMatchObject({ status: 403, body: { required: 'owner' } });
    await invite(org.path, ann.cookie, 'boss@people.test', 'owner');
    expect(await invite(org.path, admin.cookie, 'boss@people.test', 'viewer')).toMatchObject({ status: 403, body: { required: 'owner' } });
    await api.database.pool.query(`update invitation set status = 'canceled' where email = 'boss@people.test'`);
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await invite(org.path, admin.cookie, `p${i}@people.test`)).status);
    expect(statuses).toEqual([200, 200, 200, 402]);
    expect((await invite(org.path, admin.cookie, 'p1@people.test')).status).toBe(200);
  });
});

describe('without account mail, where signing up needs an invitation', () => {
  const api = withIdentityApi({ ACCOUNT_MAIL: 'off', SIGNUP_MODE: 'invite' });
  const body = { displayName: 'Bob', password: 'a good long passphrase' };

  test('the link is handed over once; signing up with it makes user, membership and session at once', async () => {
    const ann = await makePerson();
    const org = await api.org(ann);
    const made = await api.ask('POST', `${org.path}/invitations`, { cookie: ann.cookie, body: { email: 'bob@invited.test', role: 'viewer' }, headers: { 'idempotency-key': 'k' } });
    const token = new URL(String(made.body['acceptUrl'])).searchParams.get('token');
    const replay = await api.ask('POST', `${org.path}/invitations`, { cookie: ann.cookie, body: { email: 'bob@invited.test', role: 'viewer' }, headers: { 'idempotency-key': 'k' } });
    expect(replay.body).toMatchObject({ invitation: made.body['invitation'], acceptUrl: null });
    const signUp = (more: object) => api.ask('POST', '/api/auth/sign-up', { body: { ...body, ...more } });
    const refused = { status: 403, body: { code: 'forbidden', required: 'invitation' }, cookie: null };
    expect(await signUp({ email: 'bob@invited.test' })).toMatchObject(refused);
    expect(await signUp({ email: 'eve@invited.test', invitationToken: token })).toMatchObject(refused);
    expect(await signUp({ email: 'bob@invited.test', invitationToken: 'wrong' })).toMatchObject(refused);
    const joined = await signUp({ email: 'Bob@invited.test', invitationToken: token });
    expect(joined).toMatchObject({ status: 200, body: { user: { email: 'bob@invited.test', emailVerified: true }, memberships: [{ orgId: org.orgId, role: 'viewer' }] } });
    expect((await api.ask('GET', org.path, { cookie: cookieOf(joined) })).status).toBe(200);
    expect((await api.ask('GET', `${org.path}/audit?action=signUp`, { cookie: ann.cookie })).body).toMatchObject({ auditEntries: [{ target: { type: 'member', id: idIn(joined.body['user']) }, actor: { displayName: 'Bob' } }] });
    expect(await signUp({ email: 'bob@invited.test', invitationToken: token })).toMatchObject(refused);
  });

  /** As an operator would: nobody can sign up here without an invitation. */
  async function makePerson() {
    const email = 'first@invited.test';
    const passwordHash = await api.deps.engine.hashPassword(body.password);
    await inTransaction(api.database, (tx) => api.deps.engine.createUser(tx, { email, displayName: 'First', passwordHash, emailVerified: true }));
    const answer = await api.ask('POST', '/api/auth/sign-in', { body: { email, password: body.password } });
    return { email, password: body.password, displayName: 'First', userId: String(field(answer.body['user'], 'id')), cookie: cookieOf(answer) };
  }
});
