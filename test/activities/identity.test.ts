import { pino } from 'pino';
import { createIdentityActivities, type IdentityActivityDeps } from '../../activities/identity';
import { createMetrics } from '../../src/core/metrics';
import { newId, type Id } from '../../src/core/ids';
import { openOperation } from '../../src/operations/store';
import { inTransaction } from '../../src/db/transaction';
import type { AccountMailMessage } from '../../src/identity/ports';
import { claimDueMails, createMailDispatcher } from '../../src/identity/service';
import { MockActivityEnvironment } from '@temporalio/testing';
import { withIdentityApi } from '../support/identity-api';

const api = withIdentityApi();
const live = new Map<string, number>();
const sent: AccountMailMessage[] = [];

function activities(mailer: IdentityActivityDeps['accountMailer'] = { send: async (message) => void sent.push(message) }) {
  return createIdentityActivities({
    db: api.database, config: api.config, secrets: api.deps.secrets, log: pino({ level: 'silent' }), metrics: createMetrics('test'), accountMailer: mailer,
    productDeletions: [{ kind: 'postgres_service', requestDeletion: async (_tx, id) => live.set(id, Math.max(0, (live.get(id) ?? 0) - 1)), countLive: async (_db, ids) => ids.reduce((sum, id) => sum + (live.get(id) ?? 0), 0) }],
  });
}
const one = async (sql: string, ...values: unknown[]): Promise<unknown> => (await api.database.pool.query(sql, values)).rows[0];
const mailOf = (email: string) => one(`select status, sealed_link is null as wiped, error_code, sent_at is not null as sent from account_mail where recipient = $1`, email);
const mailId = async (email: string) => String(Reflect.get(Object(await one('select id from account_mail where recipient = $1', email)), 'id'));

async function operation(resourceId: string, orgId: Id<'org'>): Promise<string> {
  return (await inTransaction(api.database, (tx) => openOperation(tx, { orgId, projectId: null, kind: 'identity.test', resourceId, summary: 'test', requestId: null }))).id;
}
const asOrg = (id: string): Id<'org'> => `org_${id.slice(4)}`;
const asProject = (id: string): Id<'prj'> => `prj_${id.slice(4)}`;

test('a mail is delivered with its link, marked and wiped; delivered again after that it does not leave', async () => {
  const ann = await api.person();
  const token = await api.mailedToken(ann.email);
  const run = { mailId: await mailId(ann.email) };
  await activities().deliverAccountMail(run);
  expect(sent.at(-1)).toMatchObject({ id: run.mailId, to: ann.email, text: expect.stringContaining(`/verify-email?token=${token}`) });
  for (let i = 0; i < 2; i++) await activities().markAccountMailSent(run);
  expect(await mailOf(ann.email)).toEqual({ status: 'sent', wiped: true, error_code: null, sent: true });
  const before = sent.length;
  await activities().deliverAccountMail(run);
  await activities().markAccountMailFailed({ ...run, code: 'backend_error' });
  expect(sent).toHaveLength(before);
  expect(await mailOf(ann.email)).toMatchObject({ status: 'sent' });
});

test('a mail that is given up is wiped as well', async () => {
  const ann = await api.person();
  await activities().markAccountMailFailed({ mailId: await mailId(ann.email), code: 'deadline_exceeded' });
  expect(await mailOf(ann.email)).toEqual({ status: 'failed', wiped: true, error_code: 'deadline_exceeded', sent: false });
});

test('a mail nobody started comes due, goes to one relay, and not again while its run lasts', async () => {
  const ann = await api.person();
  const id = await mailId(ann.email);
  expect(await claimDueMails(api.database.prisma, 1_000)).not.toContain(id);
  await api.database.pool.query(`update account_mail set next_attempt_at = now() - interval '1 second'`);
  const claims = (await Promise.all([claimDueMails(api.database.prisma, 1_000), claimDueMails(api.database.prisma, 1_000)])).flat();
  expect(claims.filter((claimed) => claimed === id)).toHaveLength(1);
  const started: string[] = [];
  const dispatcher = createMailDispatcher({ db: api.database, log: pino({ level: 'silent' }), start: async (mail) => void started.push(mail) });
  dispatcher.start(id);
  await dispatcher.drain();
  expect(started).toEqual([id]);
  await api.database.pool.query(`update account_mail set next_attempt_at = now() - interval '1 second'`);
  expect(await claimDueMails(api.database.prisma, 1_000)).not.toContain(id);
});

test('deleting a project: products are asked until nothing is left, then its slug is free; each step twice is as once', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  const run = { projectId: asProject(org.projectId), operationId: await operation(org.projectId, asOrg(org.orgId)) };
  await api.ask('DELETE', `${org.path}/projects/default`, { cookie: ann.cookie });
  live.set(org.projectId, 2);
  const steps = activities();
  await steps.requestProductDeletions(run);
  await expect(steps.awaitProductsGone(run)).rejects.toThrow('1 of the project’s resources are not gone yet.'.replace('’', "'"));
  await steps.awaitProductsGone(run);
  for (let i = 0; i < 2; i++) await steps.markProjectDeleted(run);
  expect(await one('select status, slug from project where id = $1', org.projectId)).toEqual({ status: 'deleted', slug: null });
  expect(await one('select state from operation where id = $1', run.operationId)).toEqual({ state: 'succeeded' });
  expect(await one(`select count(*)::int as entries from audit_entry where chain = $1 and actor_kind = 'system' and action = 'deleteProject'`, org.orgId)).toEqual({ entries: 1 });
  expect((await api.ask('GET', `${org.path}/projects/default`, { cookie: ann.cookie })).status).toBe(404);
  expect((await api.ask('POST', `${org.path}/projects`, { cookie: ann.cookie, body: { displayName: 'Default' } })).body).toMatchObject({ project: { slug: 'default' } });
});

test('deleting an organisation: its projects first, billing ended, slug free, row kept; each step twice is as once', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  await api.ask('DELETE', `${org.path}?cascade=true`, { cookie: ann.cookie });
  const run = { orgId: asOrg(org.orgId), operationId: await operation(org.orgId, asOrg(org.orgId)) };
  const steps = activities();
  for (let i = 0; i < 2; i++) await steps.requestProjectDeletions(run);
  expect(await one(`select count(*)::int as operations from operation where resource_id = $1 and kind = 'identity.delete_project'`, org.projectId)).toEqual({ operations: 1 });
  await expect(steps.awaitProjectsGone(run)).rejects.toThrow('not gone yet');
  await steps.markProjectDeleted({ projectId: asProject(org.projectId), operationId: newId('op') });
  await steps.awaitProjectsGone(run);
  for (let i = 0; i < 2; i++) await steps.closeOrganizationBilling(run);
  expect(await one('select status from subscription where resource_id = $1', org.orgId)).toEqual({ status: 'canceled' });
  for (let i = 0; i < 2; i++) await steps.markOrganizationDeleted(run);
  expect(await one('select status, slug, name from organization where id = $1', org.orgId)).toEqual({ status: 'deleted', slug: null, name: 'Acme' });
  expect((await api.ask('GET', org.path, { cookie: ann.cookie })).status).toBe(404);
  expect((await api.ask('GET', '/api/orgs', { cookie: ann.cookie })).body).toMatchObject({ orgs: [] });
  expect((await api.ask('DELETE', '/api/auth/user', { cookie: ann.cookie })).status).toBe(200);
  expect((await api.ask('POST', '/api/orgs', { cookie: (await api.person()).cookie, body: { displayName: 'X', slug: org.slug } })).status).toBe(200);
});

test('a refusal of billing is written into the audit and holds nothing up', async () => {
  const ann = await api.person();
  const org = await api.org(ann);
  await activities().recordBillingFailure({ orgId: asOrg(org.orgId), operationId: newId('op'), code: 'backend_error' });
  const { body } = await api.ask('GET', `${org.path}/audit?action=closeOrganizationBilling`, { cookie: ann.cookie });
  expect(body).toMatchObject({ auditEntries: [{ actor: { kind: 'system' }, changes: [{ field: 'error', to: 'backend_error' }] }] });
});

test('expireIdentityRows drops what has ended and nothing else', async () => {
  const [ann, bob] = [await api.person(), await api.person()];
  const org = await api.org(ann);
  await api.ask('POST', `${org.path}/invitations`, { cookie: ann.cookie, body: { email: 'x@ended.test', role: 'viewer' } });
  await api.ask('PATCH', org.path, { cookie: ann.cookie, body: { slug: `moved-${org.slug}` } });
  await api.database.pool.query(`update session set "expiresAt" = now() where "userId" = $1`, [bob.userId]);
  await api.database.pool.query(`update verification set "expiresAt" = now() where value = $1`, [bob.userId]);
  await api.database.pool.query(`update invitation set "expiresAt" = now() where email = 'x@ended.test'`);
  await api.database.pool.query('update slug_alias set reserved_until = now() where slug = $1', [org.slug]);
  await api.database.pool.query(`insert into setup_token (digest, expires_at) values ('ended', now()), ('alive', now() + interval '1 hour')`);
  await new MockActivityEnvironment().run(activities().expireIdentityRows);
  const left = (sql: string, ...values: unknown[]) => one(`select count(*)::int as left from ${sql}`, ...values);
  expect(await left('session where "userId" = any($1)', [ann.userId, bob.userId])).toEqual({ left: 1 });
  expect(await left('verification where value = any($1)', [ann.userId, bob.userId])).toEqual({ left: 1 });
  expect(await one(`select status from invitation where email = 'x@ended.test'`)).toEqual({ status: 'expired' });
  expect(await left('slug_alias where slug = $1', org.slug)).toEqual({ left: 0 });
  expect(await left('setup_token')).toEqual({ left: 1 });
});

test('verifyAuditChains counts the chains that are not whole', async () => {
  const org = await api.org(await api.person());
  const environment = new MockActivityEnvironment();
  expect(await environment.run(activities().verifyAuditChains)).toEqual({ broken: 0 });
  await api.database.pool.query('update audit_head set seq = seq + 1 where chain = $1', [org.orgId]);
  expect(await environment.run(activities().verifyAuditChains)).toEqual({ broken: 1 });
});
