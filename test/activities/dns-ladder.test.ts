import { TableResolver } from '../../src/adapters/dns-resolver/table';
import { withApi } from '../support/api';
import { checkOnce, delegatedTo, pass, silentParent } from '../support/dns-time';
import { createTenant, type Tenant } from '../support/tenant';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const api = withApi();
let tenant: Tenant;
let dns: TableResolver;

beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  dns = new TableResolver();
});

const ask = (method: string, path: string, json?: unknown) => api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/dns/zones${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) });
const create = async (domain: string): Promise<{ id: string; nameservers: string[] }> => (await ask('POST', '', { domain, mode: 'full_hosting' })).body.zone;
const row = async (zoneId: string) => (await api.deps.db.pool.query('select status, status_reason as reason, deleted_at is not null as deleted, version, served from dns_zone where id = $1', [zoneId])).rows[0];
const check = (zoneId: string) => checkOnce(api, dns, zoneId);
/** Checks until the condition holds, each at its time; returns the waits in between. */
async function live(zoneId: string, until: (turn: { status: string | null; passedMs: number }) => boolean): Promise<{ waits: number[]; passedMs: number }> {
  const waits: number[] = [];
  for (let passedMs = 0; ;) {
    const { delayMs, status } = await check(zoneId);
    if (delayMs === null || until({ status, passedMs })) return { waits, passedMs };
    waits.push(delayMs);
    passedMs += delayMs;
    await pass(api, zoneId, delayMs);
  }
}
const inMinutes = (waits: readonly number[]) => waits.map((ms) => Math.round(ms / minute));

test('pending: 1, 2, 5, 10, 20, 30 minutes, hourly to a day, then six-hourly, and the end as unverified after 28 days', async () => {
  const zone = await create('never.test');
  const { waits, passedMs } = await live(zone.id, () => false);
  expect(inMinutes(waits).slice(0, 7)).toEqual([1, 2, 5, 10, 20, 30, 60]);
  const [firstSix] = [inMinutes(waits).indexOf(360)];
  expect(new Set(inMinutes(waits).slice(6, firstSix))).toEqual(new Set([60]));
  expect(waits.slice(0, firstSix).reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(day - minute);
  expect(new Set(inMinutes(waits).slice(firstSix))).toEqual(new Set([360]));
  expect(passedMs).toBeGreaterThanOrEqual(28 * day - minute);
  expect(passedMs).toBeLessThan(28 * day + 6 * hour);
  expect(await row(zone.id)).toMatchObject({ status: 'pending', reason: 'unverified', deleted: true, served: false });
}, 60_000);

test('restored after that it has its time anew, and the ladder begins again', async () => {
  const zone = await create('second.test');
  await pass(api, zone.id, 28 * day);
  expect(await check(zone.id)).toEqual({ delayMs: null, status: null });
  const { body } = await ask('POST', `/${zone.id}/restore`);
  expect(Date.parse(body.zone.expiresAt) - Date.now()).toBeGreaterThan(27 * day);
  await pass(api, zone.id, minute);
  const { delayMs, status } = await check(zone.id);
  expect({ status, wait: Math.round((delayMs ?? 0) / minute) }).toEqual({ status: 'pending', wait: 1 });
});

test('live: every 12 hours ± 10 %; failing: a quarter three times, then hourly; moved after three misses over an hour; ended 30 days later', async () => {
  const zone = await create('alive.test');
  dns.setDelegation('alive.test', delegatedTo(...zone.nameservers));
  const steady = await live(zone.id, ({ passedMs }) => passedMs > 10 * day);
  expect(steady.waits.every((ms) => ms >= 10.8 * hour - 1_000 && ms <= 13.2 * hour)).toBe(true);
  await pass(api, zone.id, 12 * hour);
  dns.setDelegation('alive.test', delegatedTo('ns1.other.test', 'ns2.other.test'));
  const losing = await live(zone.id, ({ status }) => status === 'moved');
  expect(inMinutes(losing.waits)).toEqual([15, 15, 15, 60]);
  expect(await row(zone.id)).toMatchObject({ status: 'moved', deleted: false });
  const ending = await live(zone.id, () => false);
  expect(ending.passedMs).toBeGreaterThanOrEqual(30 * day - minute);
  expect(ending.passedMs).toBeLessThan(30 * day + 2 * hour);
  expect(await row(zone.id)).toMatchObject({ status: 'moved', reason: 'delegated_elsewhere', deleted: true });
}, 120_000);

test('inconclusive: 5 minutes three times, then as without it, and neither a live nor a pending zone changes for any number of checks', async () => {
  const [holding, waiting] = [await create('silent.test'), await create('mute.test')];
  dns.setDelegation('silent.test', delegatedTo(...holding.nameservers));
  await check(holding.id);
  await check(waiting.id);
  const before = [await row(holding.id), await row(waiting.id)];
  for (const domain of ['silent.test', 'mute.test']) dns.setDelegation(domain, silentParent);
  for (const { id } of [holding, waiting]) {
    await pass(api, id, minute);
    const { waits } = await live(id, ({ passedMs }) => passedMs > 35 * day);
    expect(inMinutes(waits).slice(0, 3)).toEqual([5, 5, 5]);
    expect(Math.max(...inMinutes(waits))).toBeGreaterThanOrEqual(6 * 60);
  }
  expect([await row(holding.id), await row(waiting.id)]).toEqual(before);
}, 120_000);

test('POST verify restarts the ladder', async () => {
  const zone = await create('again.test');
  await live(zone.id, ({ passedMs }) => passedMs > 12 * hour);
  await pass(api, zone.id, hour);
  const { body } = await ask('POST', `/${zone.id}/verify`);
  expect(Math.round((Date.parse(body.verification.nextCheckAt) - Date.parse(body.verification.checkedAt)) / minute)).toBe(body.verification.result === 'inconclusive' ? 5 : 1);
  await pass(api, zone.id, minute);
  const { waits } = await live(zone.id, ({ passedMs }) => passedMs > 20 * minute);
  expect(inMinutes(waits).slice(0, 3)).toEqual([2, 5, 10]);
}, 30_000);

test('a zone with two bad checks of its servers is degraded, and well again with one good', async () => {
  const zone = await create('lame.test');
  dns.setDelegation('lame.test', { ...delegatedTo(...zone.nameservers), nameservers: zone.nameservers.map((name, i) => ({ name, addresses: [`127.0.0.${i + 1}`] })) });
  dns.set('lame.test', 'SOA', 'refused');
  const turn = async () => {
    await pass(api, zone.id, minute);
    return (await check(zone.id)).status;
  };
  expect([await turn(), await turn()]).toEqual(['active', 'degraded']);
  expect(await row(zone.id)).toMatchObject({ reason: 'server_lame' });
  dns.set('lame.test', 'SOA', [{ name: 'lame.test', type: 'SOA', ttl: 300, value: 'a b 7 1 1 1 1' }]);
  expect(await turn()).toBe('active');
});
