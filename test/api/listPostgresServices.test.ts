import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';

const api = withPostgresApi();
const path = '/postgres/services';

describe('listPostgresServices', () => {
  test('shows the project its own services, newest first, and nobody else', async () => {
    const [first, second] = [await createdService(api.ask), await createdService(api.ask)];
    const other = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    await createdService(other);
    const { services, hasMore, nextCursor } = read.services(await api.ask('GET', path, { as: 'viewer' }));
    expect(services.map(({ id }) => id)).toEqual([second.serviceId, first.serviceId]);
    expect({ hasMore, nextCursor }).toEqual({ hasMore: false, nextCursor: null });
  });

  test('pages through all of them exactly once while others are created', async () => {
    const ask = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const made = [];
    for (let i = 0; i < 5; i++) made.push((await createdService(ask, { plan: i < 3 ? 'starter' : 'launch' })).serviceId);
    const seen: string[] = [];
    let query = '?limit=2';
    for (let page = read.services(await ask('GET', `${path}${query}`)); ;) {
      seen.push(...page.services.map(({ id }) => id));
      if (!page.hasMore) break;
      await createdService(ask, { plan: 'growth' });
      query = `?limit=2&cursor=${page.nextCursor}`;
      page = read.services(await ask('GET', `${path}${query}`));
    }
    expect(seen).toEqual(made.toReversed());
  });

  test('filters by status, and shows deleted ones only when asked', async () => {
    const ask = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    const { serviceId } = await createdService(ask);
    const { serviceId: gone } = await createdService(ask);
    await api.database.pool.query(`update postgres_service set status = 'deleted', deletion_requested_at = now(), deleted_at = now(), deadline_at = null where id = $1`, [gone]);
    const ids = async (query: string) => read.services(await ask('GET', `${path}${query}`)).services.map(({ id }) => id);
    expect(await ids('')).toEqual([serviceId]);
    expect(await ids('?status=provisioning')).toEqual([serviceId]);
    expect(await ids('?status=deleted')).toEqual([gone]);
    expect(await ids('?status=available')).toEqual([]);
  });

  test.each(['?limit=0', '?limit=101', '?limit=x', '?status=unknown', '?limit=1&limit=2'])('refuses %s', async (query) => {
    const answer = await api.ask('GET', `${path}${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body['code']).toBe('validation_error');
  });

  test("refuses a cursor that was tampered with, or is another filter's or project's", async () => {
    const ask = api.askFor(await createTenant(api.database, api.config.AUTH_SECRET));
    await createdService(ask);
    await createdService(ask);
    const { nextCursor } = read.services(await ask('GET', `${path}?limit=1`));
    for (const query of [`?cursor=${nextCursor}x`, '?cursor=e30', `?cursor=${nextCursor}&status=available`]) {
      expect((await ask('GET', `${path}${query}`)).body['code']).toBe('invalid_cursor');
    }
    expect((await api.ask('GET', `${path}?cursor=${nextCursor}`)).body['code']).toBe('invalid_cursor');
  });
});
