import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { registryCommand } from '../../src/dev/registry/command';
import { changeDelegations, readDelegations } from '../../src/dev/registry/delegations';
import { platformDelegations, Registry } from '../../src/dev/registry/registry';
import { ask, lines, silentLog } from '../support/dns-client';

const network = '127.0.61';
let registry: Registry;
let dir: string;
let file: string;
const context = () => ({ file, suffixes: ['ns.holdfast.test', 'edge.holdfast.test'], running: null });
const run = (...args: string[]) => registryCommand(args, context());

beforeAll(async () => {
  registry = await Registry.start({ network, port: 0, log: silentLog });
});
afterAll(() => registry.close());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdfast-registry-'));
  file = join(dir, 'registry.json');
});
afterEach(() => rm(dir, { recursive: true }));

test('delegate replaces what a domain had, remove ends it, list shows all, over any number of readers', async () => {
  expect(await run('list')).toEqual(['Nothing is delegated.']);
  await run('delegate', 'Shop.Test.', 'ns1.old.test');
  await run('delegate', 'shop.test', 'NS1.shop.test=127.0.0.1', 'ns2.else.test.', '--glue', 'ns1.shop.test=::1', '--ds', '1 13 2 00ff');
  await run('delegate', 'bank.test', 'ns1.else.test');
  expect(await run('list')).toEqual(['bank.test  ns1.else.test', 'shop.test  ns1.shop.test ns2.else.test', '  glue ns1.shop.test 127.0.0.1 ::1', '  ds 1 13 2 00ff']);
  expect(await run('remove', 'bank.test')).toEqual(['bank.test is not registered any more.', 'It takes effect when `npm start` runs.']);
  expect((await readDelegations(file))?.serial).toBe(5);
});

test.each([
  [[], 'Say what to do'], [['sell'], 'no command "sell"'], [['delegate'], 'Name the domain'], [['delegate', 'shop.test'], 'at least one name server'], [['delegate', 'shop.com', 'ns1.else.test'], 'not under .test'],
  [['delegate', 'a b.test', 'ns1.else.test'], 'bare domain name'], [['delegate', 'test', 'ns1.else.test'], 'two labels'], [['delegate', 'shop.test', 'ns1'], 'full name'], [['delegate', 'shop.test', '192.0.2.1'], 'no name server'],
  [['delegate', 'shop.test', 'ns1.shop.test=here'], 'no IP address'], [['delegate', 'shop.test', 'ns1.shop.test', '--glue', 'ns2.shop.test=127.0.0.1'], 'none of the name servers'],
  [['delegate', 'shop.test', 'ns1.else.test', '--ds', 'x'], 'no DS record'], [['delegate', 'x.ns.holdfast.test', 'ns1.else.test'], 'belongs to the platform'], [['delegate', 'holdfast.test', 'ns1.else.test'], 'belongs to the platform'],
  [['remove', 'shop.test'], 'not delegated'], [['remove'], 'one domain'], [['list', '--nonsense'], 'nonsense'],
])('%j is refused in words and changes nothing', async (args, words) => {
  await expect(run(...args)).rejects.toThrow(words);
  expect(await readDelegations(file)).toBeNull();
});

test('a delegation that would hide another is refused', async () => {
  await run('delegate', 'shop.test', 'ns1.else.test');
  await expect(run('delegate', 'a.shop.test', 'ns1.else.test')).rejects.toThrow('would hide');
});

test('changes at the same moment all take effect', async () => {
  const names = Array.from({ length: 20 }, (_, i) => `d${i}.test`);
  await Promise.all(names.map((name) => run('delegate', name, 'ns1.else.test')));
  expect((await readDelegations(file))?.delegations.map(({ domain }) => domain).toSorted()).toEqual(names.toSorted());
});

test('a damaged file is told, and left as it is', async () => {
  await writeFile(file, '{"serial":');
  await expect(run('list')).rejects.toThrow('is damaged');
  await expect(changeDelegations(file, () => [])).rejects.toThrow('is damaged');
  expect(await readFile(file, 'utf8')).toBe('{"serial":');
});

test('both servers of test answer a delegation with its glue, and the platform suffixes lead to its servers', async () => {
  const servers = [{ addresses: ['127.0.0.1', '::1'], port: 53 }, { addresses: ['127.0.0.2'], port: 53 }];
  const ours = platformDelegations({ nameserverSuffix: 'ns.holdfast.test', edgeSuffix: 'edge.holdfast.test', servers });
  registry.publish(7, [...ours, { domain: 'shop.test', names: ['ns1.shop.test'], glue: { 'ns1.shop.test': ['127.0.0.9'] }, ds: [] }]);
  for (const { address } of registry.tldServers) {
    const at = { host: address, port: registry.port };
    const shop = await ask(at, 'www.shop.test', 'A');
    expect({ authority: lines(shop.authorities), additional: lines(shop.additionals) }).toEqual({ authority: ['shop.test NS 3600 ns1.shop.test'], additional: ['ns1.shop.test A 3600 127.0.0.9'] });
    for (const suffix of ['ns.holdfast.test', 'edge.holdfast.test']) {
      const answer = await ask(at, `any.${suffix}`, 'A');
      expect(lines(answer.authorities).toSorted()).toEqual([`${suffix} NS 3600 s1.ns.holdfast.test`, `${suffix} NS 3600 s2.ns.holdfast.test`]);
      expect(lines(answer.additionals).toSorted()).toEqual(['s1.ns.holdfast.test A 3600 127.0.0.1', 's1.ns.holdfast.test AAAA 3600 ::1', 's2.ns.holdfast.test A 3600 127.0.0.2']);
    }
    expect((await ask(at, 'nobody.test', 'A')).rcode).toBe('NXDOMAIN');
    expect(lines((await ask(at, 'test', 'SOA')).answers)).toEqual(['test SOA 3600 a.nic.test 7']);
  }
});

test('a suffix outside test is no matter of this registry', () => {
  expect(platformDelegations({ nameserverSuffix: 'ns.example.com', edgeSuffix: 'edge.example.com', servers: [] })).toEqual([]);
});
