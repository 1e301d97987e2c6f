import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';
import type { Tenant } from '../support/tenant';

const world = withDnsWorld(52);
const [first, second] = ['127.0.52.101', '127.0.52.102'];
const path = (zoneId: string) => `/dns/zones/${zoneId}`;
const create = (json: object, tenant?: Tenant) => world.ask('POST', '/dns/zones', { json: { mode: 'full_hosting', ...json }, ...(tenant ? { tenant } : {}) });
const change = (zoneId: string, customNameservers: string[]) => world.ask('PATCH', path(zoneId), { json: { customNameservers } });
const show = async (zoneId: string) => (await world.ask('GET', path(zoneId))).body.zone;
const sql = (text: string, ...values: unknown[]) => world.api.deps.db.pool.query(text, values);
/** A check of its own, however young the last one is. */
async function verify(zoneId: string, tenant?: Tenant) {
  await sql(`update dns_zone set last_checked_at = now() - interval '1 minute' where id = $1`, zoneId);
  return (await world.ask('POST', `${path(zoneId)}/verify`, tenant ? { tenant } : {})).body;
}
/** The names that are the project's own for a domain, whatever others its zone has. */
const tokens = async (domain: string): Promise<string[]> => (await sql('select token from dns_nameserver_assignment where domain = $1', domain)).rows.flatMap(({ token }) => [1, 2].map((i) => `${token}-${i}.ns.holdfast.test`));
const codes = (body: { verification: { problems: { code: string }[] } }) => body.verification.problems.map(({ code }) => code);
const vanityGlue = (domain: string) => ({ glue: { [`ns1.${domain}`]: [first], [`ns2.${domain}`]: [second] } });
const vanity = (domain: string) => [`ns1.${domain}`, `ns2.${domain}`];

test('names inside the zone get A records with our addresses that a user cannot change, and go with the names', async () => {
  const { body } = await create({ domain: 'inside.test', customNameservers: ['NS1.inside.test.', 'ns2.inside.test'] });
  expect(body.zone).toMatchObject({
    nameservers: vanity('inside.test'), customNameservers: vanity('inside.test'), verification: { method: 'nameservers', record: { type: 'TXT' } },
    glue: [{ name: 'ns1.inside.test', ipv4: [first], ipv6: [] }, { name: 'ns2.inside.test', ipv4: [second], ipv6: [] }],
  });
  const { records } = (await world.ask('GET', `${path(body.zone.id)}/records?sort=name`)).body;
  expect(records).toMatchObject([{ name: 'ns1', type: 'A', value: first, managed: 'nameserver' }, { name: 'ns2', type: 'A', value: second, managed: 'nameserver' }]);
  for (const method of ['PATCH', 'DELETE']) {
    expect(await world.ask(method, `${path(body.zone.id)}/records/${records[0].id}`, method === 'PATCH' ? { json: { value: '192.0.2.1' } } : {})).toMatchObject({ status: 403, body: { code: 'managed_record' } });
  }
  await until(async () => (await world.dig('inside.test', 'NS')).answers.join() === 'inside.test NS 3600 ns1.inside.test,inside.test NS 3600 ns2.inside.test');
  await until(async () => (await world.dig('ns2.inside.test', 'A')).answers.join() === `ns2.inside.test A 3600 ${second}`);
  const back = await change(body.zone.id, []);
  expect(back.body).toMatchObject({ warnings: [], zone: { customNameservers: [], glue: [], verification: { record: null }, nameservers: [expect.stringMatching(/-1\.ns\.holdfast\.test$/), expect.anything()] } });
  expect((await world.ask('GET', `${path(body.zone.id)}/records`)).body.records).toEqual([]);
  await until(async () => (await world.dig('ns2.inside.test', 'A')).rcode === 'NXDOMAIN');
});

test("a user's record in the way of such a name stays and is warned about", async () => {
  const zone = await world.zone('blocked.test');
  await world.ask('POST', `${path(zone.id)}/records`, { json: { type: 'CNAME', name: 'ns1', value: 'elsewhere.example.com' } });
  const { status, body } = await change(zone.id, vanity('blocked.test'));
  expect({ status, warnings: body.warnings }).toMatchObject({ status: 200, warnings: [{ code: 'nameserver_record_blocked', message: expect.stringContaining('ns1.blocked.test') }] });
});

test('names outside must lead to us: a warning when they are set, and a degraded zone when they do not', async () => {
  const host = await world.registry.addServer('ns1.hosts.test');
  const hosts = (one: string) => host.host('hosts.test', [`ns1 A 60 ${host.address}`, `a A 60 ${one}`, `b A 60 ${second}`]);
  hosts('192.0.2.99');
  world.registry.delegate('hosts.test', [host.name], { glue: { [host.name]: [host.address] } });
  const { body } = await create({ domain: 'outside.test', customNameservers: ['a.hosts.test', 'b.hosts.test'] });
  expect(body).toMatchObject({ warnings: [{ code: 'custom_nameservers_wrong_address', message: expect.stringContaining('a.hosts.test leads to 192.0.2.99') }], zone: { glue: [] } });
  world.registry.delegate('outside.test', await tokens('outside.test'));
  expect(await verify(body.zone.id)).toMatchObject({ zone: { status: 'active', verification: { provenAt: expect.any(String) } } });
  world.registry.delegate('outside.test', ['a.hosts.test', 'b.hosts.test']);
  const wrong = await verify(body.zone.id);
  expect(wrong).toMatchObject({ zone: { status: 'degraded', statusReason: 'custom_nameservers_wrong_address' } });
  expect(wrong.verification.problems.find(({ code }: { code: string }) => code === 'custom_nameservers_wrong_address')).toMatchObject({ severity: 'critical', fix: expect.stringContaining(first) });
  hosts(first);
  const right = await verify(body.zone.id);
  expect(codes(right)).not.toContain('custom_nameservers_wrong_address');
  expect(right.zone.status).toBe('active');
  expect((await change(body.zone.id, ['b.hosts.test', 'nobody.hosts.test'])).body.warnings).toMatchObject([{ code: 'custom_nameservers_wrong_address', message: expect.stringContaining('nobody.hosts.test has no address') }]);
}, 30_000);

test('wrong glue at the registry degrades until it is corrected', async () => {
  const zone = await world.zone('glued.test');
  world.registry.delegate('glued.test', zone.nameservers);
  await verify(zone.id);
  await change(zone.id, vanity('glued.test'));
  world.registry.delegate('glued.test', vanity('glued.test'), { glue: { 'ns1.glued.test': [first], 'ns2.glued.test': ['192.0.2.7'] } });
  expect(await verify(zone.id)).toMatchObject({ zone: { status: 'degraded', statusReason: 'custom_nameservers_wrong_address' } });
  world.registry.delegate('glued.test', vanity('glued.test'), vanityGlue('glued.test'));
  expect((await verify(zone.id)).zone).toMatchObject({ status: 'active', statusReason: null });
}, 30_000);

test('custom names prove nothing by themselves; a token name in the delegation does, and the proof holds', async () => {
  const { body } = await create({ domain: 'proof.test', customNameservers: vanity('proof.test') });
  world.registry.delegate('proof.test', vanity('proof.test'), vanityGlue('proof.test'));
  const unproven = await verify(body.zone.id);
  expect(unproven).toMatchObject({ verification: { result: 'not_verified' }, zone: { status: 'pending', statusReason: 'custom_nameservers_unproven', verification: { provenAt: null } } });
  expect(unproven.verification.problems[0].fix).toMatch(/_holdfast-verify\.proof\.test.*holdfast-verify=[0-9a-f]{32}.*-1\.ns\.holdfast\.test/);
  expect(unproven.zone.served).toBe(false);
  world.registry.delegate('proof.test', ['ns1.proof.test', ...(await tokens('proof.test')).slice(1)], { glue: { 'ns1.proof.test': [first] } });
  expect((await verify(body.zone.id)).zone).toMatchObject({ status: 'active', served: true, verification: { provenAt: expect.any(String) } });
  world.registry.delegate('proof.test', vanity('proof.test'), vanityGlue('proof.test'));
  expect((await verify(body.zone.id)).zone).toMatchObject({ status: 'active', statusReason: null });
}, 30_000);

test('a TXT record at the present provider proves them before the delegation is changed; the same record answered by us does not', async () => {
  const { body } = await create({ domain: 'txt.test', customNameservers: vanity('txt.test') });
  const { name, value } = body.zone.verification.record;
  const provider = await world.registry.addServer('ns1.txtprovider.test');
  const host = (lines: string[]) => provider.host('txt.test', ['@ SOA 60 ns1.txtprovider.test h.txt.test 1 7200 3600 1209600 300', '@ NS 60 ns1.txtprovider.test', ...lines]);
  provider.host('txtprovider.test', [`ns1 A 60 ${provider.address}`, `alias TXT 60 ${value}`]);
  world.registry.delegate('txtprovider.test', [provider.name], { glue: { [provider.name]: [provider.address] } });
  world.registry.delegate('txt.test', [provider.name]);
  host(['_holdfast-verify CNAME 60 alias.txtprovider.test']);
  expect((await verify(body.zone.id)).zone.verification.provenAt).toBeNull();
  host([`_holdfast-verify TXT 60 ${value}`]);
  const proven = await verify(body.zone.id);
  expect(proven).toMatchObject({ zone: { status: 'pending', statusReason: 'foreign_nameservers', verification: { provenAt: expect.any(String) } }, verification: { txt: { name, found: [value] } } });
  world.registry.delegate('txt.test', vanity('txt.test'), vanityGlue('txt.test'));
  expect((await verify(body.zone.id)).zone).toMatchObject({ status: 'active' });
}, 30_000);

test('for seven days after a change the former names are still expected, then they are foreign', async () => {
  const zone = await world.zone('former.test');
  world.registry.delegate('former.test', zone.nameservers);
  await verify(zone.id);
  await change(zone.id, vanity('former.test'));
  world.registry.delegate('former.test', vanity('former.test'), vanityGlue('former.test'));
  await verify(zone.id);
  await change(zone.id, ['x.former.test', 'y.former.test']);
  await change(zone.id, []);
  const during = await verify(zone.id);
  expect(during).toMatchObject({ verification: { result: 'verified', unexpected: [] } });
  await sql(`update dns_zone set former_until = now() - interval '1 second' where id = $1`, zone.id);
  expect(await verify(zone.id)).toMatchObject({ verification: { result: 'not_verified', unexpected: vanity('former.test') }, zone: { status: 'degraded', statusReason: 'foreign_nameservers' } });
}, 30_000);

test('no dangling takeover of a vanity delegation: glue that still leads to us serves no stranger, and the first project is active again at its next check', async () => {
  const zone = await world.zone('vain.test');
  world.registry.delegate('vain.test', zone.nameservers);
  await verify(zone.id);
  await change(zone.id, vanity('vain.test'));
  world.registry.delegate('vain.test', vanity('vain.test'), vanityGlue('vain.test'));
  expect((await verify(zone.id)).zone.status).toBe('active');
  await world.ask('DELETE', path(zone.id));
  await sql('update dns_zone set purged_at = now() where id = $1', zone.id);
  const stranger = await world.newTenant();
  for (const customNameservers of [vanity('vain.test'), []]) {
    const claim = (await create({ domain: 'vain.test', customNameservers }, stranger)).body.zone;
    for (let i = 0; i < 2; i++) expect((await verify(claim.id, stranger)).zone).toMatchObject({ status: 'pending', served: false });
    expect((await world.dig('vain.test', 'SOA')).rcode).toBe('REFUSED');
    await world.ask('DELETE', path(claim.id), { tenant: stranger });
  }
  const again = (await create({ domain: 'vain.test', customNameservers: vanity('vain.test') })).body.zone;
  expect((await verify(again.id)).zone).toMatchObject({ status: 'active', served: true });
  await until(async () => (await world.dig('vain.test', 'SOA')).rcode === 'NOERROR');
}, 30_000);

test('no squatting below a proven zone with the names it delegates to: they are anybody\'s until they are proven', async () => {
  const parent = await world.zone('parent.test');
  world.registry.delegate('parent.test', parent.nameservers);
  expect((await verify(parent.id)).zone.status).toBe('active');
  for (const value of ['ns1.dev.example.com', 'ns2.dev.example.com']) await world.ask('POST', `${path(parent.id)}/records`, { json: { type: 'NS', name: 'dev', value } });
  const stranger = await world.newTenant();
  const claim = (await create({ domain: 'dev.parent.test', customNameservers: ['ns1.dev.example.com', 'ns2.dev.example.com'] }, stranger)).body.zone;
  expect(claim.served).toBe(false);
  expect((await verify(claim.id, stranger)).zone).toMatchObject({ status: 'pending', served: false, statusReason: 'custom_nameservers_unproven' });
  await until(async () => (await world.dig('www.dev.parent.test', 'A')).answers.length === 0 && (await world.dig('www.dev.parent.test', 'A')).rcode === 'NOERROR');
}, 30_000);

test('names of the platform are nobody\'s own', async () => {
  for (const suffix of ['ns.holdfast.test', 'edge.holdfast.test']) {
    expect(await create({ domain: 'taken.test', customNameservers: [`abcdefghjk-1.${suffix}`, `abcdefghjk-2.${suffix}`] })).toMatchObject({ status: 400, body: { code: 'validation_error', issues: [{ path: 'customNameservers.0' }, { path: 'customNameservers.1' }] } });
  }
});

test('a claim that has moved is remembered no longer: who held the name before proves it anew', async () => {
  const zone = await world.zone('sold.test');
  world.registry.delegate('sold.test', zone.nameservers);
  await verify(zone.id);
  await change(zone.id, vanity('sold.test'));
  world.registry.delegate('sold.test', vanity('sold.test'), vanityGlue('sold.test'));
  await verify(zone.id);
  world.registry.delegate('sold.test', ['ns1.buyer.test', 'ns2.buyer.test']);
  for (let i = 0; i < 3; i++) {
    await sql(`update dns_zone set first_miss_at = first_miss_at - interval '1 hour' where id = $1`, zone.id);
    await verify(zone.id);
  }
  expect(await show(zone.id)).toMatchObject({ status: 'moved', verification: { provenAt: null } });
  world.registry.delegate('sold.test', vanity('sold.test'), vanityGlue('sold.test'));
  expect((await verify(zone.id)).zone).toMatchObject({ status: 'moved', statusReason: 'custom_nameservers_unproven' });
}, 30_000);
