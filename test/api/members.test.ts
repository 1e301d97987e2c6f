import { roles } from '../../src/core/caller';
import { field, withIdentityApi } from '../support/identity-api';
import { rounds } from '../support/rounds';

const api = withIdentityApi();

test('listMembers shows who is in and as what; a viewer may look', async () => {
  const ann = await api.person('Ann');
  const org = await api.org(ann);
  const viewer = await api.member(org, 'viewer');
  const { body } = await api.ask('GET', `${org.path}/members`, { cookie: viewer.cookie });
  expect(body).toMatchObject({ members: [{ id: viewer.userId, email: viewer.email, role: 'viewer' }, { id: ann.userId, displayName: 'Ann', role: 'owner', createdAt: expect.any(String) }], hasMore: false });
});

test('updateMember: nobody grants or changes a role above their own', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const admin = await api.member(org, 'admin');
  const change = (cookie: string, userId: string, role: string) => api.ask('PATCH', `${org.path}/members/${userId}`, { cookie, body: { role } });
  for (const role of roles) {
    const target = await api.member(org, 'viewer');
    const answer = await change(admin.cookie, target.userId, role);
    expect({ role, status: answer.status }).toEqual({ role, status: role === 'owner' ? 403 : 200 });
    if (role !== 'owner') expect(answer.body).toMatchObject({ member: { id: target.userId, role } });
  }
  expect(await change(admin.cookie, ann.userId, 'viewer')).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'owner' } });
  expect(await change(ann.cookie, 'usr_01kahq3v7ye5fr2m8d4xw0zt6c', 'viewer')).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect(await change(ann.cookie, admin.userId, 'owner,member')).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await change(ann.cookie, ann.userId, 'admin')).toMatchObject({ status: 400, body: { code: 'last_owner' } });
  const member = await api.member(org, 'member');
  expect(await change(member.cookie, admin.userId, 'viewer')).toMatchObject({ status: 403, body: { required: 'members:manage' } });
});

test('removeMember: everybody may leave, others need members:manage, and who is out is out at once', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const [viewer, member, admin] = [await api.member(org, 'viewer'), await api.member(org, 'member'), await api.member(org, 'admin')];
  const remove = (cookie: string, userId: string) => api.ask('DELETE', `${org.path}/members/${userId}`, { cookie });
  expect(await remove(member.cookie, viewer.userId)).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'members:manage' } });
  expect(await remove(viewer.cookie, viewer.userId)).toMatchObject({ status: 200, body: { deleted: true, userId: viewer.userId } });
  expect((await api.ask('GET', org.path, { cookie: viewer.cookie })).status).toBe(404);
  expect(await remove(admin.cookie, ann.userId)).toMatchObject({ status: 403, body: { required: 'owner' } });
  expect((await remove(admin.cookie, member.userId)).status).toBe(200);
  expect((await api.ask('GET', org.path, { cookie: member.cookie })).status).toBe(404);
  expect(await remove(ann.cookie, ann.userId)).toMatchObject({ status: 400, body: { code: 'last_owner' } });
});

test('two owners who leave, demote, remove each other or delete their accounts at once leave exactly one behind', async () => {
  const ways = [
    (path: string, me: Who) => api.ask('DELETE', `${path}/members/${me.userId}`, { cookie: me.cookie }),
    (path: string, me: Who) => api.ask('PATCH', `${path}/members/${me.userId}`, { cookie: me.cookie, body: { role: 'viewer' } }),
    (path: string, _me: Who, other: Who) => api.ask('DELETE', `${path}/members/${other.userId}`, { cookie: _me.cookie }),
    (_path: string, me: Who) => api.ask('DELETE', '/api/auth/user', { cookie: me.cookie }),
  ];
  for (let round = 0; round < rounds(50, 1_000); round++) {
    const ann = await api.person();
    const org = await api.org(ann);
    const bob = await api.member(org, 'owner');
    const [one, two] = [ways[round % 4], ways[Math.floor(round / 4) % 4]];
    const answers = await Promise.all([one?.(org.path, ann, bob), two?.(org.path, bob, ann)]);
    const { rows } = await api.database.pool.query(`select count(*)::int as owners from member where "organizationId" = $1 and role = 'owner'`, [org.orgId]);
    expect({ round, statuses: answers.map((answer) => answer?.status), owners: field(rows[0], 'owners') }).toEqual({ round, statuses: expect.arrayContaining([200]), owners: 1 });
  }
}, rounds(120_000, 1_800_000));

test('the database itself refuses an organisation without an owner, and a role that is none', async () => {
  const org = await api.org(await api.person());
  await expect(api.database.pool.query('delete from member where "organizationId" = $1', [org.orgId])).rejects.toThrow('last_owner');
  await expect(api.database.pool.query(`update member set role = 'owner,member' where "organizationId" = $1`, [org.orgId])).rejects.toThrow('member_role_check');
});

type Who = { userId: string; cookie: string };
