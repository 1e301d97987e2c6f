import { inTransaction } from '../../src/db/transaction';
import { requestDeletion } from '../../src/postgres/service';
import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}`;
const set = (serviceId: string, change: string) => api.database.pool.query(`update postgres_service set ${change} where id = $1`, [serviceId]);
const available = `status = 'available', available_at = now(), access_open = true, deadline_at = null`;
const gone = `status = 'deleted', deletion_requested_at = now(), deleted_at = now(), deadline_at = null, recoverable_until = now() + interval '7 days'`;

describe('deletePostgresService', () => {
  test.each([
    ['provisioning', 'phase = null'],
    ['available', available],
    ['updating', `status = 'updating', status_before = 'available', available_at = now(), access_open = true`],
    ['suspended', `status = 'suspended', status_reason = 'user', suspended_at = now(), deadline_at = null`],
    ['failed', `status = 'failed', status_reason = 'no_capacity', deadline_at = null`],
  ])('is accepted while %s, and nobody gets in from the answer on', async (_, change) => {
    const { serviceId, operationId } = await createdService(api.askFor(await createTenant(api.database, api.config.AUTH_SECRET)));
    await set(serviceId, `${change}, project_id = '${api.tenant.projectId}', org_id = '${api.tenant.orgId}'`);
    const answer = await api.ask('DELETE', at(serviceId));
    const { status, service, operation } = read.deleted(answer);
    expect(answer.status).toBe(202);
    expect(status).toBe('deleting');
    expect(service).toMatchObject({ status: 'deleting', statusReason: null, phase: null, accessMode: 'blocked', operationId: operation?.id, suspendedAt: null });
    expect(service.deletionRequestedAt).not.toBeNull();
    expect(operation).toMatchObject({ kind: 'postgres.delete', state: 'pending', resourceId: serviceId });
    const { rows: [row] } = await api.database.pool.query('select generation, access_open from postgres_service where id = $1', [serviceId]);
    expect(row).toEqual({ generation: 2, access_open: false });
    const { rows: [former] } = await api.database.pool.query('select state from operation where id = $1', [operationId]);
    expect(former).toEqual({ state: 'cancelled' });
    expect(api.started.filter(({ kind, resourceId }) => kind === 'postgres.delete' && resourceId === serviceId))
      .toMatchObject([{ workflow: 'deletePostgres', workflowId: `postgres-delete/${serviceId}`, payload: { serviceId, generation: 2, operationId: operation?.id } }]);
  });

  test('eight at once are one operation', async () => {
    const { serviceId } = await createdService(api.ask);
    const answers = await Promise.all(Array.from({ length: 8 }, () => api.ask('DELETE', at(serviceId))));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(202));
    expect(new Set(answers.map((answer) => read.deleted(answer).operation?.id)).size).toBe(1);
    const { rows } = await api.database.pool.query(`select kind, state from operation where resource_id = $1 order by id`, [serviceId]);
    expect(rows).toEqual([{ kind: 'postgres.provision', state: 'cancelled' }, { kind: 'postgres.delete', state: 'pending' }]);
    const { rows: audits } = await api.database.pool.query(`select action from audit_entry where target_id = $1 and action = 'deletePostgresService'`, [serviceId]);
    expect(audits).toHaveLength(1);
  });

  test('deletion protection stops it, and not the deletion of the project', async () => {
    const ask = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const { serviceId } = await createdService(ask, { deletionProtection: true });
    const refused = await ask('DELETE', at(serviceId));
    expect(refused.status).toBe(400);
    expect(refused.body['code']).toBe('deletion_protected');
    const { rows: [row] } = await api.database.pool.query('select project_id from postgres_service where id = $1', [serviceId]);
    await inTransaction(api.database, (tx) => requestDeletion(tx, row.project_id));
    expect(read.service(await ask('GET', at(serviceId))).status).toBe('deleting');
  });

  test('a deleted one is absent; purged, its time to come back ends now', async () => {
    const { serviceId } = await createdService(api.ask);
    await set(serviceId, gone);
    expect((await api.ask('DELETE', at(serviceId))).status).toBe(404);
    const answer = await api.ask('DELETE', `${at(serviceId)}?purge=true`);
    const { status, service, operation } = read.deleted(answer);
    expect(answer.status).toBe(202);
    expect({ status, operation }).toEqual({ status: 'deleted', operation: null });
    expect(Date.parse(service.recoverableUntil ?? '')).toBeLessThanOrEqual(Date.now());
  });

  test('a purge needs a fresh session, an ordinary deletion does not', async () => {
    const { serviceId } = await createdService(api.ask);
    await api.database.pool.query(`update session set fresh_at = now() - interval '1 hour' where "userId" = $1`, [api.tenant.userIds.admin]);
    const refused = await api.ask('DELETE', `${at(serviceId)}?purge=true`, { as: 'admin' });
    expect(refused.status).toBe(403);
    expect(refused.body['code']).toBe('reauthentication_required');
    expect(read.service(await api.ask('GET', at(serviceId))).status).toBe('provisioning');
    expect((await api.ask('DELETE', at(serviceId), { as: 'admin' })).status).toBe(202);
  });

  test('a member may not delete, and a stranger finds nothing', async () => {
    const { serviceId } = await createdService(api.ask);
    const refused = await api.ask('DELETE', at(serviceId), { as: 'member' });
    expect(refused.status).toBe(403);
    expect(refused.body['required']).toBe('postgres:delete');
    const stranger = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    expect((await stranger('DELETE', at(serviceId))).status).toBe(404);
    expect(read.service(await api.ask('GET', at(serviceId))).status).toBe('provisioning');
  });
});
