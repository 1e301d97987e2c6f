import fc from 'fast-check';
import { z } from 'zod';
import { accountSchema, invoiceSchema } from '../../../src/billing/schemas';
import { newId } from '../../../src/core/ids';
import { execute, rows } from '../../../src/db/client';
import { ledgerSecrets, withBillingApi, type Answer } from '../../support/billing-api';
import { signedHeaders } from '../../support/signed-webhook';
import type { Tenant } from '../../support/tenant';

const api = withBillingApi();
const [secret = '', oldSecret = ''] = ledgerSecrets;
type Event = { id: string; body: Record<string, unknown> };
const path = '/api/billing/provider-events/ledger';
const send = ({ id, body }: Event, by = secret): Promise<Answer> => api.post(path, JSON.stringify(body), signedHeaders(JSON.stringify(body), { id, secret: by }));
const credit = (of: Tenant, amountMinor: number, reference: string = newId('evt')): Event => ({ id: newId('evt'), body: { type: 'credit.granted', orgId: of.orgId, amountMinor, reference } });
const payment = (invoiceNumber: string, amountMinor: number, reference: string = newId('evt')): Event => ({ id: newId('evt'), body: { type: 'payment.recorded', invoiceNumber, amountMinor, reference } });
const balanceOf = async (of: Tenant) => z.object({ account: accountSchema }).parse((await api.ask('GET', '/account', { of })).body).account.balanceMinor;
const eventsKept = async () => (await rows<{ n: number }>(api.database.prisma, 'select count(*)::int as n from provider_event'))[0]?.n;

/** An invoice of which `amountMinor` is due, carried in from before: it needs no line. */
async function dueInvoice(of: Tenant, amountMinor: number): Promise<{ id: string; number: string }> {
  const [id, number] = [newId('bil'), `HF-1999-${newId('bil').slice(-6)}`];
  await execute(api.database.prisma, `insert into billing_period (org_id, key, start_at, end_at, time_zone) values ($1, '1999-01', now() - interval '90 days', now() - interval '60 days', 'UTC')`, of.orgId);
  await execute(api.database.prisma, `insert into invoice (id, org_id, number, status, period_key, period_start, period_end, currency, carried_in_minor, amount_due_minor, cutoff_at, finalized_at)
    values ($1, $2, $3, 'finalized', '1999-01', now() - interval '90 days', now() - interval '60 days', 'USD', $4, $4, now(), now())`, id, of.orgId, number, amountMinor);
  return { id, number };
}
const invoiceOf = async (of: Tenant, id: string) => z.object({ invoice: invoiceSchema }).parse((await api.ask('GET', `/invoices/${id}`, { of })).body).invoice;

test('a credit lowers the balance once, however often it is told', async () => {
  const of = await api.newTenant();
  const event = credit(of, 700);
  const answers = await Promise.all(Array.from({ length: 6 }, () => send(event)));
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200));
  expect(answers.filter(({ body }) => body['duplicate'] === false)).toHaveLength(1);
  expect(await balanceOf(of)).toBe(-700);
});

test('the old secret is believed beside the new one', async () => {
  const of = await api.newTenant();
  expect(await send(credit(of, 1), oldSecret)).toMatchObject({ status: 200, body: { received: true, duplicate: false } });
});

test('an invoice is paid when its payments reach what is due', async () => {
  const of = await api.newTenant();
  const { id, number } = await dueInvoice(of, 1_000);
  await send(payment(number, 400));
  expect(await invoiceOf(of, id)).toMatchObject({ status: 'finalized', paidMinor: 400, paidAt: null });
  await send(payment(number, 600));
  expect(await invoiceOf(of, id)).toMatchObject({ status: 'paid', paidMinor: 1_000, paidAt: expect.any(String) });
});

test('forged, stale and malformed events store nothing', async () => {
  const of = await api.newTenant();
  const before = await eventsKept();
  const { id, body } = credit(of, 700);
  const text = JSON.stringify(body);
  const forged = signedHeaders(text, { id, secret: `whsec_${Buffer.alloc(24, 9).toString('base64')}` });
  const stale = signedHeaders(text, { id, secret, at: new Date(Date.now() - 600_000) });
  for (const headers of [forged, stale, {}]) expect(await api.post(path, text, headers)).toMatchObject({ status: 401, body: { code: 'invalid_signature' } });
  expect(await api.post(path, '{', signedHeaders('{', { id, secret }))).toMatchObject({ status: 400, body: { code: 'invalid_json' } });
  expect(await send({ id, body: { ...body, amountMinor: -5 } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await send({ id, body: { ...body, orgId: newId('org') } })).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await send(payment('HF-1999-999999', 5))).toMatchObject({ status: 400, body: { code: 'validation_error' } });
  expect(await api.post('/api/billing/provider-events/stripe', text, signedHeaders(text, { id, secret }))).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect([await eventsKept(), await balanceOf(of)]).toEqual([before, 0]);
});

test('in any order, however often, with payments told under two ids: the books are the model', async () => {
  const facts = fc.array(fc.record({ kind: fc.constantFrom('credit', 'payment'), amountMinor: fc.integer({ min: 1, max: 500 }), told: fc.integer({ min: 1, max: 3 }), renamed: fc.boolean() }), { minLength: 1, maxLength: 6 });
  await fc.assert(fc.asyncProperty(facts, fc.integer({ min: 0, max: 1_000 }), async (given, seed) => {
    const of = await api.newTenant();
    const { id, number } = await dueInvoice(of, 900);
    const events = given.flatMap(({ kind, amountMinor, told, renamed }) => {
      const event = kind === 'credit' ? credit(of, amountMinor) : payment(number, amountMinor);
      return Array.from({ length: told }, (_, i) => (renamed ? { ...event, id: `${event.id}-${i}` } : event));
    });
    const shuffled = events.map((event, i) => ({ event, at: ((i + 1) * (seed + 7919)) % 1_009 })).toSorted((a, b) => a.at - b.at).map(({ event }) => event);
    const half = Math.ceil(shuffled.length / 2);
    await Promise.all(shuffled.slice(0, half).map((event) => send(event)));
    for (const event of shuffled.slice(half)) expect((await send(event)).status).toBe(200);
    const sum = (kind: string) => given.filter((fact) => fact.kind === kind).reduce((total, { amountMinor }) => total + amountMinor, 0);
    expect(await balanceOf(of)).toBe(-sum('credit') - sum('payment'));
    expect(await invoiceOf(of, id)).toMatchObject({ paidMinor: sum('payment'), status: sum('payment') >= 900 ? 'paid' : 'finalized' });
  }), { numRuns: 8 });
}, 60_000);
