import { randomBytes } from 'node:crypto';
import { systemCause } from '../../src/core/caller';
import { inTransaction } from '../../src/db/transaction';
import { appendAudit, verifyAllChains } from '../../src/identity/service';
import { field, idIn, withIdentityApi, type Person } from '../support/identity-api';

const api = withIdentityApi();
const entriesOf = async (path: string, who: Person, query = '') => {
  const { body } = await api.ask('GET', `${path}/audit${query}`, { cookie: who.cookie });
  return Array.isArray(body['auditEntries']) ? body['auditEntries'].map((entry: unknown) => entry) : [];
};
const verify = async (path: string, who: Person) => (await api.ask('GET', `${path}/audit/verify`, { cookie: who.cookie })).body;

test('listAuditEntries: each write is one entry naming who, what, where and the change; reads are none', async () => {
  const ann = await api.person('Ann');
  const org = await api.org(ann, 'Audited');
  await api.ask('GET', org.path, { cookie: ann.cookie });
  const changed = await api.ask('PATCH', org.path, { cookie: ann.cookie, body: { displayName: 'Renamed' }, headers: { 'x-forwarded-for': '198.51.100.9' } });
  const project = await api.ask('POST', `${org.path}/projects`, { cookie: ann.cookie, body: { displayName: 'Two' } });
  const [second, first, create, ...rest] = await entriesOf(org.path, ann);
  expect(rest).toEqual([]);
  expect(create).toMatchObject({ seq: 1, action: 'createOrg', target: { type: 'org', id: org.orgId }, prevHash: '0'.repeat(64) });
  expect(first).toMatchObject({
    seq: 2, action: 'updateOrg', outcome: 'done', actor: { kind: 'user', id: ann.userId, displayName: 'Ann' }, projectId: null, target: { type: 'org', id: org.orgId },
    changes: [{ field: 'displayName', from: 'Audited', to: 'Renamed' }], requestId: changed.headers.get('x-request-id'), ip: '198.51.100.9', prevHash: field(create, 'hash'),
  });
  expect(second).toMatchObject({ seq: 3, action: 'createProject', projectId: idIn(project.body['project']), prevHash: field(first, 'hash') });
});

test('filters, pages and cursors', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  for (let i = 0; i < 4; i++) await api.ask('PATCH', org.path, { cookie: ann.cookie, body: { displayName: `N${i}` } });
  expect(await entriesOf(org.path, ann, '?action=updateOrg')).toHaveLength(4);
  expect(await entriesOf(org.path, ann, `?actorId=${ann.userId}&targetId=${org.orgId}&outcome=done`)).toHaveLength(5);
  expect(await entriesOf(org.path, ann, '?outcome=denied')).toEqual([]);
  expect(await entriesOf(org.path, ann, '?to=2020-01-01T00:00:00Z')).toEqual([]);
  const first = await api.ask('GET', `${org.path}/audit?limit=3`, { cookie: ann.cookie });
  const rest = await api.ask('GET', `${org.path}/audit?limit=3&cursor=${String(first.body['nextCursor'])}`, { cookie: ann.cookie });
  expect([first.body['auditEntries'], rest.body['auditEntries']].flat().map((entry) => field(entry, 'seq'))).toEqual([5, 4, 3, 2, 1]);
  expect(rest.body).toMatchObject({ hasMore: false, nextCursor: null });
  expect(await api.ask('GET', `${org.path}/audit?limit=3&action=x&cursor=${String(first.body['nextCursor'])}`, { cookie: ann.cookie })).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
});

test('a member’s 403 is one denied entry per action and minute; a stranger’s 404 is none', async () => {
  const [ann, eve] = [await api.person(), await api.person()];
  const org = await api.org(ann);
  const viewer = await api.member(org, 'viewer');
  for (let i = 0; i < 3; i++) await api.ask('PATCH', org.path, { cookie: viewer.cookie, body: { displayName: 'X' } });
  await api.ask('DELETE', `${org.path}/members/${ann.userId}`, { cookie: viewer.cookie });
  await api.ask('PATCH', org.path, { cookie: eve.cookie, body: { displayName: 'X' } });
  const denied = await entriesOf(org.path, ann, '?outcome=denied');
  expect(denied.map((entry) => [field(entry, 'action'), field(field(entry, 'actor'), 'id')])).toEqual([['removeMember', viewer.userId], ['updateOrg', viewer.userId]]);
});

test('a rolled-back write leaves no entry; eight writers at once leave one gapless chain', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const orgId = org.orgId.startsWith('org_') ? `org_${org.orgId.slice(4)}` as const : null;
  const append = (fail: boolean) => inTransaction(api.database, async (tx) => {
    appendAudit(tx, { orgId, projectId: null, cause: systemCause('test'), outcome: 'done', target: null, changes: [{ field: 'ü"\\', from: 1.5, to: { b: [1, null], a: '𝄞' } }] });
    if (fail) throw new Error('rolled back');
  });
  await Promise.allSettled(Array.from({ length: 80 }, (_, i) => append(i % 4 === 0)));
  expect(await verify(org.path, ann)).toMatchObject({ verified: true, entries: 61, firstBadSeq: null, headHash: expect.stringMatching(/^[0-9a-f]{64}$/) });
});

test('verifyAuditLog names what was flipped, dropped, swapped or cut off', async () => {
  const ann = await api.person();
  const tamper = async (sql: string) => {
    const org = await api.org(ann);
    for (let i = 0; i < 5; i++) await api.ask('PATCH', org.path, { cookie: ann.cookie, body: { displayName: `N${i}` } });
    const client = await api.database.pool.connect();
    try {
      await client.query(`begin; alter table audit_entry disable trigger user; ${sql.replaceAll('$1', `'${org.orgId}'`)}; alter table audit_entry enable trigger user; commit`);
    } finally {
      client.release();
    }
    const { verified, firstBadSeq } = await verify(org.path, ann);
    await api.database.pool.query('update audit_head set verified_seq = seq where chain = $1', [org.orgId]);
    return { verified, firstBadSeq };
  };
  expect(await tamper(`update audit_entry set action = 'other' where chain = $1 and seq = 3`)).toEqual({ verified: false, firstBadSeq: 3 });
  expect(await tamper(`update audit_entry set changes = '[]' where chain = $1 and seq = 2`)).toEqual({ verified: false, firstBadSeq: 2 });
  expect(await tamper(`delete from audit_entry where chain = $1 and seq = 4`)).toEqual({ verified: false, firstBadSeq: 4 });
  expect(await tamper(`delete from audit_entry where chain = $1 and seq = 6`)).toEqual({ verified: false, firstBadSeq: 6 });
  expect(await tamper(`update audit_entry set seq = 100 - seq where chain = $1 and seq in (3, 4); update audit_entry set seq = case seq when 97 then 4 else 3 end where chain = $1 and seq > 90`)).toEqual({ verified: false, firstBadSeq: 3 });
  expect(await tamper('select 1')).toEqual({ verified: true, firstBadSeq: null });
}, 60_000);

test('the daily check begins where the last one ended and finds what is not whole', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  await verifyAllChains(api.database.prisma, () => undefined);
  const { rows } = await api.database.pool.query('select verified_seq::int as verified, seq::int as seq from audit_head where chain = $1', [org.orgId]);
  expect(rows).toEqual([{ verified: 1, seq: 1 }]);
  await api.ask('PATCH', org.path, { cookie: ann.cookie, body: { displayName: 'X' } });
  await api.database.pool.query(`update audit_head set hash = $2 where chain = $1`, [org.orgId, randomBytes(32).toString('hex')]);
  expect((await verifyAllChains(api.database.prisma, () => undefined)).filter(({ chain }) => chain === org.orgId)).toEqual([{ chain: org.orgId, firstBadSeq: 2 }]);
});

test('the database refuses to change, drop or empty the log', async () => {
  await api.org(await api.person());
  for (const sql of ['update audit_entry set seq = seq', 'delete from audit_entry', 'truncate audit_entry']) {
    await expect(api.database.pool.query(sql)).rejects.toThrow('audit entries are never changed');
  }
});
