import { z } from 'zod';
import { newId } from '../../src/core/ids';
import { settleOperation } from '../../src/operations/store';
import { withWorkApi } from '../support/work-api';

const api = withWorkApi();
const answer = z.object({ ok: z.literal(true), operations: z.array(z.object({ id: z.string(), state: z.string() })), nextCursor: z.string().nullable(), hasMore: z.boolean() });

async function list(path: string) {
  return answer.parse((await api.get(path)).body);
}

const idsOf = ({ operations }: z.infer<typeof answer>) => operations.map(({ id }) => id);

test('lists by resource and by state, newest first', async () => {
  const resourceId = newId('pg');
  const [first, second] = [await api.accept({ resourceId }), await api.accept({ resourceId, kind: 'postgres.delete' })];
  const other = await api.accept();
  await settleOperation(api.database.prisma, first.id, 'succeeded');
  expect(idsOf(await list(`/projects/default/operations?resourceId=${resourceId}`))).toEqual([second.id, first.id]);
  expect(idsOf(await list(`/projects/default/operations?resourceId=${resourceId}&state=succeeded`))).toEqual([first.id]);
  expect(idsOf(await list('/projects/default/operations?state=pending'))).toEqual([other.id, second.id]);
});

test('pages without gap or repeat while rows are added, also under the organisation', async () => {
  const resourceId = newId('pg');
  const accepted: string[] = [];
  for (let i = 0; i < 7; i += 1) accepted.unshift((await api.accept({ resourceId, kind: 'identity.delete_project' })).id);
  for (const prefix of ['/projects/default', '']) {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: z.infer<typeof answer> = await list(`${prefix}/operations?resourceId=${resourceId}&limit=3${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...idsOf(page));
      expect(page.hasMore).toBe(page.nextCursor !== null);
      if (seen.length === 3 && prefix === '') await api.accept({ resourceId, kind: 'identity.delete_project' });
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(accepted);
  }
});

test("a project's list holds its own work alone, the organisation's all of it, and nobody else's is in either", async () => {
  const kinds = { ofProject: await api.accept(), ofOrg: await api.accept({ projectId: null }), ofOther: await api.accept({ projectId: newId('prj') }) };
  const foreign = await api.accept({ orgId: api.foreign.orgId, projectId: api.foreign.projectId });
  const [project, org] = [idsOf(await list('/projects/default/operations?limit=100')), idsOf(await list('/operations?limit=100'))];
  expect(project).toContain(kinds.ofProject.id);
  expect(project).not.toContain(kinds.ofOrg.id);
  expect(project).not.toContain(kinds.ofOther.id);
  for (const { id } of Object.values(kinds)) expect(org).toContain(id);
  expect([...project, ...org]).not.toContain(foreign.id);
});

test('refuses an unknown state, a bad limit and a cursor of another list', async () => {
  const { nextCursor } = await list('/projects/default/operations?limit=1');
  for (const [query, code] of [
    ['state=done', 'validation_error'], ['limit=0', 'validation_error'], ['limit=101', 'validation_error'],
    ['cursor=nonsense', 'invalid_cursor'], [`state=pending&cursor=${nextCursor}`, 'invalid_cursor'],
  ]) expect(await api.get(`/projects/default/operations?${query}`)).toMatchObject({ status: 400, body: { code } });
  expect(await api.get(`/operations?cursor=${nextCursor}`)).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
});
