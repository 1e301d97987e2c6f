import { createTenant, type Tenant } from '../support/tenant';
import { createdService, read, withPostgresApi, type Ask } from '../support/postgres-api';
import { givePassword, setStatus } from '../support/postgres-rows';
import { inTransaction } from '../../src/db/transaction';
import { resumeFromPayment, suspendForPayment } from '../../src/postgres/service';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}`;
const set = (serviceId: string, values: string) => api.database.pool.query(`update postgres_service set ${values} where id = $1`, [serviceId]);

/** A service in a status, in a project of its own. */
async function service(status: string, plan = 'starter'): Promise<{ tenant: Tenant; ask: Ask; serviceId: string; operationId: string }> {
  const tenant = await createTenant(api.database, api.config.AUTH_SECRET);
  const ask = api.askFor(tenant);
  const created = await createdService(ask, { plan });
  await givePassword(api, created.serviceId, 'ZZZZyyyyXXXXwwwwVVVVuuuuTTTTssss');
  await setStatus(api.database, created.serviceId, status);
  await api.database.pool.query(`update operation set state = 'succeeded', finished_at = now() where id = $1`, [created.operationId]);
  if (status === 'failed' || status === 'deleted') {
    await api.database.pool.query(`update quota_counter set used = 0 where scope_id = $1`, [tenant.projectId]);
    await api.database.pool.query(`update subscription set status = 'canceled', canceled_at = now() where resource_id = $1`, [created.serviceId]);
  }
  return { tenant, ask, ...created };
}

/** As a deletion leaves it: on a host, with time to come back. */
async function retained(plan = 'starter') {
  const made = await service('deleted', plan);
  const host = `host-${made.serviceId}`;
  await api.database.pool.query(`insert into postgres_host (name, region, backend, capacity_bytes, max_services, reserved_bytes, services) values ($1, 'elsewhere', 'embedded', 100, 10, 1, 1)`, [host]);
  await set(made.serviceId, `host_id = '${host}', reserved_bytes = 1, recoverable_until = now() + interval '1 hour'`);
  return made;
}

async function credentialsOf(serviceId: string) {
  const { rows } = await api.database.pool.query(`select version, state, login, overlap_seconds as overlap, end_sessions as ends from postgres_credential where service_id = $1 order by version`, [serviceId]);
  return rows;
}

const requests = [
  ['credentials/rotate', 'available', 'postgres.rotate_credentials', 'member'], ['suspend', 'available', 'postgres.suspend', 'member'],
  ['resume', 'suspended', 'postgres.resume', 'member'], ['retry', 'failed', 'postgres.provision', 'member'],
] as const;

test.each(requests)('POST %s: 202, one operation that holds the service, and its workflow is started', async (path, from, kind, role) => {
  const { ask, serviceId } = await service(from);
  const answer = await ask('POST', `${at(serviceId)}/${path}`, { as: role });
  expect(answer.status).toBe(202);
  const { operation, service: shown, ...top } = read.accepted(answer);
  const status = path === 'retry' ? 'provisioning' : 'updating';
  expect(top).toMatchObject({ serviceId, status });
  expect(shown).toMatchObject({ id: serviceId, status, statusReason: null, operationId: operation.id });
  expect(operation).toMatchObject({ kind, resourceId: serviceId, state: 'pending' });
  expect(answer.headers.get('location')).toMatch(new RegExp(`/postgres/services/${serviceId}$`));
  expect(answer.headers.get('link')).toContain(operation.id);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(read.service(await ask('GET', at(serviceId)))).toEqual(shown);
  const started = api.started.filter(({ id }) => id === operation.id);
  expect(started).toMatchObject([{ workflow: path === 'retry' ? 'provisionPostgres' : 'changePostgres', workflowId: path === 'retry' ? `postgres-provision/${serviceId}` : `postgres-change/${operation.id}`, taskQueue: 'postgres' }]);
  expect(started[0]?.payload).toMatchObject({ serviceId, operationId: operation.id, generation: 2 });
  const second = await ask('POST', `${at(serviceId)}/${path}`);
  expect(second.body).toMatchObject({ code: 'invalid_state', status, operationId: operation.id });
  expect((await ask('DELETE', at(serviceId))).status).toBe(202);
});

test.each(requests.flatMap(([path, from]) => ['provisioning', 'available', 'updating', 'suspended', 'failed', 'deleting', 'deleted'].filter((status) => status !== from).map((status) => [path, status] as const)))('POST %s is refused while %s', async (path, status) => {
  const { ask, serviceId } = await service(status);
  const answer = await ask('POST', `${at(serviceId)}/${path}`);
  if (status === 'deleted') expect([answer.status, answer.body['code']]).toEqual([404, 'not_found']);
  else if (path === 'credentials/rotate' && status === 'suspended') expect([answer.status, answer.body['code']]).toEqual([403, 'service_suspended']);
  else expect([answer.status, answer.body['code'], answer.body['status'], answer.body['operationId']]).toEqual([400, 'invalid_state', status, null]);
});

test.each(requests)('POST %s: a viewer may not, a stranger finds nothing, a body of unknown keys is refused', async (path, from) => {
  const { ask, serviceId } = await service(from);
  expect((await ask('POST', `${at(serviceId)}/${path}`, { as: 'viewer' })).status).toBe(403);
  expect((await api.ask('POST', `${at(serviceId)}/${path}`)).status).toBe(404);
  expect((await ask('POST', `${at(serviceId)}/${path}`, { body: { force: true } })).body['code']).toBe('validation_error');
  expect((await ask('POST', `${at(serviceId)}/${path}`, { body: {} })).status).toBe(202);
});

describe('suspendPostgresService', () => {
  test('is asked for by the customer, is audited, and stays paid for', async () => {
    const { ask, serviceId } = await service('available');
    await ask('POST', `${at(serviceId)}/suspend`);
    const { rows } = await api.database.pool.query(`select suspended_reason as reason, (select count(*)::int from subscription where resource_id = s.id and status = 'active') as paid,
      (select changes from audit_entry where target_id = s.id and action = 'suspendPostgresService') as audited from postgres_service s where id = $1`, [serviceId]);
    expect(rows).toEqual([{ reason: 'user', paid: 1, audited: [{ field: 'status', from: 'available', to: 'updating' }] }]);
  });
});

describe('rotatePostgresCredentials', () => {
  const first = async (body?: object) => {
    const made = await service('available');
    expect((await made.ask('POST', `${at(made.serviceId)}/credentials/rotate`, { body: body ?? {} })).status).toBe(202);
    return { ...made, credentials: await credentialsOf(made.serviceId) };
  };

  test('immediate keeps the login and ends sessions; overlap takes the other login for an hour and ends none; both may be told otherwise', async () => {
    const immediate = await first();
    const [{ login }] = immediate.credentials;
    expect(immediate.credentials[1]).toEqual({ version: 2, state: 'pending', login, overlap: null, ends: true });
    expect((await first({ mode: 'immediate', terminateConnections: false })).credentials[1]).toMatchObject({ overlap: null, ends: false });
    const overlap = await first({ mode: 'overlap' });
    expect(overlap.credentials[1]).toEqual({ version: 2, state: 'pending', login: overlap.credentials[0].login.replace(/_1$/, '_2'), overlap: 3_600, ends: false });
    expect((await first({ mode: 'overlap', overlapSeconds: 60, terminateConnections: true })).credentials[1]).toMatchObject({ overlap: 60, ends: true });
  });

  test.each([[{ mode: 'later' }], [{ overlapSeconds: 3_600 }], [{ mode: 'overlap', overlapSeconds: 59 }], [{ mode: 'overlap', overlapSeconds: 86_401 }], [{ mode: 'overlap', overlapSeconds: 60.5 }], [{ terminateConnections: 'yes' }]])('refuses %j', async (body) => {
    const { ask, serviceId } = await service('available');
    expect((await ask('POST', `${at(serviceId)}/credentials/rotate`, { body })).body['code']).toBe('validation_error');
    expect(await credentialsOf(serviceId)).toHaveLength(1);
  });

  test('while it is under way the password in force is shown, and so is an overlap until its time', async () => {
    const { ask, serviceId } = await first({ mode: 'overlap' });
    const shown = read.credentials(await ask('GET', `${at(serviceId)}/credentials?reveal=true`)).credentials;
    expect(shown).toMatchObject({ version: 1, password: 'ZZZZyyyyXXXXwwwwVVVVuuuuTTTTssss', ready: true, previous: null });
    const sealed = `secret_sealed = (select secret_sealed from postgres_credential where service_id = '${serviceId}' and version = 1), verifier_sealed = 'x'`;
    await api.database.pool.query(`update postgres_credential set state = 'previous', valid_until = now() + interval '1 hour' where service_id = $1 and version = 1`, [serviceId]);
    await api.database.pool.query(`update postgres_credential set state = 'current', ${sealed} where service_id = $1 and version = 2`, [serviceId]);
    const { credentials: { version, previous, user } } = read.credentials(await ask('GET', `${at(serviceId)}/credentials`));
    expect({ version, previous, user }).toEqual({ version: 2, user: expect.stringMatching(/_2$/), previous: { version: 1, user: expect.stringMatching(/_1$/), validUntil: expect.any(String) } });
    await api.database.pool.query(`update postgres_credential set valid_until = now() - interval '1 second' where service_id = $1 and version = 1`, [serviceId]);
    expect(read.credentials(await ask('GET', `${at(serviceId)}/credentials`)).credentials.previous).toBeNull();
  });
});

describe('resumePostgresService', () => {
  test.each([['trial_expired', 402, 'payment_required'], ['payment_overdue', 402, 'payment_required'], ['admin', 403, 'service_suspended']])('suspended for %s: %i', async (reason, status, code) => {
    const { ask, serviceId } = await service('suspended');
    await set(serviceId, `status_reason = '${reason}'`);
    const answer = await ask('POST', `${at(serviceId)}/resume`);
    expect([answer.status, answer.body['code']]).toEqual([status, code]);
    expect(read.service(await ask('GET', at(serviceId))).status).toBe('suspended');
  });

  test('what an unpaid invoice has suspended is resumed by its payment, and nothing else is', async () => {
    const { tenant, ask, serviceId } = await service('available');
    const { serviceId: own } = await createdService(ask);
    await setStatus(api.database, own, 'suspended');
    await api.database.pool.query(`update operation set state = 'succeeded', finished_at = now() where resource_id = $1`, [own]);
    await inTransaction(api.database, (tx) => suspendForPayment(tx, tenant.orgId));
    await inTransaction(api.database, (tx) => suspendForPayment(tx, tenant.orgId));
    const { rows } = await api.database.pool.query(`select change, suspended_reason as reason from postgres_service where id = $1`, [serviceId]);
    expect(rows).toEqual([{ change: 'suspend', reason: 'payment_overdue' }]);
    await api.database.pool.query(`update operation set state = 'succeeded', finished_at = now() where resource_id = $1`, [serviceId]);
    await set(serviceId, `status = 'suspended', status_before = null, change = null, status_reason = suspended_reason, suspended_reason = null, suspended_at = now(), deadline_at = null, access_open = false`);
    await inTransaction(api.database, (tx) => resumeFromPayment(tx, tenant.orgId));
    expect(read.service(await ask('GET', at(serviceId))).status).toBe('updating');
    expect(read.service(await ask('GET', at(own))).status).toBe('suspended');
  });
});

describe('retryPostgresService', () => {
  test('is counted and subscribed like a creation, and refused like one', async () => {
    const { tenant, ask, serviceId } = await service('failed');
    await api.database.pool.query(`update quota_counter set used = 5 where scope_id = $1`, [tenant.projectId]);
    const refused = await ask('POST', `${at(serviceId)}/retry`);
    expect([refused.status, refused.body['code']]).toEqual([402, 'plan_limit_reached']);
    expect(read.service(await ask('GET', at(serviceId))).status).toBe('failed');
    await api.database.pool.query(`update quota_counter set used = 4 where scope_id = $1`, [tenant.projectId]);
    expect((await ask('POST', `${at(serviceId)}/retry`)).status).toBe(202);
    const { rows } = await api.database.pool.query(`select (select used from quota_counter where scope_id = $1 and resource = 'postgres.services.starter')::int as used,
      (select count(*)::int from subscription where resource_id = $2 and status <> 'canceled') as live`, [tenant.projectId, serviceId]);
    expect(rows).toEqual([{ used: 5, live: 1 }]);
  });
});

describe('undeletePostgresService', () => {
  test('is provisioning, counted and subscribed again, with a password to come', async () => {
    const { tenant, ask, serviceId } = await retained();
    const answer = await ask('POST', `${at(serviceId)}/undelete`, { as: 'member' });
    expect(answer.status).toBe(202);
    const { operation, service: shown } = read.accepted(answer);
    expect(shown).toMatchObject({ status: 'provisioning', deletedAt: null, recoverableUntil: null, deletionRequestedAt: null, operationId: operation.id });
    expect(operation.kind).toBe('postgres.undelete');
    expect(api.started.find(({ id }) => id === operation.id)).toMatchObject({ workflow: 'restorePostgres', workflowId: `postgres-restore/${operation.id}`, payload: { serviceId, generation: 2 } });
    expect(read.credentials(await ask('GET', `${at(serviceId)}/credentials`)).credentials).toMatchObject({ ready: false });
    const { rows } = await api.database.pool.query(`select (select used from quota_counter where scope_id = $1 and resource = 'postgres.services.starter')::int as used,
      (select count(*)::int from subscription where resource_id = $2 and status <> 'canceled') as live`, [tenant.projectId, serviceId]);
    expect(rows).toEqual([{ used: 1, live: 1 }]);
    expect((await ask('POST', `${at(serviceId)}/undelete`)).body).toMatchObject({ code: 'invalid_state', status: 'provisioning', operationId: operation.id });
  });

  test.each([['its time has passed', `recoverable_until = now() - interval '1 second'`], ['it was purged', `purge = true, recoverable_until = now()`], ['nothing was retained', `host_id = null, reserved_bytes = 0, recoverable_until = null`]])('is refused when %s', async (_, values) => {
    const { ask, serviceId } = await retained();
    await set(serviceId, values);
    const answer = await ask('POST', `${at(serviceId)}/undelete`);
    expect([answer.status, answer.body['code'], answer.body['status']]).toEqual([400, 'invalid_state', 'deleted']);
  });

  test.each(['provisioning', 'available', 'updating', 'suspended', 'failed', 'deleting'])('is refused while %s', async (status) => {
    const { ask, serviceId } = await service(status);
    expect((await ask('POST', `${at(serviceId)}/undelete`)).body).toMatchObject({ code: 'invalid_state', status });
  });

  test('a full plan refuses without effect; a purge ends the time to come back', async () => {
    const { tenant, ask, serviceId } = await retained();
    await api.database.pool.query(`update quota_counter set used = 5 where scope_id = $1`, [tenant.projectId]);
    expect((await ask('POST', `${at(serviceId)}/undelete`)).body).toMatchObject({ code: 'plan_limit_reached' });
    expect(read.services(await ask('GET', '/postgres/services?status=deleted')).services.map(({ id }) => id)).toEqual([serviceId]);
    const purged = await ask('DELETE', `${at(serviceId)}?purge=true`);
    expect(read.deleted(purged)).toMatchObject({ status: 'deleted', operation: null });
    expect((await ask('POST', `${at(serviceId)}/undelete`)).body).toMatchObject({ code: 'invalid_state' });
  });
});

describe('change-plan of billing', () => {
  async function subscriptionOf(ask: Ask, serviceId: string): Promise<{ id: string; plan: string; pendingPlan: string | null }> {
    const { body } = await ask('GET', `/billing/subscriptions?resourceId=${serviceId}`);
    const [subscription] = Array.isArray(body['subscriptions']) ? body['subscriptions'] : [];
    return subscription;
  }

  test.each(['available', 'suspended'])('%s: 202, the plan is pending until the workflow has applied it', async (status) => {
    const { ask, serviceId } = await service(status);
    const { id } = await subscriptionOf(ask, serviceId);
    const answer = await ask('POST', `/billing/subscriptions/${id}/change-plan`, { body: { plan: 'launch' } });
    expect(answer.status).toBe(202);
    expect(answer.body['operation']).toMatchObject({ kind: 'postgres.change_plan', resourceId: serviceId, state: 'pending' });
    expect(await subscriptionOf(ask, serviceId)).toMatchObject({ plan: 'starter', pendingPlan: 'launch' });
    expect(read.service(await ask('GET', at(serviceId)))).toMatchObject({ status: 'updating', plan: 'starter' });
  });

  test.each(['provisioning', 'updating', 'deleting'])('%s: invalid_state, and nothing is pending', async (status) => {
    const { ask, serviceId } = await service(status);
    const { id } = await subscriptionOf(ask, serviceId);
    expect((await ask('POST', `/billing/subscriptions/${id}/change-plan`, { body: { plan: 'launch' } })).body).toMatchObject({ code: 'invalid_state', status });
    expect((await subscriptionOf(ask, serviceId)).pendingPlan).toBeNull();
  });

  test('a plan smaller than the data: 402 before any effect', async () => {
    const { ask, serviceId } = await service('available', 'launch');
    await set(serviceId, 'used_bytes = 3000000000');
    const { id } = await subscriptionOf(ask, serviceId);
    const answer = await ask('POST', `/billing/subscriptions/${id}/change-plan`, { body: { plan: 'starter' } });
    expect([answer.status, answer.body['code']]).toEqual([402, 'plan_limit_reached']);
    expect(answer.body).toMatchObject({ resource: 'postgres.storage_bytes', limit: 2_147_483_648, used: 3_000_000_000, upgradeTo: 'launch' });
    expect(read.service(await ask('GET', at(serviceId)))).toMatchObject({ status: 'available', plan: 'launch' });
  });

  test('a change of plan and a deletion at once never wait for each other in a circle', async () => {
    await Promise.all(Array.from({ length: 6 }, async () => {
      const { ask, serviceId } = await service('available');
      const { id } = await subscriptionOf(ask, serviceId);
      const [change, removal] = await Promise.all([ask('POST', `/billing/subscriptions/${id}/change-plan`, { body: { plan: 'launch' } }), ask('DELETE', at(serviceId))]);
      expect([202, 400]).toContain(change.status);
      expect(removal.status).toBe(202);
    }));
  });
});
