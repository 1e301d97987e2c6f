import { z } from 'zod';
import { usageSchema } from '../../../src/billing/schemas';
import { openSubscription, setTimeZone, storeUsage, type UsageFact } from '../../../src/billing/service';
import { newId } from '../../../src/core/ids';
import { rows } from '../../../src/db/client';
import { inTransaction } from '../../../src/db/transaction';
import { withBillingApi, type Answer } from '../../support/billing-api';
import type { Tenant } from '../../support/tenant';

const api = withBillingApi();
const hour = 3_600_000;
const startOfHour = (ms: number) => Math.floor(ms / hour) * hour;
const read = ({ body }: Answer) => z.object({ usage: z.array(usageSchema), totals: z.record(z.string(), z.string()), asOf: z.string().nullable() }).parse(body);
const span = (from: number, to: number) => `from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}`;
const store = (facts: UsageFact[]) => inTransaction(api.database, (tx) => storeUsage(tx, facts));

async function mailService(of: Tenant): Promise<string> {
  const resourceId = newId('mls');
  await inTransaction(api.database, (tx) => openSubscription(tx, { orgId: of.orgId, projectId: of.projectId, product: 'mail', resourceId, plan: 'growth' }));
  return resourceId;
}
const fact = ({ orgId }: Tenant, resourceId: string, at: number, quantity: string): UsageFact => ({
  source: 'test', key: `mail:${resourceId}:${at}`, metric: 'mail.recipients', orgId, resourceId, quantity, occurredAt: new Date(at),
});

describe('listUsage', () => {
  test('use is shown by hour, with exact totals, to its project only', async () => {
    const of = await api.newTenant();
    const resourceId = await mailService(of);
    const at = startOfHour(Date.now()) - 2 * hour;
    await store([fact(of, resourceId, at, '1.1'), fact(of, resourceId, at + 1_000, '2.2'), fact(of, resourceId, at + hour, '7')]);
    const found = read(await api.ask('GET', `/usage?${span(at, at + 2 * hour)}&granularity=hour`, { of, as: 'viewer' }));
    expect(found.usage).toEqual([
      { metric: 'mail.recipients', resourceId, start: new Date(at).toISOString(), quantity: '3.3' },
      { metric: 'mail.recipients', resourceId, start: new Date(at + hour).toISOString(), quantity: '7' },
    ]);
    expect(found.totals).toEqual({ 'mail.recipients': '10.3' });
    expect(found.asOf).not.toBeNull();
    expect(read(await api.ask('GET', `/usage?${span(at, at + 2 * hour)}&resourceId=${resourceId}`)).usage).toEqual([]);
  });

  test('days are those of the organisation\'s zone', async () => {
    const of = await api.newTenant();
    await inTransaction(api.database, (tx) => setTimeZone(tx, of.orgId, 'Pacific/Kiritimati'));
    const resourceId = await mailService(of);
    const at = startOfHour(Date.now()) - hour;
    await store([fact(of, resourceId, at, '5')]);
    const [day] = read(await api.ask('GET', `/usage?${span(at, at + hour)}`, { of })).usage;
    expect(new Date(Date.parse(day?.start ?? '') + 14 * hour).toISOString()).toMatch(/T00:00:00.000Z$/);
  });

  test('a span that is empty or too long is a fault that names the field', async () => {
    const now = Date.now();
    for (const query of [span(now, now), span(now - 93 * 24 * hour, now), `${span(now - 9 * 24 * hour, now)}&granularity=hour`, 'from=yesterday&to=today']) {
      expect(await api.ask('GET', `/usage?${query}`)).toMatchObject({ status: 400, body: { code: 'validation_error', issues: expect.arrayContaining([expect.objectContaining({ path: 'to' })]) } });
    }
  });
});

describe('storeUsage', () => {
  test('the same event counts once, another payload under its key is kept aside, and the stale and the future are refused', async () => {
    const of = await api.newTenant();
    const resourceId = await mailService(of);
    const at = startOfHour(Date.now()) - hour;
    expect(await store([fact(of, resourceId, at, '5')])).toEqual({ stored: 1, repeated: 0, conflicts: 0, rejected: 0 });
    const day = 24 * hour;
    const again = [fact(of, resourceId, at, '5.000'), fact(of, resourceId, at, '6'), fact(of, resourceId, at - 36 * day, '1'), fact(of, resourceId, Date.now() + hour, '1')];
    expect(await store(again)).toEqual({ stored: 0, repeated: 1, conflicts: 1, rejected: 2 });
    expect(read(await api.ask('GET', `/usage?${span(at, at + hour)}`, { of })).totals).toEqual({ 'mail.recipients': '5' });
  });

  test('an hour that changes has a new revision, one that does not keeps its own', async () => {
    const of = await api.newTenant();
    const resourceId = await mailService(of);
    const at = startOfHour(Date.now()) - hour;
    const revision = async () => (await rows<{ revision: number }>(api.database.prisma, 'select revision from usage_bucket where resource_id = $1', resourceId))[0]?.revision;
    await store([fact(of, resourceId, at, '5')]);
    await store([fact(of, resourceId, at, '5')]);
    expect(await revision()).toBe(1);
    await store([fact(of, resourceId, at + 1, '5')]);
    expect(await revision()).toBe(2);
  });
});
