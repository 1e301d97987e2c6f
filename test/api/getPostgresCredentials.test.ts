import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';
import { givePassword, setStatus } from '../support/postgres-rows';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}/credentials`;
const password = 'AAAAbbbbCCCCddddEEEEffffGGGGhhhh';

async function service(status = 'available') {
  const { serviceId } = await createdService(api.ask, { plan: 'business' });
  await givePassword(api, serviceId, password);
  await setStatus(api.database, serviceId, status);
  return serviceId;
}

describe('getPostgresCredentials', () => {
  test('masks exactly the password, so that clients still parse the string', async () => {
    const serviceId = await service();
    const key = serviceId.slice(-12);
    const answer = await api.ask('GET', at(serviceId), { as: 'viewer' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('no-store, private');
    expect(answer.body).toEqual({
      ok: true,
      connectionString: `postgresql://u_${key}_1:********@localhost:6432/app?sslmode=verify-full&sslrootcert=/test/tls/ca.pem`,
      credentials: {
        serviceId, version: 1, revealed: false, ready: true, host: 'localhost', port: 6432, database: 'app', user: `u_${key}_1`, password: '********', sslmode: 'verify-full',
        caCertificate: expect.stringContaining('BEGIN CERTIFICATE'),
        jdbcUrl: `jdbc:postgresql://localhost:6432/app?user=u_${key}_1&password=********&sslmode=verify-full`,
        previous: null, inSync: null, createdAt: expect.any(String), updatedAt: expect.any(String), rotatedAt: null,
      },
    });
    const url = new URL(String(answer.body['connectionString']));
    expect([url.username, url.password, url.hostname, url.port, url.pathname]).toEqual([`u_${key}_1`, '********', 'localhost', '6432', '/app']);
  });

  test.each([['provisioning', false], ['failed', false], ['available', true], ['updating', true], ['suspended', true]])('while %s it is masked, ready %s', async (status, ready) => {
    const { credentials, connectionString } = read.credentials(await api.ask('GET', at(await service(status))));
    expect({ ready: credentials.ready, masked: connectionString?.includes(':********@') }).toEqual({ ready, masked: true });
  });

  test('while deleting neither form is answered; deleted, it is absent', async () => {
    const serviceId = await service('deleting');
    for (const query of ['', '?reveal=true', '?reveal=false']) {
      const answer = await api.ask('GET', `${at(serviceId)}${query}`);
      expect([answer.status, answer.body['code'], answer.body['status']]).toEqual([400, 'invalid_state', 'deleting']);
    }
    await setStatus(api.database, serviceId, 'deleted');
    expect((await api.ask('GET', at(serviceId))).status).toBe(404);
    expect((await api.ask('GET', `${at(serviceId)}?reveal=true`)).status).toBe(404);
  });

  test('masked reads are not audited; a revealed one is, before it is answered', async () => {
    const serviceId = await service();
    await api.ask('GET', at(serviceId));
    const audits = async () => (await api.database.pool.query(`select action, outcome, actor_id, changes from audit_entry where target_id = $1 and action like '%Credentials'`, [serviceId])).rows;
    expect(await audits()).toEqual([]);
    const { credentials, connectionString } = read.credentials(await api.ask('GET', `${at(serviceId)}?reveal=true`));
    expect(credentials).toMatchObject({ revealed: true, password });
    expect(connectionString).toContain(`:${password}@`);
    expect(credentials.jdbcUrl).toContain(`password=${password}&`);
    expect(await audits()).toEqual([{ action: 'revealPostgresCredentials', outcome: 'done', actor_id: api.tenant.userIds.owner, changes: [{ field: 'version', from: null, to: 1 }] }]);
  });

  test('reveal takes true and false, and nothing else', async () => {
    const serviceId = await service();
    expect(read.credentials(await api.ask('GET', `${at(serviceId)}?reveal=false`)).credentials.revealed).toBe(false);
    for (const value of ['1', 'yes', 'TRUE', '']) expect((await api.ask('GET', `${at(serviceId)}?reveal=${value}`)).status).toBe(400);
  });

  test('revealing needs the permission first, then a fresh session', async () => {
    const serviceId = await service();
    await api.database.pool.query(`update session set fresh_at = now() - interval '1 hour' where "userId" = any($1)`, [[api.tenant.userIds.viewer, api.tenant.userIds.admin]]);
    const viewer = await api.ask('GET', `${at(serviceId)}?reveal=true`, { as: 'viewer' });
    expect([viewer.status, viewer.body['code'], viewer.body['required']]).toEqual([403, 'forbidden', 'postgres:credentials']);
    const stale = await api.ask('GET', `${at(serviceId)}?reveal=true`, { as: 'admin' });
    expect([stale.status, stale.body['code']]).toEqual([403, 'reauthentication_required']);
    expect(JSON.stringify([viewer.body, stale.body])).not.toContain(password);
    expect((await api.ask('GET', at(serviceId), { as: 'admin' })).status).toBe(200);
  });

  test('the service of a stranger is absent', async () => {
    const serviceId = await service();
    const stranger = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    expect((await stranger('GET', at(serviceId))).status).toBe(404);
    expect((await stranger('GET', `${at(serviceId)}?reveal=true`)).status).toBe(404);
  });
});
