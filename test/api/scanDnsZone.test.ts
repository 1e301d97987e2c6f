import { startTestServer } from '../support/dns-client';
import { fullZone, HandFeed } from '../support/dns-feed';
import { withDnsWorld } from '../support/dns-world';

const world = withDnsWorld(43);
const scan = (json: object, ask: Parameters<typeof world.ask>[2] = {}) => world.ask('POST', '/dns/scan', { json, ...ask });
type Found = { type: string; name: string; value: string; ttl: number; priority: number | null; source: string };
const linesOf = (records: Found[]) => records.map(({ type, name, value, ttl, priority, source }) => [name, type, ttl, priority, value, source].filter((field) => field !== null).join(' '));

async function stranger(domain: string, lines: readonly string[]): Promise<void> {
  const server = await world.registry.addServer(`ns1.${domain}`);
  server.host(domain, lines);
  world.registry.delegate(domain, [server.name], { glue: { [server.name]: [server.address] } });
}

test('finds what the present servers answer, each record as it can be created here', async () => {
  await stranger('found.test', [
    '@ SOA 3600 ns1.found.test hostmaster.found.test 7 7200 3600 1209600 300', '@ NS 3600 ns1.found.test', '@ A 300 192.0.2.10', '@ MX 3600 10 mx.elsewhere.net', '@ TXT 30 v=spf1 include:_spf.found.test -all',
    'www CNAME 600 found.test', 'api AAAA 300 2001:db8::1', '_dmarc TXT 300 v=DMARC1; p=none', '_spf TXT 300 v=spf1 ip4:192.0.2.0/24 -all', 'odd-name A 300 192.0.2.77',
  ]);
  const { status, body } = await scan({ domain: 'Found.test.', names: ['odd-name'] });
  expect({ status, complete: body.complete, warnings: body.warnings, wildcard: body.wildcard }).toEqual({ status: 200, complete: true, warnings: [], wildcard: { present: false, types: [] } });
  expect(linesOf(body.records)).toEqual(expect.arrayContaining([
    '@ A 300 192.0.2.10 apex', '@ MX 3600 10 mx.elsewhere.net apex', '@ TXT 60 v=spf1 include:_spf.found.test -all apex', 'www CNAME 600 found.test common',
    'api AAAA 300 2001:db8::1 common', '_dmarc TXT 300 v=DMARC1; p=none common', '_spf TXT 300 v=spf1 ip4:192.0.2.0/24 -all discovered', 'odd-name A 300 192.0.2.77 names',
  ]));
  expect(body).toMatchObject({ domain: 'found.test', cached: false, dnssec: { signed: false, ds: [] }, soa: { mname: 'ns1.found.test' } });
  const zone = await world.zone('found.test');
  for (const { type, name, value, ttl, priority } of body.records) {
    const created = await world.ask('POST', `/dns/zones/${zone.id}/records`, { json: { type, name, value, ttl, priority } });
    expect({ type, name, status: created.status }).toEqual({ type, name, status: 200 });
  }
  expect((await scan({ domain: 'found.test', names: ['odd-name'] })).body).toMatchObject({ cached: true });
}, 30_000);

test("a wildcard is told as one and its answers are not everybody's", async () => {
  await stranger('wild.test', ['@ SOA 3600 ns1.wild.test hostmaster.wild.test 7 7200 3600 1209600 300', '@ NS 3600 ns1.wild.test', '* A 300 192.0.2.5', 'www A 300 192.0.2.6']);
  const { body } = await scan({ domain: 'wild.test' });
  expect(body.wildcard).toEqual({ present: true, types: ['A'] });
  expect(linesOf(body.records)).toEqual(['* A 300 192.0.2.5 common', 'www A 300 192.0.2.6 common']);
}, 30_000);

test('a deep scan takes the whole zone from a server that gives it, and looks no further', async () => {
  const odd = Array.from({ length: 50 }, (_, i) => `nobody-guesses-${i} A 300 192.0.2.${i}`);
  const zone = fullZone('given.test', ['@ NS 3600 ns1.given.test', '@ MX 300 10 mail.given.test', 'deep.below.here TXT 300 found', ...odd]);
  const giving = await startTestServer(new HandFeed([zone]), { listen: [{ host: '127.0.43.200', port: world.registry.port }], transfer: { keys: [], allow: ['127.0.0.0/8'] } });
  try {
    world.registry.delegate('given.test', ['ns1.given.test'], { glue: { 'ns1.given.test': ['127.0.43.200'] } });
    const { body } = await scan({ domain: 'given.test', deep: true });
    expect(linesOf(body.records)).toEqual(expect.arrayContaining(['nobody-guesses-49 A 300 192.0.2.49 transfer', 'deep.below.here TXT 300 found transfer', '@ MX 300 10 mail.given.test apex']));
    expect(body.records).toHaveLength(52);
    expect(body).toMatchObject({ complete: true, stats: { names: 52 } });
    expect(body.stats.queries).toBeLessThan(60);
  } finally {
    await giving.close();
  }
}, 30_000);

test('unregistered is 400; servers that know nothing of it or do not answer are 200 with a warning', async () => {
  expect(await scan({ domain: 'nobody-has-this.test' })).toMatchObject({ status: 400, body: { code: 'domain_not_found' } });
  const lame = await world.registry.addServer('ns1.lame.test');
  world.registry.delegate('lame.test', [lame.name], { glue: { [lame.name]: [lame.address] } });
  expect(await scan({ domain: 'lame.test' })).toMatchObject({ status: 200, body: { records: [], complete: false, warnings: [{ code: 'lame_delegation' }] } });
  world.registry.delegate('gone.test', ['ns1.gone.test'], { glue: { 'ns1.gone.test': ['127.0.43.250'] } });
  expect(await scan({ domain: 'gone.test' })).toMatchObject({ status: 200, body: { records: [], complete: false, warnings: [{ code: 'servers_unreachable' }] } });
}, 30_000);

test.each([[{ domain: 'localhost' }], [{ domain: '192.0.2.1' }], [{ domain: '' }], [{ domain: 'a.test', names: ['www.other.test.'] }], [{}]])('refuses %j', async (json) => {
  expect(await scan(json)).toMatchObject({ status: 400, body: { code: 'validation_error' } });
});
