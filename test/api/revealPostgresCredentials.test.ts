import { createTenant } from '../support/tenant';
import { createdService, read, withPostgresApi } from '../support/postgres-api';
import { givePassword, setStatus } from '../support/postgres-rows';
import { until } from '../support/until';

const api = withPostgresApi();
const at = (serviceId: string) => `/postgres/services/${serviceId}/credentials/reveal`;
const password = 'ZZZZyyyyXXXXwwwwVVVVuuuuTTTTssss';

async function freshTenant() {
  const tenant = await createTenant(api.database, api.config.AUTH_SECRET);
  const ask = api.askFor(tenant);
  const { serviceId } = await createdService(ask);
  await givePassword(api, serviceId, password);
  await setStatus(api.database, serviceId, 'available');
  return { tenant, ask, serviceId };
}

describe('revealPostgresCredentials', () => {
  test('answers the same as reveal=true, with no body and with {}, and is never kept by a cache', async () => {
    const { ask, serviceId } = await freshTenant();
    const answers = [await ask('POST', at(serviceId)), await ask('POST', at(serviceId), { body: {} }), await ask('GET', `/postgres/services/${serviceId}/credentials?reveal=true`)];
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(answer.headers.get('cache-control')).toBe('no-store, private');
      expect(answer.body).toEqual(answers[0]?.body);
      expect(read.credentials(answer).credentials.password).toBe(password);
    }
    expect((await ask('POST', at(serviceId), { body: { reveal: true } })).status).toBe(400);
  });

  test.each([['provisioning', 400], ['failed', 400], ['deleting', 400], ['available', 200], ['updating', 200], ['suspended', 200]])('while %s it answers %i', async (status, expected) => {
    const { ask, serviceId } = await freshTenant();
    await setStatus(api.database, serviceId, status);
    const answer = await ask('POST', at(serviceId));
    expect(answer.status).toBe(expected);
    if (expected === 400) expect(answer.body).toMatchObject({ code: 'invalid_state', status });
  });

  test('no audit, no secret: 500 when the audit row cannot be written', async () => {
    const { ask, serviceId } = await freshTenant();
    await api.database.pool.query(`create function refuse_audit() returns trigger language plpgsql as $$ begin
      if new.action = 'revealPostgresCredentials' then raise exception 'disk full'; end if; return new; end $$`);
    await api.database.pool.query('create trigger refuse_audit before insert on audit_entry for each row execute function refuse_audit()');
    try {
      const answer = await ask('POST', at(serviceId));
      expect([answer.status, answer.body['code']]).toEqual([500, 'internal_error']);
      expect(JSON.stringify(answer.body)).not.toContain(password);
    } finally {
      await api.database.pool.query('drop trigger refuse_audit on audit_entry');
    }
    expect((await ask('POST', at(serviceId))).status).toBe(200);
  });

  test('the eleventh within a minute is refused, whichever way it is asked and whichever service', async () => {
    const { ask, serviceId } = await freshTenant();
    const first = await Promise.all(Array.from({ length: 10 }, (_, i) => (i % 2 ? ask('POST', at(serviceId)) : ask('GET', `/postgres/services/${serviceId}/credentials?reveal=true`))));
    expect(first.map(({ status }) => status)).toEqual(Array(10).fill(200));
    const refused = await ask('POST', at(serviceId));
    expect([refused.status, refused.body['code']]).toEqual([429, 'rate_limited']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await ask('GET', `/postgres/services/${serviceId}/credentials`)).status).toBe(200);
    expect((await ask('POST', at(serviceId), { as: 'admin' })).status).toBe(200);
  });

  test('a viewer, a stale session and a stranger get nothing', async () => {
    const { tenant, ask, serviceId } = await freshTenant();
    expect((await ask('POST', at(serviceId), { as: 'viewer' })).body['code']).toBe('forbidden');
    expect((await ask('POST', at(serviceId), { as: null })).status).toBe(401);
    await api.database.pool.query(`update session set fresh_at = now() - interval '1 hour' where "userId" = $1`, [tenant.userIds.member]);
    expect((await ask('POST', at(serviceId), { as: 'member' })).body['code']).toBe('reauthentication_required');
    expect((await api.ask('POST', at(serviceId))).status).toBe(404);
  });

  test('a member demoted under load gets nothing any more from the answer of the demotion on', async () => {
    const { tenant, ask, serviceId } = await freshTenant();
    const demote = (role: string) => api.database.pool.query('update member set role = $3 where "organizationId" = $1 and "userId" = $2', [tenant.orgId, tenant.userIds.member, role]);
    const after: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      await demote('member');
      await api.database.pool.query('delete from rate_limit');
      let demoted = false;
      const load = Array.from({ length: 6 }, async () => {
        const answer = await ask('POST', at(serviceId), { as: 'member' });
        expect([200, 403]).toContain(answer.status);
        const late = demoted ? await ask('POST', at(serviceId), { as: 'member' }) : null;
        if (late) after.push(late.status);
      });
      await demote('viewer');
      demoted = true;
      after.push((await ask('POST', at(serviceId), { as: 'member' })).status);
      await Promise.all(load);
    }
    expect(new Set(after)).toEqual(new Set([403]));
  });

  test('whoever is demoted between the check of the request and the audit row is refused, and nothing is audited', async () => {
    const { tenant, ask, serviceId } = await freshTenant();
    const client = await api.database.pool.connect();
    await client.query('begin');
    await client.query(`update member set role = 'viewer' where "organizationId" = $1 and "userId" = $2`, [tenant.orgId, tenant.userIds.member]);
    const answer = ask('POST', at(serviceId), { as: 'member' });
    await until(async () => (await api.database.pool.query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)).rows.length > 0);
    await client.query('commit');
    client.release();
    expect((await answer).body['code']).toBe('forbidden');
    const { rows } = await api.database.pool.query(`select 1 from audit_entry where target_id = $1 and action = 'revealPostgresCredentials' and outcome = 'done'`, [serviceId]);
    expect(rows).toEqual([]);
  });
});
