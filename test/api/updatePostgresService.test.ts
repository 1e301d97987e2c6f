import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';
import { setStatus } from '../support/postgres-rows';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}`;

describe('updatePostgresService', () => {
  test('changes what is given, leaves the rest, and is audited with both values', async () => {
    const { serviceId } = await createdService(api.ask, { allowedCidrs: ['10.0.0.0/8'] });
    const answer = await api.ask('PATCH', at(serviceId), { as: 'member', body: { displayName: ' invoices ', deletionProtection: true } });
    expect(answer.status).toBe(200);
    expect(read.service(answer)).toMatchObject({ displayName: 'invoices', deletionProtection: true, allowedCidrs: ['10.0.0.0/8'], status: 'provisioning' });
    expect(read.service(await api.ask('GET', at(serviceId)))).toEqual(read.service(answer));
    const { rows } = await api.database.pool.query(`select changes from audit_entry where target_id = $1 and action = 'updatePostgresService'`, [serviceId]);
    expect(rows).toEqual([{ changes: [{ field: 'displayName', from: 'orders', to: 'invoices' }, { field: 'deletionProtection', from: false, to: true }] }]);
  });

  test('gateways hear of new networks, and of nothing else', async () => {
    const { serviceId } = await createdService(api.ask);
    const client = await api.database.pool.connect();
    const heard: (string | undefined)[] = [];
    client.on('notification', ({ payload }) => heard.push(payload));
    await client.query('listen postgres_route');
    await api.ask('PATCH', at(serviceId), { body: { displayName: 'other' } });
    await api.ask('PATCH', at(serviceId), { body: { allowedCidrs: ['192.0.2.0/24'] } });
    await client.query('select 1');
    client.release(true);
    expect(heard).toEqual([serviceId]);
  });

  test.each([['nothing', {}], ['a plan', { plan: 'launch' }], ['a region', { region: 'local' }], ['null', { displayName: null }], ['host bits', { allowedCidrs: ['10.0.0.1/8'] }], ['a word', { deletionProtection: 'yes' }]])('refuses %s', async (_, body) => {
    const { serviceId } = await createdService(api.askFor(await createTenant(api.database, api.config.AUTH_SECRET)));
    await api.database.pool.query('update postgres_service set project_id = $2 where id = $1', [serviceId, api.tenant.projectId]);
    const answer = await api.ask('PATCH', at(serviceId), { body });
    expect([answer.status, answer.body['code']]).toEqual([400, 'validation_error']);
  });

  test('a service on its way out cannot be changed, a deleted or foreign one is absent', async () => {
    const { serviceId } = await createdService(api.ask);
    await setStatus(api.database, serviceId, 'deleting');
    expect((await api.ask('PATCH', at(serviceId), { body: { displayName: 'x' } })).body).toMatchObject({ code: 'invalid_state', status: 'deleting' });
    await setStatus(api.database, serviceId, 'deleted');
    expect((await api.ask('PATCH', at(serviceId), { body: { displayName: 'x' } })).status).toBe(404);
    const foreign = await createdService(api.askFor(await createTenant(api.database, api.config.AUTH_SECRET)));
    expect((await api.ask('PATCH', at(foreign.serviceId), { body: { displayName: 'x' } })).status).toBe(404);
    expect((await api.ask('PATCH', at(serviceId), { as: 'viewer', body: { displayName: 'x' } })).status).toBe(403);
  });
});
