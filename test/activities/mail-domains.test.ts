import { MockActivityEnvironment } from '@temporalio/testing';
import { createMailDomainActivities } from '../../activities/mail/domains';
import { TableResolver, type TableEntry } from '../../src/adapters/dns-resolver/table';
import type { DnsResolver, ServerAnswer } from '../../src/dns/ports';
import { systemCause } from '../../src/core/caller';
import type { Id } from '../../src/core/ids';
import { openVerification } from '../../src/mail/domains';
import { domainReconcileRule } from '../../src/mail/reconcile';
import { loadDomain } from '../../src/mail/store/domains';
import { askNow } from '../../src/mail/verification';
import { inTransaction } from '../../src/db/transaction';
import { withApi } from '../support/api';
import type { ShownDomain } from '../support/mail-world';
import { createTenant, type Tenant } from '../support/tenant';

const api = withApi();
const hour = 3_600_000;
let tenant: Tenant;
let table: TableResolver;
let now: Date;
/** What other servers of a zone answer, by address. */
let servers: Map<string, ServerAnswer>;

beforeEach(async () => {
  tenant = await createTenant(api.deps.db, api.deps.config.AUTH_SECRET);
  table = new TableResolver();
  now = new Date(Date.now() + 1_000); // not before what is made by the real clock
  servers = new Map();
});

const ask = async (method: string, path: string, json?: unknown) => (await api.ask(
  method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}/mail${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) })).body;
const query = async (sql: string, ...values: unknown[]) => (await api.deps.db.pool.query(sql, values)).rows;
const shown = async (id: string): Promise<ShownDomain> => (await ask('GET', `/domains/${id}`)).domain;

async function add(name: string): Promise<ShownDomain> {
  const { mailServiceId } = await ask('POST', '/services', { displayName: 'Mail', plan: 'launch' });
  return (await ask('POST', `/services/${mailServiceId}/domains`, { domain: name })).domain;
}

/** DNS as the table has it; every answer of a zone comes from its first server. */
const dnsResolver: DnsResolver = {
  resolve: async (name, type) => ({ ...await table.resolve(name, type), zone: name.split('.').slice(-2).join('.'), server: '192.0.2.1' }),
  delegation: (name) => table.delegation(name),
  askServer: async ({ address }) => servers.get(address) ?? { outcome: 'timeout', records: [], durationMs: 1, authoritative: false },
};
const activities = () => createMailDomainActivities({ ...api.deps, clock: { now: () => now }, dnsResolver });
const check = (domainId: string): Promise<{ status: string | null; delayMs: number | null }> => new MockActivityEnvironment().run(activities().ensureDomainChecked, { domainId });
const recheck = () => new MockActivityEnvironment().run(activities().recheckDueDomains);
/** Time goes on until the domain's next check, and that is made by the schedule. */
async function nextRecheck(id: string): Promise<ShownDomain> {
  const { nextCheckAt } = await shown(id);
  now = new Date(Math.max(now.getTime(), Date.parse(nextCheckAt ?? '')));
  await recheck();
  return shown(id);
}
const put = ({ records }: ShownDomain, entry?: TableEntry) => {
  for (const { name, type, value } of records) table.set(name, type === 'CNAME' ? 'CNAME' : 'TXT', entry ?? [{ name, type, ttl: 300, value }]);
};
const states = async (id: string) => (await query('select state from operation where resource_id = $1', id)).map(({ state }) => state);

async function verifiedDomain(name: string): Promise<ShownDomain> {
  const domain = await add(name);
  put(domain);
  expect(await check(domain.id)).toEqual({ status: 'verified', delayMs: null });
  return shown(domain.id);
}

test('ensureDomainChecked twice is once: a result younger than ten seconds is used again', async () => {
  const domain = await add('young.test');
  const first = await check(domain.id);
  expect(first).toMatchObject({ status: 'pending', delayMs: expect.any(Number) });
  now = new Date(now.getTime() + 9_000);
  expect(await check(domain.id)).toMatchObject({ status: 'pending' });
  expect((await shown(domain.id)).checkCount).toBe(1);
  now = new Date(now.getTime() + 1_000);
  await check(domain.id);
  expect((await shown(domain.id)).checkCount).toBe(2);
});

test('a pending domain is checked until its window is over, then it has failed and so has its operation', async () => {
  const domain = await add('never.test');
  const end = Date.parse(domain.verificationDeadline);
  let checks = 0;
  for (let outcome = await check(domain.id); outcome.delayMs !== null; outcome = await check(domain.id)) {
    checks += 1;
    expect(outcome.status).toBe('pending');
    expect(now.getTime()).toBeLessThan(end);
    now = new Date(now.getTime() + outcome.delayMs);
  }
  expect(checks).toBeGreaterThan(70);
  expect(checks).toBeLessThan(92);
  expect(await shown(domain.id)).toMatchObject({ status: 'failed', failureReason: 'window_expired', canSend: false, nextCheckAt: null });
  expect(await query('select state, error_code as code from operation where resource_id = $1', domain.id)).toEqual([{ state: 'failed', code: 'verification_failed' }]);
  expect(await query('select type from mail_event where mail_service_id = $1', domain.mailServiceId)).toEqual([{ type: 'domain.failed' }]);
  expect(await check(domain.id)).toEqual({ status: 'failed', delayMs: null });
});

test('a storm of SERVFAIL, refusals and timeouts leaves a verified domain as it is, for days', async () => {
  const before = await verifiedDomain('storm.test');
  for (const fault of ['servfail', 'refused', 'timeout'] as const) {
    put(before, fault);
    for (let i = 0; i < 12; i++) {
      const at = now;
      const after = await nextRecheck(before.id);
      expect({ ...after, checkCount: 0, lastCheckedAt: '', nextCheckAt: '', updatedAt: '' }).toEqual({ ...before, checkCount: 0, lastCheckedAt: '', nextCheckAt: '', updatedAt: '' });
      if (i > 0) expect(now.getTime() - at.getTime()).toBe(15 * 60_000);
    }
  }
  expect(await query('select misses from mail_domain where id = $1', before.id)).toEqual([{ misses: 0 }]);
});

test('records that are gone: three definitive misses degrade, 72 hours later the domain has failed; each is told once', async () => {
  const domain = await verifiedDomain('gone.test');
  table = new TableResolver();
  const seen: [string, boolean][] = [];
  for (let i = 0; i < 3; i++) seen.push(await nextRecheck(domain.id).then(({ status, canSend }) => [status, canSend]));
  expect(seen).toEqual([['verified', true], ['verified', true], ['degraded', true]]);
  const degradedAt = Date.parse((await shown(domain.id)).degradedAt ?? '');
  let last = await shown(domain.id);
  for (; last.status === 'degraded'; last = await nextRecheck(domain.id)) expect(now.getTime() - degradedAt).toBeLessThan(72 * hour);
  expect(last).toMatchObject({ status: 'failed', failureReason: 'records_lost', canSend: false });
  expect(now.getTime() - degradedAt).toBeGreaterThanOrEqual(72 * hour);
  expect(await query('select type from mail_event where mail_service_id = $1 order by received_at, id', domain.mailServiceId)).toEqual([{ type: 'domain.verified' }, { type: 'domain.degraded' }, { type: 'domain.failed' }]);
});

test('a degraded domain whose records are back is verified again', async () => {
  const domain = await verifiedDomain('back.test');
  table = new TableResolver();
  for (let i = 0; i < 3; i++) await nextRecheck(domain.id);
  put(domain);
  expect(await nextRecheck(domain.id)).toMatchObject({ status: 'verified', degradedAt: null });
  expect(await query('select misses from mail_domain where id = $1', domain.id)).toEqual([{ misses: 0 }]);
});

test('a server that lost the records is outvoted by one that has them; one that does not answer has no vote', async () => {
  const domain = await verifiedDomain('torn.test');
  table = new TableResolver();
  const nameservers = [{ name: 'ns1.torn.test', addresses: ['192.0.2.1'] }, { name: 'ns2.torn.test', addresses: ['192.0.2.2'] }];
  table.setDelegation('torn.test', { outcome: 'answer', conclusive: true, ttl: 300, parentZone: 'test', parentServers: [], consistent: true, nameservers });
  const [ownership, dkim] = domain.records;
  const having = (records: typeof domain.records): ServerAnswer => ({ outcome: 'answer', authoritative: true, durationMs: 1, records: records.map(({ name, type, value }) => ({ name, type, value, ttl: 300 })) });
  servers.set('192.0.2.2', having([ownership, dkim].filter((record) => record !== undefined)));
  for (let i = 0; i < 5; i++) expect(await nextRecheck(domain.id)).toMatchObject({ status: 'verified', records: domain.records.slice(0, 2).map(({ status, found }) => ({ status, found })).concat([{ status: 'missing', found: [] }, { status: 'missing', found: [] }]) });
  expect(await query('select misses from mail_domain where id = $1', domain.id)).toEqual([{ misses: 0 }]);
  servers.set('192.0.2.2', { ...having([]), authoritative: false });
  await nextRecheck(domain.id);
  servers.delete('192.0.2.2');
  await nextRecheck(domain.id);
  expect(await query('select misses from mail_domain where id = $1', domain.id)).toEqual([{ misses: 2 }]);
});

test('a customer who asks again and again does not put off the check that counts', async () => {
  const domain = await verifiedDomain('often.test');
  const due = new Date(now.getTime() + hour);
  await query('update mail_domain set next_check_at = $2 where id = $1', domain.id, due);
  table = new TableResolver();
  for (let i = 0; i < 3; i++) {
    now = new Date(now.getTime() + 11_000);
    const row = await loadDomain(api.deps.db.prisma, domain.id);
    if (row) await askNow({ ...api.deps, clock: { now: () => now }, dnsResolver }, row);
    expect(await shown(domain.id)).toMatchObject({ status: 'verified', nextCheckAt: due.toISOString(), checkCount: 2 + i });
  }
  expect(await query('select misses from mail_domain where id = $1', domain.id)).toEqual([{ misses: 0 }]);
});

test('recheckDueDomains takes what is due and nothing else, and a second run finds nothing', async () => {
  const [due, other] = [await verifiedDomain('due.test'), await verifiedDomain('other.test')];
  await query(`update mail_domain set next_check_at = $2 where id = $1`, due.id, now);
  expect(await recheck()).toEqual({ checked: 1 });
  expect([await shown(due.id), await shown(other.id)].map(({ checkCount }) => checkCount)).toEqual([2, 1]);
  expect(await recheck()).toEqual({ checked: 0 });
});

test('two checks at once: one is written, the other changes nothing', async () => {
  const domain = await add('race.test');
  put(domain);
  await Promise.all([check(domain.id), check(domain.id), check(domain.id)]);
  expect(await shown(domain.id)).toMatchObject({ status: 'verified', checkCount: 1 });
  expect(await query('select type from mail_event where mail_service_id = $1', domain.mailServiceId)).toEqual([{ type: 'domain.verified' }]);
});

test('an operation that came too late for the check that settled it is settled by the next one', async () => {
  const domain = await verifiedDomain('late.test');
  await inTransaction(api.deps.db, (tx) => openVerification(tx, { ...tenant, id: domain.id as Id<'dom'>, domain: domain.domain }, systemCause('test')));
  await check(domain.id);
  expect(await states(domain.id)).toEqual(['succeeded', 'succeeded']);
});

test('a deleted domain ends its run; a pending one without a run is given one by reconcile, once', async () => {
  const [ended, left] = [await add('ended.test'), await add('left.test')];
  await ask('DELETE', `/domains/${ended.id}`);
  expect(await check(ended.id)).toEqual({ status: null, delayMs: null });
  await query(`update operation set state = 'cancelled', finished_at = now() where resource_id = any($1)`, [ended.id, left.id]);
  const reopen = async () => (await inTransaction(api.deps.db, async (tx) => domainReconcileRule.reopen?.(tx, 200) ?? [])).map(({ resourceId }) => resourceId);
  expect(await reopen()).not.toContain(left.id);
  await query(`update mail_domain set next_check_at = now() - interval '11 minutes' where id = any($1)`, [ended.id, left.id]);
  expect(await reopen()).toEqual([left.id]);
  expect(await reopen()).toEqual([]);
  expect(await states(left.id)).toContain('pending');
});
