import { MockActivityEnvironment } from '@temporalio/testing';
import { createDnsActivities } from '../../activities/dns';
import { PowerdnsBackend } from '../../src/adapters/dns-backend/powerdns';
import { createListener } from '../../src/db/listen';
import { startSyncRelay } from '../../src/dns/service';
import { registerPushBackend } from '../../src/dns/store/sync';
import { inTransaction } from '../../src/db/transaction';
import { dnsReconcileRule } from '../../src/dns/reconcile';
import { silent } from '../support/accepted-work';
import { ask, lines } from '../support/dns-client';
import { withDnsWorld } from '../support/dns-world';
import { powerdnsMissing, TestPowerdns } from '../support/powerdns';
import { until } from '../support/until';

const world = withDnsWorld(73);
const withPowerdns = powerdnsMissing === null ? describe : describe.skip;

withPowerdns(`zones answered by PowerDNS${powerdnsMissing === null ? '' : ` (skipped: ${powerdnsMissing})`}`, () => {
  let pdns: TestPowerdns | undefined;
  const server = (): TestPowerdns => {
    if (!pdns) throw new Error('It runs from beforeAll on.');
    return pdns;
  };
  beforeAll(async () => {
    pdns = await TestPowerdns.start();
    Object.assign(world.api.deps, { dnsBackend: new PowerdnsBackend({ url: pdns.url, apiKey: pdns.apiKey, serverId: 'localhost', timeoutMs: 2_000 }) });
    await registerPushBackend(world.api.deps.db.prisma, 'push');
  });
  afterAll(() => pdns?.close());

  const run = (name: 'ensureZonePublished' | 'listDriftedZones', input: Record<string, string>): Promise<unknown> => {
    const activities = createDnsActivities(world.api.deps);
    return new MockActivityEnvironment().run(activities[name], input as never);
  };
  const publish = (zoneId: string) => run('ensureZonePublished', { zoneId });
  const sync = async (zoneId: string, json: Record<string, unknown> = {}) => (await world.ask('POST', `/dns/zones/${zoneId}/sync`, { json })).body;
  const create = async (zoneId: string, json: Record<string, unknown>) => (await world.ask('POST', `/dns/zones/${zoneId}/records`, { json })).body;
  const dig = async (name: string, type = 'A') => lines((await ask(server(), name, type)).answers).sort();
  const zoneOf = async (zoneId: string) => (await world.ask('GET', `/dns/zones/${zoneId}`)).body.zone;
  const column = async (name: string, zoneId: string) => (await world.api.deps.db.pool.query(`select ${name} as value from dns_zone where id = $1`, [zoneId])).rows[0].value;
  const tamper = (domain: string, rrsets: unknown[]) => server().api('PATCH', `/zones/${domain}.`, { rrsets });
  const set = (name: string, values: string[]) => ({ name: `${name}.`, type: 'A', ttl: 300, changetype: 'REPLACE', records: values.map((content) => ({ content, disabled: false })) });
  const filled = async (domain: string, records: number) => {
    const zone = await world.zone(domain);
    await world.ask('POST', `/dns/zones/${zone.id}/records/batch`, { json: { deletes: [], updates: [], creates: Array.from({ length: records }, (_, i) => ({ type: 'A', name: `h${i}`, value: `192.0.2.${i + 1}` })) } });
    await publish(zone.id);
    await world.api.deps.db.pool.query('update dns_zone set sync_reported_at = null where id = $1', [zone.id]);
    return zone;
  };

  test('a version is published when PowerDNS has it, and not before', async () => {
    const zone = await world.zone('pushed.test');
    const { publication } = await create(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
    expect(publication.published).toBe(false);
    expect(await zoneOf(zone.id)).toMatchObject({ publication: { published: false, publishedVersion: 0 }, sync: { status: 'pending' } });
    expect(await publish(zone.id)).toEqual({ version: publication.version });
    expect(await zoneOf(zone.id)).toMatchObject({ publication: { published: true, publishedVersion: publication.version, publishedAt: expect.any(String) }, sync: { status: 'synced', lastError: null } });
    expect(await dig('www.pushed.test')).toEqual(['www.pushed.test A 300 192.0.2.1']);
    await create(zone.id, { type: 'TXT', name: 'www', value: 'x'.repeat(300) });
    for (let i = 0; i < 2; i++) await publish(zone.id);
    expect(await dig('www.pushed.test', 'TXT')).toEqual([`www.pushed.test TXT 300 ${'x'.repeat(300)}`]);
    expect(await sync(zone.id, { force: true })).toMatchObject({ sync: { status: 'in_sync', drift: false, changes: { create: [], update: [], delete: [] } }, operation: { state: 'succeeded' } });
  });

  test('drift is found, told RRset by RRset, and repaired without a version', async () => {
    const zone = await filled('drifting.test', 4);
    await tamper('drifting.test', [set('h0.drifting.test', ['203.0.113.66']), set('h1.drifting.test', []), set('evil.drifting.test', ['203.0.113.66'])]);
    expect(await run('listDriftedZones', { after: '' })).toEqual({ drifted: [zone.id], next: null });
    const before = await zoneOf(zone.id);
    const looked = await sync(zone.id, { dryRun: true });
    expect(looked).toMatchObject({ operation: null, sync: {
      status: 'partial', dryRun: true, drift: true, counts: { create: 1, update: 1, delete: 1 }, servers: [{ name: 'localhost', inSync: false, version: before.version }],
      changes: { create: [{ name: 'h1.drifting.test', type: 'A', ttl: 300, values: ['192.0.2.2'] }], update: [{ name: 'h0.drifting.test', values: ['192.0.2.1'], from: { values: ['203.0.113.66'] } }], delete: [{ name: 'evil.drifting.test', values: ['203.0.113.66'] }] },
    } });
    expect(await dig('h0.drifting.test')).toEqual(['h0.drifting.test A 300 203.0.113.66']);
    expect(await sync(zone.id)).toMatchObject({ sync: { status: 'applied', drift: true, versionBefore: before.version, versionAfter: before.version, serial: before.serial, servers: [{ inSync: true }] }, operation: { state: 'succeeded' } });
    expect([await dig('h0.drifting.test'), await dig('h1.drifting.test'), await dig('evil.drifting.test')]).toEqual([['h0.drifting.test A 300 192.0.2.1'], ['h1.drifting.test A 300 192.0.2.2'], []]);
    expect(await run('listDriftedZones', { after: '' })).toEqual({ drifted: [], next: null });
    expect(await sync(zone.id)).toMatchObject({ sync: { cached: true }, operation: null });
  });

  test('a repair of most of the zone is blocked until force, changes made here never are', async () => {
    const zone = await filled('guarded.test', 12);
    await tamper('guarded.test', Array.from({ length: 5 }, (_, i) => set(`h${i}.guarded.test`, ['203.0.113.66'])));
    const blocked = await sync(zone.id);
    expect(blocked).toMatchObject({ sync: { status: 'blocked', drift: true, counts: { update: 5 } }, operation: { state: 'failed' }, zone: { sync: { status: 'blocked', lastError: { code: 'mass_change' } } } });
    expect(await dig('h0.guarded.test')).toEqual(['h0.guarded.test A 300 203.0.113.66']);
    await publish(zone.id);
    expect(await dig('h1.guarded.test')).toEqual(['h1.guarded.test A 300 203.0.113.66']);
    expect(await sync(zone.id, { force: true })).toMatchObject({ sync: { status: 'applied', counts: { update: 5 } }, zone: { sync: { status: 'synced', lastError: null } } });
    expect(await dig('h0.guarded.test')).toEqual(['h0.guarded.test A 300 192.0.2.1']);
    const { records } = (await world.ask('GET', `/dns/zones/${zone.id}/records`)).body;
    await world.ask('POST', `/dns/zones/${zone.id}/records/bulk-delete`, { json: { recordIds: records.slice(0, 11).map(({ id }: { id: string }) => id) } });
    expect(await sync(zone.id)).toMatchObject({ sync: { status: 'applied', counts: { create: 0, update: 0, delete: 11 } } });
  });

  test('while PowerDNS is down writes are accepted, sync says so, and everything is applied later', async () => {
    const zone = await filled('down.test', 2);
    await server().stop();
    const { publication } = await create(zone.id, { type: 'A', name: 'late', value: '192.0.2.99' });
    expect(publication).toMatchObject({ published: false });
    await expect(publish(zone.id)).rejects.toThrow();
    expect(await run('listDriftedZones', { after: '' })).toEqual({ drifted: [], next: null });
    const { status, body } = await world.ask('POST', `/dns/zones/${zone.id}/sync`);
    expect({ status, body }).toMatchObject({ status: 200, body: { sync: { status: 'partial', drift: true, versionAfter: publication.version }, operation: { state: 'pending' }, zone: { sync: { status: 'pending' } } } });
    await server().resume();
    await publish(zone.id);
    expect(await dig('late.down.test')).toEqual(['late.down.test A 300 192.0.2.99']);
    expect((await world.ask('GET', `/operations/${body.operation.id}`)).body.operation.state).toBe('succeeded');
  });

  test('a refusal is failed, and the next sync mends it', async () => {
    const zone = await filled('refused.test', 1);
    const { dnsBackend } = world.api.deps;
    Object.assign(world.api.deps, { dnsBackend: new PowerdnsBackend({ url: server().url, apiKey: 'wrong', serverId: 'localhost', timeoutMs: 2_000 }) });
    expect(await sync(zone.id, { force: true })).toMatchObject({ sync: { status: 'failed' }, operation: { state: 'failed', error: { code: 'backend_error' } }, zone: { sync: { status: 'failed', lastError: { code: 'backend_error' } } } });
    Object.assign(world.api.deps, { dnsBackend });
    expect((await inTransaction(world.api.deps.db, (tx) => dnsReconcileRule.reopen?.(tx, 100) ?? Promise.resolve([]))).filter(({ resourceId, kind }) => resourceId === zone.id && kind === 'dns.sync')).toHaveLength(1);
    expect(await sync(zone.id, { force: true })).toMatchObject({ sync: { status: 'in_sync' }, zone: { sync: { status: 'synced', lastError: null } } });
  });

  test('a deleted zone is served nowhere, a restored one again, with what it had', async () => {
    const zone = await filled('gone.test', 2);
    await world.ask('DELETE', `/dns/zones/${zone.id}`);
    for (let i = 0; i < 2; i++) await publish(zone.id);
    expect((await server().api('GET', '/zones/gone.test.')).status).toBe(404);
    expect(await column('applied_version = version', zone.id)).toBe(true);
    await world.ask('POST', `/dns/zones/${zone.id}/restore`);
    await publish(zone.id);
    expect(await dig('h1.gone.test')).toEqual(['h1.gone.test A 300 192.0.2.2']);
  });

  test('a zone that was lost there, and one whose backend is ahead of the database, are whole again', async () => {
    const zone = await filled('lost.test', 2);
    await server().api('DELETE', '/zones/lost.test.');
    expect(await run('listDriftedZones', { after: '' })).toMatchObject({ drifted: expect.arrayContaining([zone.id]) });
    expect(await sync(zone.id, { force: true })).toMatchObject({ sync: { status: 'applied', counts: { create: 3 } } });
    await server().api('PUT', '/zones/lost.test./metadata/X-HOLDFAST-VERSION', { kind: 'X-HOLDFAST-VERSION', metadata: [`${zone.id} 99`] });
    await create(zone.id, { type: 'A', name: 'next', value: '192.0.2.50' });
    await publish(zone.id);
    expect(await dig('next.lost.test')).toEqual(['next.lost.test A 300 192.0.2.50']);
    expect((await zoneOf(zone.id)).version).toBe(100);
  });

  test('the relay tells the workflow of every zone once per version, again when Temporal was away', async () => {
    const { db, config, dnsBackend } = world.api.deps;
    const listener = createListener({ url: config.DATABASE_URL, process: 'worker', log: silent });
    const told: string[] = [];
    let away = true;
    const relay = startSyncRelay({ db, dnsBackend, listener, log: silent, startSync: async (zoneId) => {
      if (away) throw new Error('Temporal does not answer.');
      told.push(zoneId);
    } });
    const external = (await world.ask('POST', '/dns/zones', { json: { domain: 'elsewhere.test', mode: 'external' } })).body.zone;
    const zone = await world.zone('told.test');
    away = false;
    const count = () => told.filter((id) => id === zone.id).length;
    await until(() => count() === 1, 'the first version to be told');
    await create(zone.id, { type: 'A', name: 'www', value: '192.0.2.1' });
    await until(() => count() === 2, 'the second version to be told');
    await relay.stop();
    await listener.close();
    expect(told).not.toContain(external.id);
    expect(count()).toBe(2);
  });
});
