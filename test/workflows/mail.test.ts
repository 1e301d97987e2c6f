import { ApplicationFailure } from '@temporalio/common';
import { pino } from 'pino';
import { createMailDeletionActivities } from '../../activities/mail/deletion';
import { createMailDomainActivities } from '../../activities/mail/domains';
import { activityInterceptor } from '../../activities/steps';
import { withApi } from '../support/api';
import { insertMessage } from '../support/mail-rows';
import { withTemporal } from '../support/temporal';
import { createTenant } from '../support/tenant';
import { torture, type World } from '../support/torture';
import { withWorkflowLab } from '../support/workflow-lab';

const server = withTemporal();
const lab = withWorkflowLab(server);
const input = { domainId: 'dom_01kahq3v7ye5fr2m8d4xw0zt6c', operationId: 'op_01kahq3v7ye5fr2m8d4xw0zt6d' };

test.each(['verified', 'failed', 'suspended', null])('verifyDomain checks as often as the row says and ends when the domain is %s', async (status) => {
  let checks = 0;
  const ensureDomainChecked = async () => {
    checks += 1;
    if (checks === 2) throw ApplicationFailure.create({ type: 'backend_error', message: 'not now', nextRetryDelay: '10ms' });
    return checks < 4 ? { delayMs: 10, status: 'pending' } : { delayMs: null, status };
  };
  expect(await lab.run({ workflow: 'verifyDomain', input, activities: { ensureDomainChecked } })).toMatchObject({ end: 'completed', result: { status, checks: 3 } });
}, 60_000);

test('a waiting verifyDomain is woken by recheck, and one asked again while it ends looks again', async () => {
  const workflowId = `lab/verify-domain-${process.pid}`;
  const handle = () => server.environment.client.workflow.getHandle(workflowId);
  let checks = 0;
  const ensureDomainChecked = async () => {
    checks += 1;
    if (checks === 1) return { delayMs: 3_600_000, status: 'pending' };
    if (checks === 2) await handle().signal('recheck');
    return { delayMs: null, status: 'verified' };
  };
  const running = lab.run({ workflow: 'verifyDomain', input, activities: { ensureDomainChecked }, workflowId });
  for (let waiting = false; !waiting;) waiting = await handle().query<{ checks: number }>('state').then((state) => state.checks === 1, () => false);
  await handle().signal('recheck');
  expect(await running).toMatchObject({ end: 'completed', result: { status: 'verified', checks: 3 } });
}, 60_000);

describe('deleteMailService', () => {
  const api = withApi();
  const tortured = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: api.deps.db, log: pino({ level: 'silent' }) }) });
  const one = async (sql: string, ...values: unknown[]) => (await api.deps.db.pool.query(sql, values)).rows[0];

  test('whatever happens at any step, nothing of it is left, or its operation stays open for another start', async () => {
    const called = await torture(tortured, {
      workflow: 'deleteMailService',
      withoutEnd: ['cancelServiceMessages', 'removeServiceDomains', 'purgeServiceContent', 'markServiceRemoved'],
      begin: async (): Promise<World> => {
        const tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
        const ask = async (method: string, path: string, json?: unknown) => (await api.ask(
          method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/mail${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) })).body;
        const { mailServiceId } = await ask('POST', '/services', { displayName: 'Going', plan: 'launch' });
        await ask('POST', `/services/${mailServiceId}/domains`, { domain: 'going.test' });
        await ask('POST', `/services/${mailServiceId}/suppressions`, { address: 'a@x.test' });
        const messageId = await insertMessage(api.deps.db, mailServiceId, ['queued', 'deferred', 'delivered']);
        const { operation } = await ask('DELETE', `/services/${mailServiceId}`);
        return {
          input: { mailServiceId, operationId: operation.id }, activities: { ...createMailDomainActivities(api.deps), ...createMailDeletionActivities(api.deps) },
          verify: async ({ end }) => {
            const row = await one('select s.status, o.state from mail_service s join operation o on o.id = $2 where s.id = $1', mailServiceId, operation.id);
            if (end !== 'completed') return expect([{ status: 'deleting', state: 'running' }, { status: 'deleting', state: 'pending' }, { status: 'removed', state: 'succeeded' }]).toContainEqual(row);
            expect(row).toEqual({ status: 'removed', state: 'succeeded' });
            expect(await one(`select (select count(*)::int from mail_domain where mail_service_id = $1 and deleted_at is null) as domains, (select count(*)::int from mail_suppression where mail_service_id = $1) as suppressions,
              (select count(*)::int from mail_content c join mail_message m on m.id = c.message_id where m.mail_service_id = $1) as bodies`, mailServiceId)).toEqual({ domains: 0, suppressions: 0, bodies: 0 });
            expect(await one('select status, counts, settled_at is not null as settled from mail_message where id = $1', messageId)).toEqual({ status: 'delivered', counts: { delivered: 1, cancelled: 2 }, settled: true });
          },
        };
      },
    });
    expect(called).toEqual(['cancelServiceMessages', 'removeServiceDomains', 'purgeServiceContent', 'markServiceRemoved']);
  }, 240_000);
});
