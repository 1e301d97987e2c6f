import { IterativeResolver } from '../../src/adapters/dns-resolver/iterative';
import { TableResolver } from '../../src/adapters/dns-resolver/table';
import type { DnsResolver } from '../../src/dns/ports';
import { silentLog } from '../support/dns-client';
import { FakeRegistry } from '../support/fake-registry';

type World = { resolver: DnsResolver; end: () => Promise<void> };

/**
 * The world of the suite: example.test at two servers, with an address, an alias in its zone and one into another zone, and
 * lost.test delegated to a server that does not answer for it.
 */
const adapters: Record<string, () => Promise<World>> = {
  table: () => {
    const resolver = new TableResolver();
    resolver.set('example.test', 'A', [{ name: 'example.test', type: 'A', ttl: 300, value: '192.0.2.1' }]);
    resolver.set('example.test', 'MX', [{ name: 'example.test', type: 'MX', ttl: 300, value: '10 mail.example.test' }]);
    resolver.set('www.example.test', 'CNAME', [{ name: 'www.example.test', type: 'CNAME', ttl: 300, value: 'example.test' }]);
    resolver.set('away.example.test', 'CNAME', [{ name: 'away.example.test', type: 'CNAME', ttl: 60, value: 'host.other.test' }]);
    resolver.set('host.other.test', 'A', [{ name: 'host.other.test', type: 'A', ttl: 300, value: '192.0.2.2' }]);
    resolver.set('a.b.example.test', 'TXT', [{ name: 'a.b.example.test', type: 'TXT', ttl: 300, value: 'deep' }]);
    resolver.set('lost.test', 'A', 'servfail');
    resolver.setDelegation('example.test', {
      outcome: 'answer', conclusive: true, ttl: 3600, parentZone: 'test', parentServers: ['a.nic.test', 'b.nic.test'], consistent: true,
      nameservers: [{ name: 'ns1.foreign.test', addresses: ['127.0.21.10'] }, { name: 'ns2.foreign.test', addresses: ['127.0.21.11'] }],
    });
    return Promise.resolve({ resolver, end: () => Promise.resolve() });
  },
  iterative: async () => {
    const registry = await FakeRegistry.start({ network: '127.0.21', port: 0, log: silentLog });
    const [first, second] = [await registry.addServer('ns1.foreign.test'), await registry.addServer('ns2.foreign.test')];
    for (const server of [first, second]) {
      server.host('foreign.test', [`ns1 A 300 ${first.address}`, `ns2 A 300 ${second.address}`]);
      server.host('example.test', ['@ A 300 192.0.2.1', '@ MX 300 10 mail.example.test', 'www CNAME 300 example.test', 'away CNAME 60 host.other.test', 'a.b TXT 300 deep']);
    }
    second.host('other.test', ['host A 300 192.0.2.2']);
    registry.delegate('foreign.test', [first.name, second.name], { glue: { [first.name]: [first.address], [second.name]: [second.address] } });
    registry.delegate('example.test', [first.name, second.name]);
    registry.delegate('other.test', [second.name]);
    registry.delegate('lost.test', [first.name]);
    const resolver = new IterativeResolver({ rootHints: registry.rootHints, port: registry.port, allowNonGlobal: true, own: [], ownServers: [], stubs: [], timeoutMs: 1000, nowMs: () => performance.now() });
    return { resolver, end: () => registry.close() };
  },
};

describe.each(Object.keys(adapters))('resolver %s', (name) => {
  let world: World;
  beforeAll(async () => {
    world = await (adapters[name] ?? fail)();
  });
  afterAll(() => world.end());

  test.each(['live', 'cached'] as const)('tells what a name has (%s)', async (freshness) => {
    expect(await world.resolver.resolve('example.test', 'A', { freshness })).toMatchObject({ outcome: 'answer', conclusive: true, canonicalName: 'example.test', ttl: 300, records: [{ name: 'example.test', type: 'A', ttl: 300, value: '192.0.2.1' }] });
    expect((await world.resolver.resolve('EXAMPLE.test.', 'MX', { freshness })).records).toEqual([{ name: 'example.test', type: 'MX', ttl: 300, value: '10 mail.example.test' }]);
  });

  test('follows aliases, also to another zone', async () => {
    expect(await world.resolver.resolve('www.example.test', 'A')).toMatchObject({ outcome: 'answer', canonicalName: 'example.test', records: [{ type: 'CNAME' }, { type: 'A', value: '192.0.2.1' }] });
    expect(await world.resolver.resolve('away.example.test', 'A')).toMatchObject({ outcome: 'answer', canonicalName: 'host.other.test', ttl: 60, records: [{ type: 'CNAME' }, { type: 'A', value: '192.0.2.2' }] });
  });

  test('tells an absent type from an absent name, both conclusive', async () => {
    expect(await world.resolver.resolve('example.test', 'TXT')).toMatchObject({ outcome: 'nodata', conclusive: true, records: [] });
    expect(await world.resolver.resolve('b.example.test', 'TXT')).toMatchObject({ outcome: 'nodata', conclusive: true });
    expect(await world.resolver.resolve('nope.example.test', 'TXT')).toMatchObject({ outcome: 'nxdomain', conclusive: true, records: [] });
  });

  test('is not sure when the servers responsible do not answer for the name', async () => {
    expect(await world.resolver.resolve('lost.test', 'A')).toMatchObject({ conclusive: false, records: [] });
  });

  test('tells the parent\'s view of a delegation', async () => {
    const { nameservers, parentServers, ...rest } = await world.resolver.delegation('example.test');
    expect(rest).toEqual({ outcome: 'answer', conclusive: true, consistent: true, ttl: 3600, parentZone: 'test' });
    expect(parentServers.toSorted()).toEqual(['a.nic.test', 'b.nic.test']);
    expect(nameservers.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([{ name: 'ns1.foreign.test', addresses: ['127.0.21.10'] }, { name: 'ns2.foreign.test', addresses: ['127.0.21.11'] }]);
    expect(await world.resolver.delegation('free.test')).toMatchObject({ outcome: 'nxdomain', conclusive: true, nameservers: [] });
  });

  test('asks one server', async () => {
    expect(await world.resolver.askServer({ address: '127.0.21.10' }, 'example.test', 'A')).toMatchObject({ outcome: 'answer', authoritative: true, records: [{ value: '192.0.2.1' }] });
    expect(await world.resolver.askServer({ address: '127.0.21.10' }, 'example.test', 'A', { tcp: true })).toMatchObject({ outcome: 'answer', authoritative: true });
  });
});

function fail(): never {
  throw new Error('no such adapter');
}
