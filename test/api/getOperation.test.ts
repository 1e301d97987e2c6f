import { newId } from '../../src/core/ids';
import { finishStep, settleOperation, startStep } from '../../src/operations/store';
import { withWorkApi } from '../support/work-api';

const api = withWorkApi();
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

test('shows kind, resource, state, steps and error as the contract states', async () => {
  const { id, resourceId } = await api.accept();
  await startStep(api.database, id, 'ensurePlacement');
  await finishStep(api.database, id, 'ensurePlacement', 'succeeded');
  await startStep(api.database, id, 'ensureInstance');
  const path = `/projects/default/operations/${id}`;
  expect(await api.get(path)).toEqual({ status: 200, body: { ok: true, operation: {
    id, kind: 'postgres.provision', resourceId, state: 'running', error: null, createdAt: time, updatedAt: time, startedAt: time, finishedAt: null,
    steps: [
      { name: 'ensurePlacement', state: 'succeeded', startedAt: time, finishedAt: time },
      { name: 'ensureInstance', state: 'running', startedAt: time, finishedAt: null },
    ],
  } } });
  await settleOperation(api.database.prisma, id, 'failed', { code: 'no_capacity', message: 'No host of the region has room.' });
  expect((await api.get(path)).body['operation']).toMatchObject({
    state: 'failed', finishedAt: time, error: { code: 'no_capacity', message: 'No host of the region has room.' },
    steps: [{ state: 'succeeded' }, { name: 'ensureInstance', state: 'failed', finishedAt: time }],
  });
});

test('a long poll answers when the state becomes final, for every one who waits', async () => {
  const { id } = await api.accept();
  const polls = [1, 2, 3].map(() => api.get(`/projects/default/operations/${id}?wait=30`));
  let answered = 0;
  for (const poll of polls) void poll.then(() => { answered += 1; });
  await startStep(api.database, id, 'ensurePlacement');
  expect((await api.get(`/projects/default/operations/${id}`)).body['operation']).toMatchObject({ state: 'running' });
  expect(answered).toBe(0);
  await settleOperation(api.database.prisma, id, 'succeeded');
  for (const poll of polls) expect((await poll).body['operation']).toMatchObject({ id, state: 'succeeded' });
}, 20_000);

test('a long poll on final work answers at once; one that waits in vain answers with the state as it is', async () => {
  const settled = await api.accept();
  await settleOperation(api.database.prisma, settled.id, 'cancelled');
  expect((await api.get(`/projects/default/operations/${settled.id}?wait=30`)).body['operation']).toMatchObject({ state: 'cancelled' });
  const pending = await api.accept();
  expect((await api.get(`/projects/default/operations/${pending.id}?wait=1`)).body['operation']).toMatchObject({ state: 'pending' });
}, 20_000);

test('a long poll outlives the loss of the listening connection', async () => {
  const { id } = await api.accept();
  const poll = api.get(`/projects/default/operations/${id}?wait=30`);
  await api.get(`/projects/default/operations/${id}`);
  await api.database.pool.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'holdfast-test-listen'`);
  await settleOperation(api.database.prisma, id, 'succeeded');
  expect((await poll).body['operation']).toMatchObject({ state: 'succeeded' });
}, 20_000);

test('also answers under the organisation, there for the work of all its projects and its own', async () => {
  const [ofProject, ofOrg] = [await api.accept(), await api.accept({ projectId: null, kind: 'identity.delete_org' })];
  expect((await api.get(`/operations/${ofProject.id}`)).body['operation']).toMatchObject({ id: ofProject.id });
  expect((await api.get(`/operations/${ofOrg.id}`)).body['operation']).toMatchObject({ id: ofOrg.id });
  expect(await api.get(`/projects/default/operations/${ofOrg.id}`)).toMatchObject({ status: 404, body: { code: 'not_found' } });
});

test('work of another organisation, an unknown id and a malformed one are all the same 404', async () => {
  const { id } = await api.accept();
  const bodies = [];
  for (const [tenant, asked] of [[api.foreign, id], [api.tenant, newId('op')], [api.tenant, 'nonsense'], [api.tenant, '%00']] as const) {
    for (const prefix of ['/projects/default', '']) {
      const { status, body } = await api.get(`${prefix}/operations/${asked}?wait=5`, { tenant });
      expect(status).toBe(404);
      bodies.push({ ...body, requestId: '' });
    }
  }
  expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
});

test('wait is 0 to 30 in digits', async () => {
  const { id } = await api.accept();
  for (const wait of ['31', '-1', '1.5', 'x', '1&wait=2', '']) {
    expect(await api.get(`/projects/default/operations/${id}?wait=${wait}`)).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  }
  expect(await api.get(`/projects/default/operations/${id}?wait=0`)).toMatchObject({ status: 200 });
});

test('needs a session', async () => {
  const { id } = await api.accept();
  expect(await api.get(`/projects/default/operations/${id}`, { as: null })).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
});

test('a drain answers everyone who waits at once with what is known', async () => {
  const { id } = await api.accept();
  const poll = api.get(`/projects/default/operations/${id}?wait=30`);
  await api.get(`/projects/default/operations/${id}`);
  api.watch.close();
  expect((await poll).body['operation']).toMatchObject({ id, state: 'pending' });
}, 20_000);
