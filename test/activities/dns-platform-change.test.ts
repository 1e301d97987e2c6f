import { platformOf } from '../../src/dns/rules/platform';
import { followPlatform } from '../../src/dns/service';
import { withApi } from '../support/api';
import { createTenant, type Tenant } from '../support/tenant';

const api = withApi({ DNS_SERVERS: '192.0.2.1;192.0.2.2', GATEWAY_PUBLIC_ADDRESSES: '203.0.113.1' });
let tenant: Tenant;
beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  await api.deps.db.pool.query('delete from dns_platform');
});

const ask = (method: string, path: string, json?: unknown) => api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/dns/zones${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) });
const create = async (domain: string, customNameservers: string[] = []): Promise<string> => (await ask('POST', '', { domain, mode: 'full_hosting', customNameservers })).body.zone.id;
const version = async (id: string): Promise<number> => (await ask('GET', `/${id}`)).body.zone.version;
const config = () => api.deps.config;
const servers = (...addresses: string[]) => addresses.map((address) => ({ addresses: [address], port: 53 }));
const follow = (change: Partial<ReturnType<typeof config>>) => followPlatform({ db: api.deps.db, dnsPlatform: platformOf({ ...config(), ...change }) });

test('zones have a new version exactly when an address that their answers hold is configured otherwise; twice is once', async () => {
  const [plain, vanity, proxied] = [await create('plain.test'), await create('vanity.test', ['ns1.vanity.test', 'ns2.vanity.test']), await create('proxied.test')];
  await ask('POST', `/${proxied}/records`, { type: 'A', name: 'www', value: '8.8.8.8', proxied: true });
  await api.deps.db.pool.query(`update dns_zone set status = 'active' where id = $1`, [proxied]);
  const versions = async () => [await version(plain), await version(vanity), await version(proxied)];
  const grown = async (change: Partial<ReturnType<typeof config>>): Promise<boolean[]> => {
    const before = await versions();
    await follow(change);
    const after = await versions();
    expect([await follow(change), await versions()]).toEqual([0, after]);
    return after.map((now, i) => now > (before[i] ?? 0));
  };
  expect(await grown({})).toEqual([false, false, false]);
  expect(await grown({ DNS_SERVERS: servers('192.0.2.1', '192.0.2.9') })).toEqual([false, true, false]);
  expect((await ask('GET', `/${vanity}/records?type=A`)).body.records.map(({ value }: { value: string }) => value).toSorted()).toEqual(['192.0.2.1', '192.0.2.9']);
  expect(await grown({ DNS_SERVERS: servers('192.0.2.1', '192.0.2.9', '192.0.2.10') })).toEqual([true, true, true]);
  expect(await grown({ DNS_SERVERS: servers('192.0.2.1', '192.0.2.9', '192.0.2.10'), GATEWAY_PUBLIC_ADDRESSES: ['203.0.113.2'] })).toEqual([false, false, true]);
});

test('a change that was interrupted is made at the next start', async () => {
  const plain = await create('again.test');
  await follow({});
  const before = await version(plain);
  const broken = followPlatform({ db: { ...api.deps.db, pool: { connect: () => Promise.reject(new Error('away')) } as never }, dnsPlatform: platformOf({ ...config(), DNS_SERVERS: servers('192.0.2.1', '192.0.2.2', '192.0.2.3') }) });
  await expect(broken).rejects.toThrow('away');
  await follow({ DNS_SERVERS: servers('192.0.2.1', '192.0.2.2', '192.0.2.3') });
  expect(await version(plain)).toBeGreaterThan(before);
});
