import { newId } from '../../src/core/ids';
import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}`;

describe('getPostgresService', () => {
  test('shows status, plan, region and times to every member', async () => {
    const { serviceId, operationId } = await createdService(api.ask);
    const answer = await api.ask('GET', at(serviceId), { as: 'viewer' });
    expect(answer.status).toBe(200);
    expect(read.service(answer)).toMatchObject({ id: serviceId, status: 'provisioning', plan: 'starter', region: 'local', operationId });
  });

  test('a foreign, an absent and a malformed id answer alike', async () => {
    const stranger = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const { serviceId } = await createdService(stranger);
    const answers = await Promise.all([serviceId, newId('pg'), 'pg_nonsense', '%00'].map((id) => api.ask('GET', at(id))));
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    const bodies = answers.map(({ body: { requestId: _, ...rest } }) => rest);
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(bodies[0]).toEqual({ ok: false, code: 'not_found', message: 'Postgres service not found.' });
  });

  test('a deleted one is absent unless asked for', async () => {
    const { serviceId } = await createdService(api.ask);
    await api.database.pool.query(`update postgres_service set status = 'deleted', deletion_requested_at = now(), deleted_at = now(), deadline_at = null where id = $1`, [serviceId]);
    expect((await api.ask('GET', at(serviceId))).status).toBe(404);
    expect(read.service(await api.ask('GET', `${at(serviceId)}?deleted=true`)).status).toBe('deleted');
    expect((await api.ask('GET', `${at(serviceId)}?deleted=yes`)).status).toBe(400);
  });
});

describe('the service of another project', () => {
  const routes = [
    ['GET', ''], ['GET', '?deleted=true'], ['PATCH', ''], ['DELETE', ''], ['DELETE', '?purge=true'], ['GET', '/credentials'], ['GET', '/credentials?reveal=true'], ['POST', '/credentials/reveal'],
    ['POST', '/credentials/rotate'], ['POST', '/suspend'], ['POST', '/resume'], ['POST', '/retry'], ['POST', '/restore'], ['POST', '/undelete'], ['GET', '/backups'], ['POST', '/backups'], ['GET', '/metrics'],
  ] as const;

  test.each(routes)('%s …%s answers as if it had never existed, and nothing happens to it', async (method, path) => {
    const { serviceId } = await createdService(api.ask);
    const stranger = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const before = read.service(await api.ask('GET', `/postgres/services/${serviceId}`));
    const answers = await Promise.all([serviceId, 'pg_00000000000000000000000000', 'nonsense'].map((id) => stranger(method, `/postgres/services/${id}${path}`, method === 'PATCH' ? { body: { displayName: 'mine' } } : {})));
    const [foreign, ...absent] = answers.map(({ status, body: { requestId: _, ...rest } }) => ({ status, ...rest }));
    expect(foreign).toEqual({ status: 404, ok: false, code: 'not_found', message: expect.stringContaining('Postgres service') });
    expect(absent).toEqual([foreign, foreign]);
    expect(read.service(await api.ask('GET', `/postgres/services/${serviceId}`))).toEqual(before);
    await api.ask('DELETE', `/postgres/services/${serviceId}`);
  });
});
