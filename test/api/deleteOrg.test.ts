import { field, withIdentityApi } from '../support/identity-api';

const live = new Map<string, number>();
const api = withIdentityApi({}, [
  { kind: 'postgres_service', requestDeletion: async (_tx, projectId) => live.delete(projectId), countLive: async (_db, projectIds) => projectIds.reduce((sum, id) => sum + (live.get(id) ?? 0), 0) },
]);
const operationOf = (body: Record<string, unknown>) => String(field(body['operation'], 'id'));

test('deleteProject accepts once, again gives the same operation; meanwhile it can only be read', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const path = `${org.path}/projects/default`;
  const first = await api.ask('DELETE', path, { cookie: ann.cookie });
  expect(first).toMatchObject({ status: 202, body: { project: { id: org.projectId, status: 'deleting' }, operation: { kind: 'identity.delete_project', resourceId: org.projectId, state: 'pending' } } });
  expect(first.headers.get('location')).toBe(`/v1${path}`);
  expect(first.headers.get('link')).toBe(`</v1${org.path}/operations/${operationOf(first.body)}>; rel="monitor"`);
  const again = await Promise.all(Array.from({ length: 4 }, () => api.ask('DELETE', path, { cookie: ann.cookie })));
  expect(again.map(({ status, body }) => [status, operationOf(body)])).toEqual(again.map(() => [202, operationOf(first.body)]));
  expect((await api.ask('GET', path, { cookie: ann.cookie })).body).toMatchObject({ project: { status: 'deleting' } });
  expect(await api.ask('PATCH', path, { cookie: ann.cookie, body: { displayName: 'X' } })).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  expect(api.started.filter(({ resourceId }) => resourceId === org.projectId)).toMatchObject(
    Array.from({ length: 1 }, () => ({ workflow: 'deleteProject', workflowId: `identity-delete-project/${org.projectId}`, taskQueue: 'system' })));
});

test('what is live stands in the way unless it is to go as well', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  live.set(org.projectId, 2);
  const refused = { status: 400, body: { code: 'conflict', conflicts: [{ kind: 'postgres_service', count: 2 }] } };
  expect(await api.ask('DELETE', `${org.path}/projects/default`, { cookie: ann.cookie })).toMatchObject(refused);
  expect(await api.ask('DELETE', org.path, { cookie: ann.cookie })).toMatchObject(refused);
  expect((await api.ask('GET', org.path, { cookie: ann.cookie })).body).toMatchObject({ org: { status: 'active' } });
  expect((await api.ask('DELETE', `${org.path}/projects/default?cascade=true`, { cookie: ann.cookie })).status).toBe(202);
});

test('deleteOrg needs a fresh session of an owner, accepts once, and meanwhile only reads work', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const admin = await api.member(org, 'admin');
  expect(await api.ask('DELETE', org.path, { cookie: admin.cookie })).toMatchObject({ status: 403, body: { code: 'forbidden', required: 'org:delete' } });
  await api.database.pool.query(`update session set fresh_at = now() - interval '1 hour' where "userId" = $1`, [ann.userId]);
  expect(await api.ask('DELETE', org.path, { cookie: ann.cookie })).toMatchObject({ status: 403, body: { code: 'reauthentication_required' } });
  await api.ask('POST', '/api/auth/reauthenticate', { cookie: ann.cookie, body: { password: ann.password } });
  const first = await api.ask('DELETE', org.path, { cookie: ann.cookie });
  expect(first).toMatchObject({ status: 202, body: { org: { id: org.orgId, status: 'deleting', role: 'owner' }, operation: { kind: 'identity.delete_org', resourceId: org.orgId } } });
  expect(operationOf((await api.ask('DELETE', org.path, { cookie: ann.cookie })).body)).toBe(operationOf(first.body));
  expect((await api.ask('GET', `${org.path}/members`, { cookie: ann.cookie })).status).toBe(200);
  expect(await api.ask('POST', `${org.path}/projects`, { cookie: ann.cookie, body: { displayName: 'X' } })).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
  expect(await api.ask('DELETE', `${org.path}/members/${admin.userId}`, { cookie: admin.cookie })).toMatchObject({ status: 400, body: { code: 'invalid_state' } });
});
