import { createHash, randomBytes } from 'node:crypto';
import type { ZoneChangeSet } from '../../src/dns/ports';
import { backendContract } from '../support/dns-backend-contract';
import { rrsets } from '../support/dns-feed';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(75);
const query = (sql: string, ...values: unknown[]) => world.api.deps.db.pool.query(sql, values);

/** The database holds what the change leads to: our own servers follow it. */
async function store(changes: ZoneChangeSet, whole: readonly string[]): Promise<void> {
  const { zoneId, domain, version, serial, kind } = changes;
  await query(`insert into dns_nameserver_assignment (project_id, domain, token, verify_token) values ('prj_contract', $1, $2, 'x') on conflict do nothing`, domain, randomBytes(5).toString('hex'));
  await query(`insert into dns_zone (id, org_id, project_id, domain, unicode_domain, registrable, mode, serial) values ($1, 'org_contract', 'prj_contract', $2, $2, $2, 'full_hosting', $3) on conflict do nothing`, zoneId, domain, serial);
  await query('delete from dns_record where zone_id = $1', zoneId);
  for (const { name, type, ttl, values } of rrsets(domain, whole)) {
    for (const value of values) {
      const [, priority = null, host = value] = type === 'MX' ? /^(\d+) (.+)$/.exec(value) ?? [] : [];
      await query(`insert into dns_record (id, zone_id, type, name, value, ttl, priority, rdata_hash, version) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        `rec_${randomBytes(8).toString('hex')}`, zoneId, type, name === domain ? '@' : name.slice(0, -domain.length - 1), host, ttl, priority, createHash('sha256').update(value).digest(), version);
    }
  }
  await query('update dns_zone set version = greatest(version, $2), status_version = $2, serial = $3, served = $4 where id = $1', zoneId, version, serial, kind !== 'remove');
}

describe('embedded', () => {
  backendContract(() => ({ backend: world.api.deps.dnsBackend, prepare: store }));

  test('what every server transfers is what the zone holds, and a server that is away is left out', async () => {
    const zone = await world.zone('transferred.test');
    await world.ask('POST', `/dns/zones/${zone.id}/records?wait=published`, { json: { type: 'A', name: 'www', value: '192.0.2.1' } });
    const served = await world.api.deps.dnsBackend.readZone('transferred.test');
    expect(served?.map(({ rrsets: sets }) => sets.filter(({ type }) => type === 'A'))).toEqual(Array(2).fill([{ name: 'www.transferred.test', type: 'A', ttl: 300, values: ['192.0.2.1'] }]));
    await world.stopServer();
    try {
      await expect(world.api.deps.dnsBackend.readZone('transferred.test')).rejects.toThrow('No server transfers');
      expect(await world.api.deps.dnsBackend.health()).toMatchObject({ ok: false });
    } finally {
      await world.restartServer();
    }
  });

  test('a server that says it has the version and answers something else is brought round by a new version', async () => {
    const zone = await world.zone('astray.test');
    await world.ask('POST', `/dns/zones/${zone.id}/records?wait=published`, { json: { type: 'A', name: 'www', value: '192.0.2.1' } });
    await query(`update dns_record set value = '192.0.2.2' where zone_id = $1`, zone.id);
    const { body } = await world.ask('POST', `/dns/zones/${zone.id}/sync`);
    expect(body).toMatchObject({ operation: { state: 'succeeded' }, sync: { status: 'applied', drift: true, counts: { create: 0, update: 1, delete: 0 }, changes: { update: [{ values: ['192.0.2.2'], from: { values: ['192.0.2.1'] } }] } } });
    expect(body.sync.versionAfter).toBe(body.sync.versionBefore + 1);
    expect((await world.dig('www.astray.test', 'A')).answers).toEqual(['www.astray.test A 300 192.0.2.2']);
    expect((await world.ask('POST', `/dns/zones/${zone.id}/sync`, { json: { force: true } })).body.sync.status).toBe('in_sync');
  });
});
