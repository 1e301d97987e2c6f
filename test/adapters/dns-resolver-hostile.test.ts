import { IterativeResolver } from '../../src/adapters/dns-resolver/iterative';
import { routeTo, type RouteRules } from '../../src/adapters/dns-resolver/routes';
import type { WalkOptions } from '../../src/adapters/dns-resolver/walk';
import { withinBudget } from '../../src/dns/query-budget';
import { silentLog } from '../support/dns-client';
import { FakeRegistry } from '../support/fake-registry';
import { aa, address, HostileServer, referral, tc, type Behaviour } from '../support/hostile-dns';

const network = '127.0.22';
const evil = `${network}.66`;
const victim = `${network}.99`;

let registry: FakeRegistry;
const servers: HostileServer[] = [];
beforeAll(async () => {
  registry = await FakeRegistry.start({ network, port: 0, log: silentLog });
  registry.delegate('evil.test', ['ns.evil.test'], { glue: { 'ns.evil.test': [evil] } });
});
afterEach(() => servers.splice(0).forEach((server) => server.close()));
afterAll(() => registry.close());

const start = async (behave: Behaviour, at = evil): Promise<HostileServer> => {
  const server = await HostileServer.start({ address: at, port: registry.port }, behave);
  servers.push(server);
  return server;
};
/** As in production, but for the loopback addresses of this test's own world. */
const resolver = (more: Partial<WalkOptions> = {}): IterativeResolver => new IterativeResolver({
  rootHints: [], port: 53, allowNonGlobal: false, own: [], ownServers: [], timeoutMs: 800, nowMs: () => performance.now(),
  stubs: [{ suffix: 'test', servers: registry.tldServers, port: registry.port, addresses: [...registry.addresses, evil] }], ...more,
});

describe('stays home', () => {
  test('glue and name servers at private addresses are not asked', async () => {
    const target = await start(() => [{ flags: aa, answers: [] }], victim);
    await start(({ name }) => [referral('sub.evil.test', { 'ns1.sub.evil.test': victim, 'ns2.sub.evil.test': '10.0.0.1', 'ns3.sub.evil.test': '169.254.169.254' }), ...(name === 'never' ? [{}] : [])]);
    expect(await resolver().resolve('www.sub.evil.test', 'A')).toMatchObject({ outcome: 'timeout', conclusive: false });
    expect(await resolver().askServer({ address: victim }, 'www.evil.test', 'A')).toMatchObject({ outcome: 'timeout', authoritative: false });
    expect(await resolver().askServer({ address: '10.0.0.1' }, 'www.evil.test', 'A')).toMatchObject({ outcome: 'timeout', authoritative: false });
    expect(target.asked).toEqual([]);
  });

  test('our own servers are asked at their own port only, other addresses of ours never', () => {
    const rules: RouteRules = { port: 53, allowNonGlobal: false, own: ['8.8.4.4'], ownServers: [{ address: '127.0.0.1', port: 10_053 }], stubs: [{ suffix: 'test', servers: [], port: 5353, addresses: ['127.0.0.9'] }] };
    expect(routeTo('127.0.0.1', 'example.com', rules)).toEqual({ address: '127.0.0.1', port: 10_053 });
    expect(routeTo('127.0.0.2', 'example.com', rules)).toBeNull();
    expect(routeTo('8.8.4.4', 'example.com', rules)).toBeNull();
    expect(routeTo('8.8.8.8', 'example.com', rules)).toEqual({ address: '8.8.8.8', port: 53 });
    expect(routeTo('127.0.0.9', 'a.test', rules)).toEqual({ address: '127.0.0.9', port: 5353 });
    expect(routeTo('127.0.0.9', 'test.example.com', rules)).toBeNull();
  });

  test('a port that is not the address\'s own is not asked', async () => {
    const server = await start(() => [{ flags: aa, answers: [] }]);
    expect(await resolver().askServer({ address: evil, port: 22 }, 'evil.test', 'A')).toMatchObject({ outcome: 'timeout', authoritative: false });
    expect(server.asked).toEqual([]);
  });
});

describe('stays in its budget', () => {
  test('referrals that go deeper for ever end', async () => {
    const server = await start(({ name }) => {
      const zone = name.toLowerCase().split('.').slice(-(3 + server.asked.length)).join('.');
      return [referral(zone, { [`ns.${zone}`]: evil })];
    });
    const name = `${Array.from({ length: 40 }, (_, i) => `l${i}`).join('.')}.evil.test`;
    expect(await resolver().resolve(name, 'A')).toMatchObject({ outcome: 'servfail', conclusive: false });
    expect(server.asked.length).toBeLessThanOrEqual(12);
  });

  test('a referral to the zone itself or upwards is no referral', async () => {
    const server = await start(() => [referral('evil.test', { 'ns.evil.test': evil }), referral('test', { 'a.nic.test': evil })].slice(0, 1));
    expect(await resolver().resolve('www.evil.test', 'A')).toMatchObject({ outcome: 'servfail', conclusive: false });
    expect(server.asked.length).toBeLessThanOrEqual(2);
  });

  test('name servers that need each other, however many, end at once', async () => {
    const many = (zone: string): string[] => Array.from({ length: 13 }, (_, i) => `ns${i}.${zone}`);
    registry.delegate('one.test', many('two.test'));
    registry.delegate('two.test', many('one.test'));
    registry.delegate('self.test', many('self.test'));
    for (const name of ['www.one.test', 'www.self.test']) {
      const resolution = await resolver().resolve(name, 'A', { budgetMs: 60_000 });
      expect(resolution).toMatchObject({ conclusive: false });
      expect(resolution.queries).toBeLessThanOrEqual(60);
    }
  });

  test('CNAMEs in a circle and without end', async () => {
    const server = await start(({ name }) => [{ flags: aa, answers: [{ type: 'CNAME', name, ttl: 60, data: name.startsWith('loop') ? name : `x${name}` }] }]);
    expect(await resolver().resolve('a.evil.test', 'A')).toMatchObject({ outcome: 'servfail', conclusive: false });
    expect(await resolver().resolve('loop.evil.test', 'A')).toMatchObject({ conclusive: expect.any(Boolean) });
    expect(server.asked.length).toBeLessThanOrEqual(20);
  });

  test('of 1,000 name servers a few are asked', async () => {
    const hosts = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`n${i}.sub.evil.test`, i % 2 ? null : `10.1.${i >> 8}.${i & 255}`]));
    const server = await start(({ tcp, name }) => (name.toLowerCase().startsWith('n') ? [] : [tcp ? referral('sub.evil.test', hosts) : { flags: tc }]));
    const resolution = await resolver().resolve('www.sub.evil.test', 'A', { budgetMs: 3000 });
    expect(resolution).toMatchObject({ conclusive: false });
    expect(resolution.queries).toBeLessThanOrEqual(60);
    expect(server.asked.length).toBeLessThanOrEqual(60);
  });

  test('all questions of one check together send no more than its budget', async () => {
    const server = await start(({ name }) => [{ flags: aa, answers: [address(name, '192.0.2.66')] }]);
    const budget = { queriesLeft: 20 };
    const asking = withinBudget(resolver(), budget);
    const found = await Promise.all([
      ...Array.from({ length: 20 }, (_, i) => asking.resolve(`n${i}.evil.test`, 'A')), asking.askServer({ address: evil }, 'evil.test', 'SOA'), asking.delegation('x.evil.test'),
    ]);
    expect(budget.queriesLeft).toBe(0);
    expect(server.asked.length).toBeLessThanOrEqual(20);
    expect(found.filter((one) => 'conclusive' in one && !one.conclusive).length).toBeGreaterThan(0);
    const asked = server.asked.length;
    expect(await asking.resolve('late.evil.test', 'A')).toMatchObject({ outcome: 'timeout', conclusive: false, queries: 0 });
    expect(server.asked).toHaveLength(asked);
  });

  test('a check of 25 aliases to one name of another zone stays in its budget: what it has heard it does not ask again', async () => {
    const server = await start(({ name }) => [{ flags: aa, answers: [/^n\d/i.test(name) ? { type: 'CNAME', name, ttl: 60, data: 'target.gate.test' } : address(name, name.toLowerCase() === 'ns.evil.test' ? evil : '192.0.2.66')] }]);
    registry.delegate('gate.test', ['ns.evil.test']);
    const budget = { queriesLeft: 60 };
    const asking = withinBudget(resolver(), budget);
    await asking.resolve('_proof.evil.test', 'A');
    const first = await asking.resolve('n0.evil.test', 'A');
    const rest = await Promise.all(Array.from({ length: 24 }, (_, i) => asking.resolve(`n${i + 1}.evil.test`, 'A')));
    expect([first, ...rest].map(({ conclusive, canonicalName }) => ({ conclusive, canonicalName }))).toEqual(Array(25).fill({ conclusive: true, canonicalName: 'target.gate.test' }));
    expect(server.asked.length).toBeLessThan(40);
  });

  test('a silent server costs its time and no more packets than two', async () => {
    const server = await start(() => []);
    const resolution = await resolver().resolve('www.evil.test', 'A');
    expect(resolution).toMatchObject({ outcome: 'timeout', conclusive: false });
    expect(server.asked).toHaveLength(2);
  });

  test('nothing is sent after the budget', async () => {
    let now = 0;
    const server = await start(() => [{ flags: aa, answers: [] }]);
    const late = resolver({ nowMs: () => (now += 5000) });
    expect(await late.resolve('www.evil.test', 'A', { budgetMs: 1 })).toMatchObject({ outcome: 'timeout', conclusive: false, queries: 0 });
    expect(server.asked).toEqual([]);
  });
});

describe('believes nobody outside their zone', () => {
  test('records of other names, classes and zones are left out', async () => {
    await start(({ name }) => [{
      flags: aa, answers: [address(name, '192.0.2.66'), address('www.bank.test', '192.0.2.66')],
      authorities: [{ type: 'NS', name: 'bank.test', ttl: 9999, data: 'ns.evil.test' }], additionals: [address('ns.bank.test', evil)],
    }]);
    const one = resolver();
    expect((await one.resolve('www.evil.test', 'A')).records).toEqual([{ name: 'www.evil.test', type: 'A', ttl: 300, value: '192.0.2.66' }]);
    expect(await one.resolve('www.bank.test', 'A', { freshness: 'cached' })).toMatchObject({ outcome: 'nxdomain', conclusive: true });
  });

  test('an alias to another zone is asked of that zone', async () => {
    const bank = await registry.addServer('ns.bank.test');
    bank.host('bank.test', ['www A 300 192.0.2.10']);
    registry.delegate('bank.test', ['ns.bank.test'], { glue: { 'ns.bank.test': [bank.address] } });
    await start(({ name }) => [{ flags: aa, answers: [{ type: 'CNAME', name, ttl: 60, data: 'www.bank.test' }, address('www.bank.test', '192.0.2.66')] }]);
    expect((await resolver().resolve('x.evil.test', 'A')).records.map(({ value }) => value)).toEqual(['www.bank.test', '192.0.2.10']);
  });

  test('an answer with another id, question or spelling is not taken', async () => {
    const forged = Buffer.alloc(12);
    const server = await start(({ id, name, tcp }) => (tcp ? [{ flags: aa, answers: [address(name, '192.0.2.1')] }] : [
      { id: (id + 1) & 0xffff, flags: aa, answers: [address(name, '192.0.2.66')] }, { questions: [{ type: 'A', name: 'other.test' }], flags: aa, answers: [address(name, '192.0.2.66')] }, forged,
      { questions: [{ type: 'A', name: name.toLowerCase() }], flags: aa, answers: [address(name, '192.0.2.66')] },
    ]));
    expect((await resolver().resolve('averylongnamewithmanylettersinit.evil.test', 'A')).records.map(({ value }) => value)).toEqual(['192.0.2.1']);
    expect(server.asked.map(({ tcp }) => tcp)).toEqual([false, true]);
  });

  test('an answer that is not authoritative is inconclusive', async () => {
    await start(({ name }) => [{ answers: [address(name, '192.0.2.66')] }]);
    expect(await resolver().resolve('www.evil.test', 'A')).toMatchObject({ outcome: 'servfail', conclusive: false, records: [] });
    expect(await resolver().askServer({ address: evil }, 'www.evil.test', 'A')).toMatchObject({ authoritative: false });
  });
});

test.each([['SERVFAIL', 2, 'servfail'], ['REFUSED', 5, 'refused'], ['NOTIMP', 4, 'servfail']] as const)('%s is inconclusive', async (_, rcode, outcome) => {
  await start(() => [{ flags: rcode, additionals: [{ type: 'OPT', name: '.', udpPayloadSize: 512, flags: 0, options: [], extendedRcode: 0, ednsVersion: 0 } as never] }]);
  expect(await resolver().resolve('www.evil.test', 'A')).toMatchObject({ outcome, conclusive: false });
});

test('a server that breaks off, lies about counts or sends octets is no answer', async () => {
  await start(({ octets }) => {
    const lying = Buffer.from(octets);
    lying[2] = 0x84;
    lying.writeUInt16BE(500, 6);
    return [lying];
  });
  expect(await resolver().resolve('www.evil.test', 'A')).toMatchObject({ conclusive: false });
});

test('an answer that is cut is asked for again over TCP', async () => {
  const server = await start(({ name, tcp }) => [tcp ? { flags: aa, answers: Array.from({ length: 200 }, (_, i) => address(name, `192.0.2.${i}`)) } : { flags: aa | tc, answers: [address(name, '192.0.2.1')] }]);
  expect((await resolver().resolve('www.evil.test', 'A')).records).toHaveLength(200);
  expect(server.asked.map(({ tcp }) => tcp)).toEqual([false, true]);
});

test('a server that does not know EDNS is asked without it', async () => {
  const server = await start(({ name, octets }) => [octets.readUInt16BE(10) === 1 ? { flags: 1 } : { flags: aa, answers: [address(name, '192.0.2.1')] }]);
  expect((await resolver().resolve('www.evil.test', 'A')).records).toHaveLength(1);
  expect(server.asked).toHaveLength(2);
});

test('ids, ports and spellings differ from query to query', async () => {
  const server = await start(({ name }) => [{ flags: aa, answers: [address(name, '192.0.2.1')] }]);
  const one = resolver();
  for (let i = 0; i < 8; i++) await one.resolve('averylongnamewithmanylettersinit.evil.test', 'A');
  expect(new Set(server.asked.map(({ id }) => id)).size).toBeGreaterThan(4);
  expect(new Set(server.asked.map(({ name }) => name)).size).toBe(8);
});

describe('delegations', () => {
  test('parents that disagree are told', async () => {
    registry.delegate('split.test', ['ns.evil.test', 'ns2.evil.test']);
    registry.disagree('split.test', ['ns.evil.test']);
    const split = await resolver().delegation('split.test');
    expect(split).toMatchObject({ outcome: 'answer', conclusive: true, consistent: false });
    registry.disagree('split.test', null);
    expect(await resolver().delegation('split.test')).toMatchObject({ consistent: true });
  });

  test('a change at the parent is seen at once', async () => {
    const one = resolver();
    registry.delegate('fresh.test', ['a.foreign.test']);
    await one.resolve('www.fresh.test', 'A');
    expect((await one.delegation('fresh.test')).nameservers.map(({ name }) => name)).toEqual(['a.foreign.test']);
    registry.delegate('fresh.test', ['b.foreign.test']);
    expect((await one.delegation('fresh.test')).nameservers.map(({ name }) => name)).toEqual(['b.foreign.test']);
    registry.remove('fresh.test');
    expect(await one.delegation('fresh.test')).toMatchObject({ outcome: 'nxdomain', conclusive: true });
  });

  test('the child\'s own word is no delegation', async () => {
    registry.delegate('below.test', ['ns.evil.test']);
    await start(({ name, type }) => [{ flags: aa, answers: type === 'NS' ? [{ type: 'NS', name, ttl: 300, data: 'ns.liar.test' }] : [] }]);
    expect((await resolver().delegation('below.test')).nameservers.map(({ name }) => name)).toEqual(['ns.evil.test']);
    expect(await resolver().delegation('sub.evil.test')).toMatchObject({ conclusive: false, nameservers: [] });
  });

  test('a silent parent is inconclusive', async () => {
    registry.delegate('quiet.test', ['ns.quiet.test'], { glue: { 'ns.quiet.test': [victim] } });
    expect(await resolver().delegation('sub.quiet.test')).toMatchObject({ conclusive: false, nameservers: [] });
  });

  test('DS is the parent\'s', async () => {
    registry.delegate('signed.test', ['ns.evil.test'], { ds: ['12345 13 2 00ff'] });
    expect((await resolver().resolve('signed.test', 'DS')).records).toMatchObject([{ value: '12345 13 2 00ff' }]);
    registry.delegate('signed.test', ['ns.evil.test']);
    expect(await resolver().resolve('signed.test', 'DS')).toMatchObject({ outcome: 'nodata', conclusive: true });
  });
});

test('names that cannot be are inconclusive and cost nothing', async () => {
  for (const name of ['a..test', `${'x'.repeat(64)}.test`, '日本.test']) {
    expect(await resolver().resolve(name, 'A')).toMatchObject({ outcome: 'servfail', conclusive: false, queries: 0 });
    expect(await resolver().delegation(name)).toMatchObject({ outcome: 'servfail', conclusive: false });
  }
});
