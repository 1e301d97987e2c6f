import { newId } from '../../src/core/ids';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(44);
const create = (json: object, ask: Parameters<typeof world.ask>[2] = {}) => world.ask('POST', '/dns/zones', { json, ...ask });
const soa = async (domain: string) => (await world.dig(domain, 'SOA')).rcode;
const until = async (look: () => Promise<boolean>) => { while (!await look()) await new Promise((done) => setImmediate(done)); };

test('createDnsZone: a pending claim that our servers answer at once, with an operation for its first check', async () => {
  const { status, body } = await create({ domain: 'Fresh.Test.', mode: 'full_hosting' });
  expect(status).toBe(200);
  expect(body.zone).toMatchObject({
    id: expect.stringMatching(/^zone_/), domain: 'fresh.test', mode: 'full_hosting', status: 'pending', statusReason: 'awaiting_nameservers', served: true, version: expect.any(Number),
    verification: { method: 'nameservers', record: null, provenAt: null }, recordCount: 0, recordLimit: 200, gatewayMode: 'monitor', dnssec: { status: 'off', ds: [] }, deletedAt: null,
  });
  expect(body.zone.nameservers).toEqual([expect.stringMatching(/^[a-z0-9]{10}-1\.ns\.holdfast\.test$/), expect.stringMatching(/^[a-z0-9]{10}-2\.ns\.holdfast\.test$/)]);
  expect(body.operation).toMatchObject({ kind: 'dns.verify', state: 'pending', resourceId: body.zone.id });
  await until(async () => await soa('fresh.test') === 'NOERROR');
  expect((await create({ domain: 'fresh.test', mode: 'full_hosting' })).body).toMatchObject({ code: 'zone_exists' });
});

test('createDnsZone refuses what cannot be a zone, and the fourth without a plan', async () => {
  for (const domain of ['com', 'localhost', 'x', '192.0.2.1', 'ns.holdfast.test', 'a.ns.holdfast.test', '-a.test']) {
    expect({ domain, ...await create({ domain, mode: 'full_hosting' }) }).toMatchObject({ domain, status: 400, body: { code: 'validation_error' } });
  }
  for (const domain of ['one.test', 'two.test', 'three.test']) expect((await create({ domain, mode: 'full_hosting' })).status).toBe(200);
  expect(await create({ domain: 'four.test', mode: 'full_hosting' })).toMatchObject({ status: 402, body: { code: 'quota_exceeded', limit: 3, used: 3, upgradeTo: 'launch' } });
});

test('createDnsZone external: nothing is answered, a TXT record proves it', async () => {
  const { body } = await create({ domain: 'outside.test', mode: 'external' });
  expect(body.zone).toMatchObject({ served: false, statusReason: 'awaiting_txt', cnameTarget: expect.stringMatching(/\.edge\.holdfast\.test$/), verification: { method: 'txt', record: { type: 'TXT', name: '_holdfast-verify.outside.test', value: expect.stringMatching(/^holdfast-verify=[0-9a-f]{32}$/) } } });
  const server = await world.registry.addServer('ns1.outside.test');
  server.host('outside.test', ['@ SOA 3600 ns1.outside.test h.outside.test 1 7200 3600 1209600 300', '@ NS 3600 ns1.outside.test', `_holdfast-verify TXT 60 ${body.zone.verification.record.value}`]);
  world.registry.delegate('outside.test', [server.name], { glue: { [server.name]: [server.address] } });
  expect((await world.ask('POST', `/dns/zones/${body.zone.id}/verify`)).body).toMatchObject({ zone: { status: 'active', served: false, nameservers: ['ns1.outside.test'] }, verification: { result: 'verified', method: 'txt' } });
});

test('listDnsZones and getDnsZone show the project its own zones; deleted ones only when asked for', async () => {
  const [a, b] = [await world.zone('list-a.test'), await world.zone('list-b.test')];
  await world.ask('DELETE', `/dns/zones/${a.id}`);
  const ids = async (query: string) => (await world.ask('GET', `/dns/zones${query}`)).body.zones.map((zone: { id: string }) => zone.id);
  expect([await ids(''), await ids('?status=deleted'), await ids('?status=pending'), await ids('?search=LIST-b'), await ids('?mode=external')]).toEqual([[b.id], [a.id], [b.id], [b.id], []]);
  const shown = await world.ask('GET', `/dns/zones/${b.id}`, { as: 'viewer' });
  expect(shown.headers['etag']).toBe(`"${shown.body.zone.version}"`);
  const stranger = await world.newTenant();
  for (const [id, tenant] of [[a.id, world.tenant], [b.id, stranger], [newId('zone'), world.tenant], ['nonsense', world.tenant]] as const) {
    expect(await world.ask('GET', `/dns/zones/${id}`, { tenant })).toMatchObject({ status: 404, body: { code: 'not_found' } });
  }
});

test('deleteDnsZone ends the answers at once, restoreDnsZone brings all of it back under the same names', async () => {
  const zone = await world.zone('back.test');
  await world.ask('POST', `/dns/zones/${zone.id}/records`, { json: { type: 'A', name: 'www', value: '192.0.2.1' } });
  expect((await world.ask('DELETE', `/dns/zones/${zone.id}`, { headers: { 'if-match': '"9999"' } })).body).toMatchObject({ code: 'precondition_failed' });
  const deleted = await world.ask('DELETE', `/dns/zones/${zone.id}`);
  expect(deleted.body).toMatchObject({ deleted: true, zoneId: zone.id, zone: { status: 'deleted', served: false, purgeAt: expect.any(String) } });
  await until(async () => await soa('back.test') === 'REFUSED');
  expect((await world.ask('DELETE', `/dns/zones/${zone.id}`)).status).toBe(404);
  const restored = await world.ask('POST', `/dns/zones/${zone.id}/restore`);
  expect(restored.body.zone).toMatchObject({ id: zone.id, status: 'pending', served: true, nameservers: zone.nameservers, recordCount: 1, deletedAt: null });
  await until(async () => (await world.dig('www.back.test', 'A')).answers.join() === 'www.back.test A 300 192.0.2.1');
  expect((await world.ask('POST', `/dns/zones/${zone.id}/restore`)).body).toMatchObject({ code: 'invalid_state' });
});

test('updateDnsZone takes names of the customer, which must be two and not the domain', async () => {
  const zone = await world.zone('vanity.test');
  const update = (customNameservers: string[]) => world.ask('PATCH', `/dns/zones/${zone.id}`, { json: { customNameservers } });
  for (const names of [['ns1.vanity.test'], ['vanity.test', 'ns2.vanity.test'], ['ns1.vanity.test', 'NS1.vanity.test.']]) expect((await update(names)).body).toMatchObject({ code: 'validation_error' });
  const { body } = await update(['ns1.vanity.test', 'ns2.vanity.test']);
  expect(body.zone).toMatchObject({ nameservers: ['ns1.vanity.test', 'ns2.vanity.test'], glue: [{ name: 'ns1.vanity.test', ipv4: ['127.0.44.101'] }, { name: 'ns2.vanity.test', ipv4: ['127.0.44.102'] }], verification: { record: { type: 'TXT' } } });
});

test('no squatting: claims of others at, above and below a proven zone neither stop nor change it', async () => {
  const zone = await world.zone('victim.test');
  world.registry.delegate('victim.test', zone.nameservers);
  await world.ask('POST', `/dns/zones/${zone.id}/verify`);
  const squatter = await world.newTenant();
  const claims = [await world.zone('victim.test', squatter), await world.zone('www.victim.test', squatter)];
  for (const { id } of claims) {
    const { body } = await world.ask('POST', `/dns/zones/${id}/verify`, { tenant: squatter });
    expect(body).toMatchObject({ zone: { status: 'pending', served: false }, verification: { result: 'not_verified' } });
  }
  expect((await world.ask('GET', `/dns/zones/${zone.id}`)).body.zone).toMatchObject({ status: 'active', served: true });
});

test('no dangling takeover: a delegation left behind never proves or serves the claim of another project', async () => {
  const zone = await world.zone('left.test');
  world.registry.delegate('left.test', zone.nameservers);
  await world.ask('POST', `/dns/zones/${zone.id}/verify`);
  await world.ask('DELETE', `/dns/zones/${zone.id}`);
  await world.api.deps.db.pool.query('update dns_zone set purged_at = now() where id = $1', [zone.id]);
  const other = await world.newTenant();
  const claim = await world.zone('left.test', other);
  expect(claim.nameservers).not.toEqual(zone.nameservers);
  const { body } = await world.ask('POST', `/dns/zones/${claim.id}/verify`, { tenant: other });
  expect(body.zone).toMatchObject({ status: 'pending', served: false });
  const again = await world.zone('left.test');
  expect(again.nameservers).toEqual(zone.nameservers);
  expect((await world.ask('POST', `/dns/zones/${again.id}/verify`)).body.zone).toMatchObject({ status: 'active', served: true });
});
