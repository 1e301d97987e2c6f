import { createdService, withPostgresApi } from '../support/postgres-api';
import { setStatus } from '../support/postgres-rows';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}/metrics`;
const zeroes = { transactionsPerSecond: 0, cacheHitRatio: 0, walBytesPerSecond: 0, oldestTransactionSeconds: 0, blockedSessions: 0 };

describe('getPostgresMetrics', () => {
  test('shows what was last seen of a running server, and zeroes of one that sleeps or was never asked', async () => {
    const { serviceId } = await createdService(api.ask);
    await setStatus(api.database, serviceId, 'available');
    const before = await api.ask('GET', at(serviceId), { as: 'viewer' });
    expect(before.status).toBe(200);
    expect(before.body['metrics']).toEqual({ compute: 'stopped', connections: { active: 0, idle: 0, waiting: 0, limit: 20 }, ...zeroes, usedBytes: null, measuredAt: null });
    const metrics = { connections: { active: 1, idle: 2, waiting: 3 }, transactionsPerSecond: 4.5, cacheHitRatio: 0.99, walBytesPerSecond: 6, oldestTransactionSeconds: 7, blockedSessions: 8 };
    await api.database.pool.query('insert into postgres_observation (service_id, metrics) values ($1, $2::jsonb)', [serviceId, JSON.stringify(metrics)]);
    await api.database.pool.query(`update postgres_service set compute = 'running', used_bytes = 9 where id = $1`, [serviceId]);
    expect((await api.ask('GET', at(serviceId))).body['metrics']).toEqual({ compute: 'running', ...metrics, connections: { ...metrics.connections, limit: 20 }, usedBytes: 9, measuredAt: expect.any(String) });
    await api.database.pool.query(`update postgres_service set compute = 'idle' where id = $1`, [serviceId]);
    expect((await api.ask('GET', at(serviceId))).body['metrics']).toMatchObject({ compute: 'idle', ...zeroes, connections: { active: 0 }, usedBytes: 9 });
  });

  test('a deleted service has none', async () => {
    const { serviceId } = await createdService(api.ask);
    await setStatus(api.database, serviceId, 'deleted');
    expect((await api.ask('GET', at(serviceId))).status).toBe(404);
  });
});
