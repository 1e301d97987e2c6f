import { serviceSchema } from '../../src/postgres/schemas';
import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';

const api = withPostgresApi();
const path = '/postgres/services';
const wish = { displayName: 'orders', plan: 'starter' };

async function countAll() {
  const { rows } = await api.database.pool.query(`select (select count(*) from postgres_service)::int as services, (select count(*) from postgres_credential)::int as credentials,
    (select count(*) from operation)::int as operations, (select count(*) from audit_entry)::int as audits`);
  return rows[0];
}

describe('createPostgresService', () => {
  test('answers 202 with the service provisioning, the operation pending and no secret', async () => {
    const answer = await api.ask('POST', path, { body: wish });
    const { serviceId, status, service, operation } = read.accepted(answer);
    expect(answer.status).toBe(202);
    expect(status).toBe('provisioning');
    expect(Object.keys(service).sort()).toEqual(Object.keys(serviceSchema.shape).sort());
    expect(service).toMatchObject({
      id: serviceId, displayName: 'orders', plan: 'starter', status: 'provisioning', statusReason: null, phase: null, operationId: operation.id, region: 'local',
      engine: 'postgres', version: '18', isolation: 'instance', accessMode: 'blocked', host: 'localhost', port: 6432, database: 'app', connections: { limit: 20 },
      allowedCidrs: [], deletionProtection: false, storage: { usedBytes: null, limitBytes: 2 * 1024 ** 3, state: 'ok', measuredAt: null },
      backups: { retentionDays: 3, earliestRestoreTime: null, latestRestoreTime: null }, availableAt: null, trialExpiresAt: null, deletedAt: null,
    });
    expect(operation).toMatchObject({ kind: 'postgres.provision', resourceId: serviceId, state: 'pending', steps: [], error: null });
    expect(answer.headers.get('location')).toBe(`/v1/api/orgs/${api.tenant.orgSlug}/projects/default/postgres/services/${serviceId}`);
    expect(answer.headers.get('link')).toContain(`/operations/${operation.id}>; rel="monitor"`);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(JSON.stringify(answer.body)).not.toMatch(/password|secret|verifier/i);
  });

  test('writes service, credential without secret, operation and audit row, and starts the workflow once', async () => {
    const { serviceId, operationId } = await createdService(api.ask);
    const { rows: [row] } = await api.database.pool.query('select generation, status, host_id, deadline_at > now() as timed, key from postgres_service where id = $1', [serviceId]);
    expect(row).toEqual({ generation: 1, status: 'provisioning', host_id: null, timed: true, key: serviceId.slice(-12) });
    const { rows: credentials } = await api.database.pool.query('select version, state, login, secret_sealed, verifier_sealed from postgres_credential where service_id = $1', [serviceId]);
    expect(credentials).toEqual([{ version: 1, state: 'pending', login: `u_${serviceId.slice(-12)}_1`, secret_sealed: null, verifier_sealed: null }]);
    const { rows: audits } = await api.database.pool.query('select action, outcome from audit_entry where target_id = $1', [serviceId]);
    expect(audits).toEqual([{ action: 'createPostgresService', outcome: 'done' }]);
    const started = api.started.filter((operation) => operation.resourceId === serviceId);
    expect(started).toMatchObject([{ id: operationId, workflow: 'provisionPostgres', workflowId: `postgres-provision/${serviceId}`, taskQueue: 'postgres', payload: { serviceId, generation: 1, operationId } }]);
  });

  test('a trial ends fourteen days after its creation', async () => {
    const { serviceId } = await createdService(api.ask, { plan: 'trial' });
    const service = read.service(await api.ask('GET', `${path}/${serviceId}`));
    expect(Date.parse(service.trialExpiresAt ?? '') - Date.parse(service.createdAt)).toBe(14 * 86_400_000);
  });

  test('keeps networks in their written form', async () => {
    const { serviceId } = await createdService(api.ask, { allowedCidrs: ['10.0.0.0/8', '2001:DB8:0::/32'], deletionProtection: true });
    expect(read.service(await api.ask('GET', `${path}/${serviceId}`))).toMatchObject({ allowedCidrs: ['10.0.0.0/8', '2001:db8::/32'], deletionProtection: true });
  });

  test.each([
    ['no body', undefined, 'validation_error'],
    ['garbage', '{"displayName":', 'invalid_json'],
    ['an array', [], 'validation_error'],
    ['wrong types', { displayName: 7, plan: 'starter' }, 'validation_error'],
    ['no plan', { displayName: 'orders' }, 'validation_error'],
    ['an unknown plan', { displayName: 'orders', plan: 'enterprise' }, 'validation_error'],
    ['an empty name', { ...wish, displayName: '   ' }, 'validation_error'],
    ['a name of 81 characters', { ...wish, displayName: 'x'.repeat(81) }, 'validation_error'],
    ['a control character', { ...wish, displayName: 'a\u0007b' }, 'validation_error'],
    ['U+0000', { ...wish, displayName: 'a\u0000b' }, 'validation_error'],
    ['an unknown key', { ...wish, displayname: 'x' }, 'validation_error'],
    ['an unknown region', { ...wish, region: 'mars' }, 'validation_error'],
    ['an unknown version', { ...wish, version: '9' }, 'validation_error'],
    ['a version as a number', { ...wish, version: 18 }, 'validation_error'],
    ['host bits', { ...wish, allowedCidrs: ['10.0.0.1/8'] }, 'validation_error'],
    ['a network twice', { ...wish, allowedCidrs: ['10.0.0.0/8', '10.0.0.0/08'] }, 'validation_error'],
    ['21 networks', { ...wish, allowedCidrs: Array.from({ length: 21 }, (_, i) => `10.${i}.0.0/16`) }, 'validation_error'],
    ['no network', { ...wish, allowedCidrs: ['10.0.0.0'] }, 'validation_error'],
  ])('refuses %s and leaves nothing', async (_, body, code) => {
    const before = await countAll();
    const started = api.started.length;
    const answer = await api.ask('POST', path, { body });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ ok: false, code });
    expect(await countAll()).toEqual(before);
    expect(api.started).toHaveLength(started);
  });

  test('names every fault at once and the nearest known key', async () => {
    const { body } = await api.ask('POST', path, { body: { displayname: 'x', plan: 'huge' } });
    expect(body['issues']).toEqual(expect.arrayContaining([
      expect.objectContaining({ path: 'plan' }), expect.objectContaining({ path: 'displayName' }), expect.objectContaining({ path: 'displayname', message: expect.stringContaining('displayName') }),
    ]));
  });

  test('a viewer may not create, a member may', async () => {
    const refused = await api.ask('POST', path, { as: 'viewer', body: wish });
    expect(refused.status).toBe(403);
    expect(refused.body).toMatchObject({ code: 'forbidden', required: 'postgres:create' });
    expect((await api.ask('POST', path, { as: 'member', body: wish })).status).toBe(202);
  });

  test('nobody gets in without a session, and a stranger sees no project', async () => {
    expect((await api.ask('POST', path, { as: null, body: wish })).status).toBe(401);
    const stranger = await createTenant(api.database, api.config.AUTH_SECRET);
    const { orgSlug, projectSlug } = api.tenant;
    expect((await api.askFor({ ...stranger, orgSlug, projectSlug })('POST', path, { body: wish })).status).toBe(404);
  });

  test('20 equal requests with one Idempotency-Key make one service', async () => {
    const tenant = await createTenant(api.database, api.config.AUTH_SECRET);
    const ask = api.askFor(tenant);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('POST', path, { body: wish, headers: { 'idempotency-key': 'one' } })));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202));
    expect(new Set(answers.map((answer) => read.accepted(answer).serviceId)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(19);
    expect(read.services(await ask('GET', path)).services).toHaveLength(1);
    const reused = await ask('POST', path, { body: { ...wish, displayName: 'other' }, headers: { 'idempotency-key': 'one' } });
    expect(reused.status).toBe(400);
    expect(reused.body['code']).toBe('idempotency_key_reused');
  });
});

describe('the quota of createPostgresService', () => {
  test('of fifty creations at once at a limit of three, three are accepted and the rest leave no trace', async () => {
    const tenant = await createTenant(api.database, api.config.AUTH_SECRET);
    const ask = api.askFor(tenant);
    const before = await countAll();
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask('POST', path, { body: { displayName: 'x', plan: 'trial' } })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(3).fill(202), ...Array(47).fill(402)]);
    for (const { status, body } of answers) if (status === 402) expect(body).toMatchObject({ code: 'plan_limit_reached', limit: 3, used: 3, upgradeTo: 'starter' });
    const after = await countAll();
    expect(after).toEqual({ services: before.services + 3, credentials: before.credentials + 3, operations: before.operations + 3, audits: before.audits + 3 });
    const { rows: [row] } = await api.database.pool.query(`select (select count(*)::int from subscription where project_id = $1) as subscriptions, (select sum(used)::int from quota_counter where scope_id = $1) as used`, [tenant.projectId]);
    expect(row).toEqual({ subscriptions: 3, used: 3 });
  });

  test('a deletion makes room again, once', async () => {
    const ask = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const made: string[] = [];
    for (let i = 0; i < 3; i++) made.push((await createdService(ask, { plan: 'trial' })).serviceId);
    await Promise.all([1, 2, 3].map(() => ask('DELETE', `${path}/${made[0]}`)));
    const answers = [await ask('POST', path, { body: { displayName: 'x', plan: 'trial' } }), await ask('POST', path, { body: { displayName: 'x', plan: 'trial' } })];
    expect(answers.map(({ status }) => status)).toEqual([202, 402]);
  });

  test('a refused creation leaves its Idempotency-Key unused', async () => {
    const ask = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const made: string[] = [];
    for (let i = 0; i < 3; i++) made.push((await createdService(ask, { plan: 'trial' })).serviceId);
    const request = { body: { displayName: 'x', plan: 'trial' }, headers: { 'idempotency-key': 'again' } };
    expect((await ask('POST', path, request)).status).toBe(402);
    await ask('DELETE', `${path}/${made[0]}`);
    expect((await ask('POST', path, request)).status).toBe(202);
  });

  test('the days of trials in a project are spent once', async () => {
    const tenant = await createTenant(api.database, api.config.AUTH_SECRET);
    const ask = api.askFor(tenant);
    const { serviceId } = await createdService(ask, { plan: 'trial' });
    await api.database.pool.query(`update subscription set created_at = now() - interval '43 days' where resource_id = $1`, [serviceId]);
    const answer = await ask('POST', path, { body: { displayName: 'x', plan: 'trial' } });
    expect([answer.status, answer.body['code']]).toEqual([402, 'trial_already_used']);
    expect((await ask('POST', path, { body: wish })).status).toBe(202);
  });
});
