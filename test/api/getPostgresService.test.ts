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
