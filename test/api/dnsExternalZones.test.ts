import { requestProductDeletions } from '../../src/identity/service';
import type { ForeignServer } from '../support/fake-registry';
import { withDnsWorld } from '../support/dns-world';
import { until } from '../support/until';

const gateway = '203.0.113.80';
const world = withDnsWorld(53, { GATEWAY_PUBLIC_ADDRESSES: gateway });
const path = (zoneId: string) => `/dns/zones/${zoneId}`;
const sql = (text: string, ...values: unknown[]) => world.api.deps.db.pool.query(text, values);
let provider: ForeignServer;
let serial = 1;

beforeAll(async () => {
  provider = await world.registry.addServer('ns1.provider.test');
  provider.host('provider.test', [`ns1 A 60 ${provider.address}`]);
  world.registry.delegate('provider.test', [provider.name], { glue: { [provider.name]: [provider.address] } });
  world.registry.delegate('edge.holdfast.test', ['s1.ns.holdfast.test', 's2.ns.holdfast.test']);
});

/** What the customer's own provider answers for a domain. */
function host(domain: string, lines: readonly string[]): void {
  provider.host(domain, [`@ SOA 60 ns1.provider.test h.${domain} ${++serial} 7200 3600 1209600 300`, '@ NS 60 ns1.provider.test', ...lines]);
  world.registry.delegate(domain, [provider.name]);
}

async function create(domain: string, more: object = {}) {
  const { zone } = (await world.ask('POST', '/dns/zones', { json: { domain, mode: 'external', ...more } })).body;
  return { id: String(zone.id), target: String(zone.cnameTarget), proof: `_holdfast-verify TXT 60 ${zone.verification.record.value}` };
}

async function verify(zoneId: string) {
  await sql(`update dns_zone set last_checked_at = now() - interval '1 minute' where id = $1`, zoneId);
  return (await world.ask('POST', `${path(zoneId)}/verify`)).body;
}

const proxy = (zoneId: string, name: string) => world.ask('POST', `${path(zoneId)}/records`, { json: { type: 'A', name, value: '8.8.8.8', proxied: true } });
const required = async (zoneId: string) => (await world.ask('POST', `${path(zoneId)}/sync`, { json: { dryRun: true } })).body.sync.required;

test('proven by TXT at its own servers, never served, its target answered with the gateway, its name servers those at the parent', async () => {
  const zone = await create('own.test', { customNameservers: ['ns1.provider.test', 'ns2.provider.test'] });
  host('own.test', []);
  expect(await verify(zone.id)).toMatchObject({ zone: { status: 'pending', statusReason: 'awaiting_txt', served: false, glue: [] }, verification: { result: 'not_verified', method: 'txt' } });
  host('own.test', [zone.proof]);
  const { zone: shown, verification } = await verify(zone.id);
  expect(shown).toMatchObject({ status: 'active', served: false, nameservers: ['ns1.provider.test'], verification: { provenAt: expect.any(String) }, publication: { published: true } });
  expect(verification).toMatchObject({ expected: ['ns1.provider.test', 'ns2.provider.test'], missing: ['ns2.provider.test'], unexpected: [], problems: [] });
  await until(async () => (await world.dig(zone.target, 'A')).answers.join() === `${zone.target} A 3600 ${gateway}`);
  expect((await world.dig('own.test', 'SOA')).rcode).toBe('REFUSED');
  expect((await world.ask('GET', `${path(zone.id)}/records`)).body.records).toEqual([]);
});

test('other servers at the parent than expected are a warning in the report and nothing more', async () => {
  const zone = await create('warned.test', { customNameservers: ['ns1.expected.test', 'ns2.expected.test'] });
  host('warned.test', [zone.proof]);
  expect(await verify(zone.id)).toMatchObject({ zone: { status: 'active' }, verification: { unexpected: ['ns1.provider.test'], problems: [{ code: 'foreign_nameservers', severity: 'warning' }] } });
});

test('a TXT record gone is a miss: after three over an hour the zone has moved, and proven again it is back', async () => {
  const zone = await create('gone.test');
  host('gone.test', [zone.proof]);
  await verify(zone.id);
  host('gone.test', []);
  expect(await verify(zone.id)).toMatchObject({ zone: { status: 'active', statusReason: 'txt_missing' }, verification: { result: 'not_verified' } });
  await verify(zone.id);
  await sql(`update dns_zone set first_miss_at = now() - interval '1 hour' where id = $1`, zone.id);
  expect((await verify(zone.id)).zone).toMatchObject({ status: 'moved', verification: { provenAt: null } });
  host('gone.test', [zone.proof]);
  expect((await verify(zone.id)).zone).toMatchObject({ status: 'active', statusReason: null });
});

test('sync says what to set: the proof until it is given, an alias for each proxied name, the gateway for the apex', async () => {
  const zone = await create('required.test');
  const { record } = (await world.ask('GET', path(zone.id))).body.zone.verification;
  for (const name of ['www', '@']) await proxy(zone.id, name);
  await world.ask('POST', `${path(zone.id)}/records`, { json: { type: 'A', name: 'plain', value: '8.8.8.8' } });
  const names = [{ type: 'A', name: 'required.test', value: gateway }, { type: 'CNAME', name: 'www.required.test', value: zone.target }];
  expect(await required(zone.id)).toEqual([record, ...names]);
  host('required.test', [zone.proof, `@ A 60 ${gateway}`, `www CNAME 60 ${zone.target}`]);
  expect(await verify(zone.id)).toMatchObject({ zone: { status: 'active', statusReason: null }, verification: { cnames: expect.arrayContaining([{ name: 'required.test', target: zone.target, ok: true }, { name: 'www.required.test', target: zone.target, ok: true }]) } });
  expect(await required(zone.id)).toEqual(names);
});

test('a proxied name that does not reach us degrades the zone, directly or by an alias of an alias it does', async () => {
  const zone = await create('away.test');
  for (const name of ['www', 'shop']) await proxy(zone.id, name);
  host('away.test', [zone.proof, `www CNAME 60 ${zone.target}`, 'shop A 60 192.0.2.1']);
  const { zone: shown, verification } = await verify(zone.id);
  expect(shown).toMatchObject({ status: 'degraded', statusReason: 'cname_missing' });
  expect(verification.problems).toEqual([{ code: 'cname_missing', severity: 'critical', message: expect.stringContaining('shop.away.test'), fix: `Set CNAME shop.away.test to ${zone.target}.` }]);
  host('away.test', [zone.proof, `www CNAME 60 ${zone.target}`, 'shop CNAME 60 www.away.test']);
  expect((await verify(zone.id)).zone).toMatchObject({ status: 'active', statusReason: null });
});

test('25 names a check, each in its turn, and one that failed is not forgotten while others have theirs', async () => {
  const zone = await create('many.test');
  const names = Array.from({ length: 60 }, (_, i) => `n${String(i).padStart(2, '0')}`);
  await sql(`insert into dns_record (id, zone_id, type, name, value, ttl, proxied, origin_protocol, rdata_hash, version)
    select 'rec_m' || lpad(n::text, 25, '0'), $1, 'A', 'n' || lpad(n::text, 2, '0'), '8.8.8.8', 300, true, 'http', decode(lpad(to_hex(n), 8, '0'), 'hex'), 1 from generate_series(0, 59) n`, zone.id);
  await sql('update dns_zone set proxied_count = 60, record_count = 60 where id = $1', zone.id);
  const lines = (wrong: string) => [zone.proof, ...names.map((name) => (name === wrong ? `${name} A 60 192.0.2.1` : `${name} CNAME 60 ${zone.target}`))];
  host('many.test', lines('n03'));
  const seen: string[][] = [];
  const statuses: string[] = [];
  for (let i = 0; i < 4; i++) {
    const { zone: shown, verification } = await verify(zone.id);
    statuses.push(shown.status);
    seen.push(verification.cnames.map(({ name }: { name: string }) => name.split('.')[0]));
  }
  expect(seen.map(({ length }) => length)).toEqual([25, 25, 25, 25]);
  expect(new Set(seen.flat())).toEqual(new Set(names));
  expect(seen.every((checked) => checked.includes('n03'))).toBe(true);
  expect(statuses).toEqual(['degraded', 'degraded', 'degraded', 'degraded']);
  host('many.test', lines(''));
  expect((await verify(zone.id)).zone.status).toBe('active');
}, 60_000);

test('two claims proven at once: the holder keeps the name; it goes to the other when only that is still proven', async () => {
  const holder = await create('both.test');
  const other = await world.newTenant();
  const { zone: rival } = (await world.ask('POST', '/dns/zones', { tenant: other, json: { domain: 'both.test', mode: 'external' } })).body;
  const rivalProof = `_holdfast-verify TXT 60 ${rival.verification.record.value}`;
  const verifyRival = async () => {
    await sql(`update dns_zone set last_checked_at = now() - interval '1 minute' where id = $1`, rival.id);
    return (await world.ask('POST', `${path(rival.id)}/verify`, { tenant: other })).body.zone;
  };
  host('both.test', [holder.proof, rivalProof]);
  expect((await verify(holder.id)).zone.status).toBe('active');
  expect(await verifyRival()).toMatchObject({ status: 'pending', statusReason: 'claimed_elsewhere' });
  expect((await world.ask('GET', path(holder.id))).body.zone).toMatchObject({ status: 'active', statusReason: null });
  host('both.test', [rivalProof]);
  expect(await verifyRival()).toMatchObject({ status: 'active', statusReason: null });
  expect((await world.ask('GET', path(holder.id))).body.zone).toMatchObject({ status: 'moved', statusReason: 'claimed_elsewhere' });
  await world.ask('DELETE', path(holder.id));
  expect((await world.ask('POST', `${path(holder.id)}/restore`)).body.zone).toMatchObject({ status: 'pending' });
});

test('the same project gets the same target again, another one never', async () => {
  const first = await create('again.test');
  await world.ask('DELETE', path(first.id));
  expect((await create('again.test')).target).toBe(first.target);
  const { zone } = (await world.ask('POST', '/dns/zones', { tenant: await world.newTenant(), json: { domain: 'again.test', mode: 'external' } })).body;
  expect(zone.cnameTarget).not.toBe(first.target);
});

test('silence of its servers changes nothing', async () => {
  const zone = await create('silence.test');
  await proxy(zone.id, 'www');
  host('silence.test', [zone.proof, `www CNAME 60 ${zone.target}`]);
  const before = (await verify(zone.id)).zone;
  world.registry.delegate('silence.test', ['ns9.provider.test'], { glue: { 'ns9.provider.test': ['127.0.53.250'] } });
  const { zone: after, verification } = await verify(zone.id);
  expect(verification.result).toBe('inconclusive');
  expect({ status: after.status, reason: after.statusReason, failures: after.verification.failures }).toEqual({ status: before.status, reason: before.statusReason, failures: before.verification.failures });
}, 30_000);

test('the target of a purged zone does not exist any more', async () => {
  const zone = await create('target.test');
  await until(async () => (await world.dig(zone.target, 'A')).rcode === 'NOERROR');
  await requestProductDeletions(world.api.deps, world.tenant.projectId);
  expect((await world.dig(zone.target, 'A')).rcode).toBe('NOERROR');
  await sql('update dns_zone set purged_at = now(), version = version + 1 where id = $1', zone.id);
  await until(async () => (await world.dig(zone.target, 'A')).rcode === 'NXDOMAIN');
});
