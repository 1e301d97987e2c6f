import { ApplicationFailure } from '@temporalio/common';
import { pino } from 'pino';
import { createIdentityActivities } from '../../activities/identity';
import { activityInterceptor } from '../../activities/steps';
import { createMetrics } from '../../src/core/metrics';
import { field, idIn, withIdentityApi } from '../support/identity-api';
import { withTemporal } from '../support/temporal';
import { torture, type World } from '../support/torture';
import { withWorkflowLab, type Activities } from '../support/workflow-lab';

const api = withIdentityApi();
const server = withTemporal();
const lab = withWorkflowLab(server, { interceptor: () => activityInterceptor({ database: api.database, log: pino({ level: 'silent' }) }) });
const one = async (sql: string, ...values: unknown[]): Promise<unknown> => (await api.database.pool.query(sql, values)).rows[0];

function activitiesWith(left: Map<string, number> = new Map(), sent: string[] = []): Activities {
  return createIdentityActivities({
    db: api.database, config: api.config, secrets: api.deps.secrets, log: pino({ level: 'silent' }), metrics: createMetrics('test'),
    accountMailer: { send: async ({ id }) => void sent.push(id) },
    productDeletions: [{ kind: 'thing', requestDeletion: async () => undefined, countLive: async (_db, ids) => ids.reduce((sum, id) => sum + take(left, id), 0) }],
  });
}

/** One less each time it is asked: products take their time. */
function take(left: Map<string, number>, id: string): number {
  const count = left.get(id) ?? 0;
  left.set(id, Math.max(0, count - 1));
  return count;
}

test('deleteProject: whatever happens at any step, it is gone, or its operation stays open for another start', async () => {
  const called = await torture(lab, {
    workflow: 'deleteProject',
    withoutEnd: ['requestProductDeletions', 'awaitProductsGone', 'markProjectDeleted'],
    begin: async (): Promise<World> => {
      const ann = await api.person();
      const org = await api.org(ann);
      const { body } = await api.ask('DELETE', `${org.path}/projects/default`, { cookie: ann.cookie });
      const operationId = idIn(body['operation']);
      return {
        input: { projectId: org.projectId, operationId }, activities: activitiesWith(new Map([[org.projectId, 1]])),
        verify: async ({ end }) => {
          const row = await one('select p.status, o.state from project p join operation o on o.resource_id = p.id where p.id = $1', org.projectId);
          if (end === 'completed') expect(row).toEqual({ status: 'deleted', state: 'succeeded' });
          else expect([{ status: 'deleting', state: 'running' }, { status: 'deleting', state: 'pending' }, { status: 'deleted', state: 'succeeded' }]).toContainEqual(row);
        },
      };
    },
  });
  expect([...new Set(called)]).toEqual(['requestProductDeletions', 'awaitProductsGone', 'markProjectDeleted']);
}, 240_000);

test('deleteOrganization: whatever happens at any step, it is gone, or its operation stays open; billing never holds it up', async () => {
  const called = await torture(lab, {
    workflow: 'deleteOrganization',
    withoutEnd: ['requestProjectDeletions', 'awaitProjectsGone', 'markOrganizationDeleted'],
    begin: async (): Promise<World> => {
      const ann = await api.person();
      const org = await api.org(ann);
      const { body } = await api.ask('DELETE', org.path, { cookie: ann.cookie });
      await api.database.pool.query(`update project set status = 'deleted', slug = null where org_id = $1`, [org.orgId]);
      return {
        input: { orgId: org.orgId, operationId: idIn(body['operation']) }, activities: activitiesWith(),
        verify: async ({ end }, { torment, step }) => {
          const row = await one(`select g.status, o.state from organization g join operation o on o.resource_id = g.id and o.kind = 'identity.delete_org' where g.id = $1`, org.orgId);
          if (end === 'completed') expect(row).toEqual({ status: 'deleted', state: 'succeeded' });
          else expect(['deleting', 'deleted']).toContain(field(row, 'status'));
          if (step === 'closeOrganizationBilling' && torment?.startsWith('refused')) {
            expect(end).toBe('completed');
            expect(await one(`select outcome from audit_entry where chain = $1 and action = 'closeOrganizationBilling'`, org.orgId)).toEqual({ outcome: 'denied' });
          }
        },
      };
    },
  });
  expect(called).toEqual(['requestProjectDeletions', 'awaitProjectsGone', 'closeOrganizationBilling', 'markOrganizationDeleted']);
}, 240_000);

test('sendAccountMail: whatever happens at any step, the mail is sent or given up, and its link is wiped', async () => {
  const called = await torture(lab, {
    workflow: 'sendAccountMail',
    withoutEnd: ['markAccountMailSent'],
    begin: async (): Promise<World> => {
      const ann = await api.person();
      const mailId = String(field(await one('select id from account_mail where recipient = $1', ann.email), 'id'));
      const sent: string[] = [];
      return {
        input: { mailId }, activities: activitiesWith(new Map(), sent),
        verify: async ({ end }, { torment }) => {
          const row = await one('select status, sealed_link is null as wiped from account_mail where id = $1', mailId);
          if (torment === 'cancelled during it' && end !== 'completed') return;
          expect(row).toEqual({ status: end === 'completed' ? 'sent' : 'failed', wiped: true });
          if (end === 'completed') expect(sent).toContain(mailId);
        },
      };
    },
  });
  expect(called).toEqual(['deliverAccountMail', 'markAccountMailSent']);
}, 240_000);

test('a mail the relay refuses for good is given up with its code', async () => {
  const end = await lab.run({ workflow: 'sendAccountMail', input: { mailId: 'msg_x' }, activities: {
    ...activitiesWith(), deliverAccountMail: async () => Promise.reject(ApplicationFailure.nonRetryable('no', 'backend_error')),
  } });
  expect(end).toMatchObject({ end: 'failed', code: 'backend_error', calls: ['deliverAccountMail', 'markAccountMailFailed'] });
});
