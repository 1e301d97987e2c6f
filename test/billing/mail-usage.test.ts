import fc from 'fast-check';
import { newId } from '../../src/core/ids';
import { collectMailUsage, refreshAllCeilings } from '../../src/billing/service';
import { projectStatement } from '../../src/billing/invoices';
import { leftBeforeTax, round, shareOf } from '../../src/billing/rules';
import { createAcceptWriter, type Acceptance } from '../../src/mail/accept-writer';
import { withApi } from '../support/api';
import { insertSendingDomain } from '../support/mail-delivery';
import { createTenant, type Tenant } from '../support/tenant';

const api = withApi();
const db = () => api.deps.db;
const query = async (sql: string, ...values: unknown[]) => (await db().pool.query(sql, values)).rows;
let tenant: Tenant;
beforeEach(async () => {
  tenant = await createTenant(db(), api.deps.config.AUTH_SECRET);
});

const ask = async (method: string, path: string, json?: unknown) =>
  (await api.ask(method, `/v1/api/orgs/${tenant.orgSlug}/projects/${tenant.projectSlug}${path}`, { headers: { cookie: tenant.cookies.owner }, ...(json === undefined ? {} : { json }) })).body;
const overage = async (serviceId: string, on: boolean) => {
  const [{ id }] = (await ask('GET', `/billing/subscriptions?resourceId=${serviceId}`)).subscriptions;
  await ask('PATCH', `/billing/subscriptions/${id}`, { overage: on });
};
const service = async ({ paysForMore = false, used = 0 } = {}): Promise<string> => {
  const { mailServiceId } = await ask('POST', '/mail/services', { displayName: 'Mail', plan: 'growth' });
  if (paysForMore) await overage(mailServiceId, true);
  await query('update mail_usage set recipients = $2 where mail_service_id = $1', mailServiceId, used);
  return mailServiceId;
};
const ceilingOf = async (serviceId: string) => (await query('select ceiling::int as ceiling, ceiling_reason as reason from mail_usage where mail_service_id = $1', serviceId))[0];
const limitAbove = async (minor: number): Promise<number> => {
  const { spendLimit } = await ask('GET', '/billing/spend-limit');
  await ask('PUT', '/billing/spend-limit', { limitMinor: spendLimit.committedMinor + minor });
  return spendLimit.committedMinor + minor;
};

/** A running period that began when the test wants. */
async function counter(recipients: number, { startsAgo = '3 days', endsIn = '3 days' } = {}): Promise<string> {
  const serviceId = await service();
  await query('delete from mail_usage where mail_service_id = $1', serviceId);
  await query(`insert into billing_period (org_id, key, start_at, end_at, time_zone) values ($1, '2001-01', now() - $2::interval, now() + $3::interval, 'UTC')`, `${tenant.orgId}x`, startsAgo, endsIn);
  await query(`insert into mail_usage (mail_service_id, period_start, period_end, recipients, included) select $1, start_at, end_at, $3, 10 from billing_period where org_id = $2`, serviceId, `${tenant.orgId}x`, recipients);
  await query('alter table mail_service disable trigger all');
  await query('update mail_service set org_id = $2 where id = $1', serviceId, `${tenant.orgId}x`);
  await query('alter table mail_service enable trigger all');
  return serviceId;
}
const events = (serviceId: string) => query(`select key, quantity::int as quantity, occurred_at from usage_event where source = 'mail' and resource_id = $1 order by occurred_at`, serviceId);
const add = (serviceId: string, n: number) => query('update mail_usage set recipients = recipients + $2 where mail_service_id = $1', serviceId, n);
/** As if the events stored so far were of the hour before. */
const hourPasses = async (serviceId: string) => {
  await query('alter table usage_event disable trigger all');
  await query(`update usage_event set occurred_at = occurred_at - interval '1 hour' where resource_id = $1`, serviceId);
  await query('alter table usage_event enable trigger all');
};

test('what a counter has grown by is stored once, under the hour that ended; what a run missed comes with the next', async () => {
  const serviceId = await counter(40);
  await Promise.all([collectMailUsage(db()), collectMailUsage(db()), collectMailUsage(db())]);
  const [first] = await events(serviceId);
  expect(await events(serviceId)).toHaveLength(1);
  expect(first).toMatchObject({ quantity: 40, key: `mail:${serviceId}:${first?.['occurred_at'].toISOString().slice(0, 13)}` });
  expect(await query('select quantity::int as n from usage_bucket where resource_id = $1', serviceId)).toEqual([{ n: 40 }]);
  await add(serviceId, 2);
  await collectMailUsage(db());
  expect((await events(serviceId)).length).toBeLessThanOrEqual(2); // two when an hour has just ended
  await hourPasses(serviceId);
  await collectMailUsage(db());
  expect((await events(serviceId)).reduce((sum, { quantity }) => sum + Number(quantity), 0)).toBe(42);
});

test('a period that has ended is booked at its last hour, and what was left over at its end', async () => {
  const serviceId = await counter(7, { startsAgo: '3 days', endsIn: '-2 hours' });
  await collectMailUsage(db());
  await add(serviceId, 3);
  await collectMailUsage(db());
  await collectMailUsage(db());
  const [{ end_at: end }] = await query('select end_at from billing_period where org_id = $1', `${tenant.orgId}x`) as [{ end_at: Date }];
  expect(await events(serviceId)).toMatchObject([{ quantity: 7 }, { quantity: 3, key: `mail:${serviceId}:2001-01:end`, occurred_at: new Date(end.getTime() - 1) }]);
});

test('a period that begins within an hour, in zones that do, books no mail before its beginning', async () => {
  const serviceId = await counter(5, { startsAgo: '70 minutes' });
  await collectMailUsage(db());
  const [row] = await query('select e.occurred_at >= u.period_start as inside from usage_event e join mail_usage u on u.mail_service_id = e.resource_id where e.resource_id = $1', serviceId);
  expect(row).toEqual({ inside: true });
});

test('the ceiling is what is included, nothing with overage, and with a spend limit the share of what is left', async () => {
  const serviceId = await service();
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: 100_000, reason: 'included' });
  await overage(serviceId, true);
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: null, reason: 'included' });
  await limitAbove(60);
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: 101_000, reason: 'spend_limit' });
  await query('update mail_usage set recipients = 100500 where mail_service_id = $1', serviceId);
  await refreshAllCeilings(db());
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: 101_000, reason: 'spend_limit' });
  await overage(serviceId, false);
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: 100_000, reason: 'included' });
  await overage(serviceId, true);
  await ask('PUT', '/billing/spend-limit', { limitMinor: null });
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: null, reason: 'included' });
});

test('what else is bought shrinks what mail may use, in the same commit', async () => {
  const serviceId = await service({ paysForMore: true, used: 100_000 });
  await limitAbove(6_000);
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: 200_000, reason: 'spend_limit' });
  const { spendLimit: before } = await ask('GET', '/billing/spend-limit');
  await ask('POST', '/postgres/services', { displayName: 'orders', plan: 'starter' });
  const { spendLimit: after } = await ask('GET', '/billing/spend-limit');
  expect(after.committedMinor).toBeGreaterThan(before.committedMinor);
  const left = BigInt(after.limitMinor - after.committedMinor);
  expect(await ceilingOf(serviceId)).toEqual({ ceiling: 100_000 + Number(left * 10_000n / 600n), reason: 'spend_limit' });
});

test('use never passes the spend limit: four services, eight senders near it, ceilings refreshed meanwhile', async () => {
  const services = await Promise.all(Array.from({ length: 4 }, () => service({ paysForMore: true, used: 100_000 })));
  const limit = await limitAbove(30);
  const write = createAcceptWriter({ db: db(), quotaNear: () => undefined });
  const domains = new Map(await Promise.all(services.map(async (serviceId) => [serviceId, await insertSendingDomain(db(), { ...tenant, serviceId, domain: `${serviceId.slice(-10)}.test` })] as const)));
  const one = (serviceId: string): Promise<Acceptance> => {
    const id = newId('msg');
    return write.write({
      id, serviceId, keyId: newId('key'), domainId: domains.get(serviceId) ?? '', mode: 'live', transport: 'capture', subject: 'Hi', metadata: null, text: 'x', html: null, sizeBytes: 5, parties: '{}',
      rfcMessageId: `<${id}@x.test>`, recipients: Array.from({ length: 7 }, (_, i) => ({ id: newId('rcp'), kind: 'to', address: `r${i}@y.org`, addressKey: `r${i}@y.org` })), maxAgeHours: 72, dispatchAfterSeconds: 0, once: null,
    });
  };
  for (let round = 0; round < 3; round++) {
    await Promise.all([...[...services, ...services].map(async (serviceId) => {
      while (await one(serviceId) === 'accepted');
    }), refreshAllCeilings(db())]);
    await refreshAllCeilings(db());
  }
  const { statement } = await projectStatement(db().prisma, tenant.orgId);
  expect(Number(statement.totalMinor)).toBeLessThanOrEqual(limit);
  expect(Number(statement.totalMinor)).toBeGreaterThan(limit - 12);
}, 60_000);

test('shares: whatever is left, however it is divided and taxed, all together stay within the limit', () => {
  const amount = fc.bigInt({ min: 0n, max: 10n ** 9n });
  fc.assert(fc.property(fc.record({
    limit: amount, subtotal: amount, sharers: fc.integer({ min: 1, max: 9 }), unitPrice: fc.constantFrom('0.0006', '0.0003', '0.07', '3'), tax: fc.constantFrom('0', '8.1', '19', '100'),
  }), ({ limit, subtotal, sharers, unitPrice, tax }) => {
    const left = leftBeforeTax(limit, subtotal, tax);
    const each = shareOf({ leftMinor: left, sharers: BigInt(sharers), unitPrice, currency: 'USD' });
    const [whole = '', fraction = ''] = unitPrice.split('.');
    const price = { n: BigInt(whole + fraction), d: 10n ** BigInt(fraction.length) };
    const after = subtotal + BigInt(sharers) * round({ n: each * price.n * 100n, d: price.d });
    const [taxWhole = '', taxFraction = ''] = tax.split('.');
    const total = after + round({ n: after * BigInt(taxWhole + taxFraction), d: 100n * 10n ** BigInt(taxFraction.length) });
    expect(left === 0n || total <= limit).toBe(true);
  }));
});
