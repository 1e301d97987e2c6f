import { z } from 'zod';
import { accountSchema, invoiceSchema, ledgerEntrySchema, spendLimitSchema } from '../../../src/billing/schemas';
import { newId } from '../../../src/core/ids';
import { execute } from '../../../src/db/client';
import { makeUsable, openPostgres } from '../../support/billing';
import { withBillingApi, type Answer } from '../../support/billing-api';
import type { Tenant } from '../../support/tenant';

const api = withBillingApi();
const previewOf = ({ body }: Answer) => z.object({ invoice: invoiceSchema, asOf: z.string() }).parse(body);
const limitOf = ({ body }: Answer) => z.object({ spendLimit: spendLimitSchema }).parse(body).spendLimit;
const hour = 3_600_000;

/** An invoice as the close writes it: lines into a draft, then all at once. */
async function storeInvoice(of: Tenant, number: string, amountMinor: number): Promise<string> {
  const { invoice: { period } } = previewOf(await api.ask('GET', '/invoices/preview', { of }));
  const id = newId('bil');
  const { prisma } = api.database;
  await execute(prisma, `insert into invoice (id, org_id, period_key, period_start, period_end, currency, cutoff_at) values ($1, $2, $3, $4::timestamptz, $5::timestamptz, 'USD', $5::timestamptz)`,
    id, of.orgId, period.key, period.start, period.end);
  await execute(prisma, `insert into invoice_line (invoice_id, number, kind, description, quantity, unit_price, from_at, to_at, amount_minor, basis)
    values ($1, 1, 'plan', 'Launch plan, postgres', '1', '19', $2::timestamptz, $3::timestamptz, 0, '{"seconds":"2592000","periodSeconds":"2592000"}')`, id, period.start, period.end);
  await prisma.$transaction([
    prisma.$executeRawUnsafe('update invoice_line set amount_minor = $2 where invoice_id = $1', id, amountMinor),
    prisma.$executeRawUnsafe(`update invoice set number = $2, status = 'finalized', finalized_at = now(), due_at = now(), subtotal_minor = $3, total_minor = $3, amount_due_minor = $3 where id = $1`, id, number, amountMinor),
  ]);
  await execute(prisma, `insert into ledger_entry (id, org_id, kind, amount_minor, invoice_id, ref_type, ref_id) values ($1, $2, 'charge', $3, $4, 'invoice', $4)`, newId('led'), of.orgId, amountMinor, id);
  return id;
}

describe('previewInvoice', () => {
  test('what has run so far is shown as the invoice it would be, and grows with the time', async () => {
    const of = await api.newTenant();
    const { resourceId } = await openPostgres(api.database, of, 'business');
    const empty = previewOf(await api.ask('GET', '/invoices/preview', { of }));
    expect(empty.invoice).toMatchObject({ id: null, number: null, status: 'draft', lines: [], totalMinor: 0, amountDueMinor: 0 });
    const since = new Date(Math.max(Date.parse(empty.asOf) - hour, Date.parse(empty.invoice.period.start)));
    await makeUsable(api.database, resourceId, since);
    const { invoice, asOf } = previewOf(await api.ask('GET', '/invoices/preview', { of, as: 'admin' }));
    const periodMs = Date.parse(invoice.period.end) - Date.parse(invoice.period.start);
    const expected = Math.round((29_900 * (Date.parse(asOf) - since.getTime())) / periodMs);
    expect(invoice.lines).toMatchObject([{ number: 1, kind: 'plan', product: 'postgres', plan: 'business', resourceId, unitPrice: '299', late: false }]);
    expect(Math.abs(invoice.totalMinor - expected)).toBeLessThanOrEqual(1);
    expect(Date.parse(invoice.cutoffAt) - Date.parse(invoice.period.end)).toBe(24 * hour);
  });

  test('a member may not see money', async () => {
    for (const path of ['/invoices/preview', '/invoices', '/ledger', '/account', '/spend-limit']) {
      expect(await api.ask('GET', path, { as: 'member' })).toMatchObject({ status: 403, body: { required: 'billing:invoices' } });
      expect(await api.ask('GET', path, { as: null })).toMatchObject({ status: 401 });
    }
  });
});

describe('listInvoices, getInvoice, listLedgerEntries, getBillingAccount', () => {
  test('a finalized invoice is the same under the project and the organisation, and nobody else sees it', async () => {
    const of = await api.newTenant();
    const id = await storeInvoice(of, 'HF-1999-000001', 1_900);
    const read = (answer: Answer) => z.object({ invoice: invoiceSchema }).parse(answer.body).invoice;
    const invoice = read(await api.ask('GET', `/invoices/${id}`, { of }));
    expect(invoice).toMatchObject({ number: 'HF-1999-000001', status: 'finalized', totalMinor: 1_900, lines: [{ amountMinor: 1_900, basis: { seconds: 2_592_000, periodSeconds: 2_592_000 } }] });
    expect(read(await api.ask('GET', `/invoices/${id}`, { of, under: 'org' }))).toEqual(invoice);
    expect((await api.ask('GET', '/invoices?status=finalized', { of })).body).toMatchObject({ invoices: [invoice], hasMore: false });
    expect((await api.ask('GET', '/invoices?status=paid', { of })).body).toMatchObject({ invoices: [] });
    expect(await api.ask('GET', `/invoices/${id}`)).toMatchObject({ status: 404, body: { message: 'Invoice not found.' } });
  });

  test('the balance is the sum of the ledger', async () => {
    const of = await api.newTenant();
    const id = await storeInvoice(of, 'HF-1999-000002', 500);
    await execute(api.database.prisma, `insert into ledger_entry (id, org_id, kind, amount_minor, ref_type, ref_id) values ($1, $2, 'payment', -200, 'test', $1)`, newId('led'), of.orgId);
    const { ledgerEntries } = z.object({ ledgerEntries: z.array(ledgerEntrySchema) }).parse((await api.ask('GET', '/ledger', { of })).body);
    expect(ledgerEntries).toMatchObject([{ kind: 'payment', amountMinor: -200, invoiceId: null }, { kind: 'charge', amountMinor: 500, invoiceId: id }]);
    const { account } = z.object({ account: accountSchema }).parse((await api.ask('GET', '/account', { of, under: 'org' })).body);
    expect(account).toMatchObject({ id: of.orgId, provider: 'ledger', currency: 'USD', timeZone: 'UTC', status: 'current', balanceMinor: 300, paymentMethod: null });
  });
});

describe('getSpendLimit, setSpendLimit', () => {
  test('an owner sets and lifts it, an admin only reads it', async () => {
    const of = await api.newTenant();
    expect(limitOf(await api.ask('GET', '/spend-limit', { of, as: 'admin' }))).toMatchObject({ limitMinor: null, committedMinor: 0 });
    expect(await api.ask('PUT', '/spend-limit', { of, as: 'admin', body: { limitMinor: 5 } })).toMatchObject({ status: 403 });
    expect(limitOf(await api.ask('PUT', '/spend-limit', { of, body: { limitMinor: 5_000 } })).limitMinor).toBe(5_000);
    expect(limitOf(await api.ask('PUT', '/spend-limit', { of, body: { limitMinor: null } })).limitMinor).toBeNull();
    expect(await api.ask('PUT', '/spend-limit', { of, body: { limitMinor: -1 } })).toMatchObject({ status: 400 });
  });

  test('services that fit alone and not together do not both start, however they race', async () => {
    const of = await api.newTenant();
    const alone = await openPostgres(api.database, of, 'business');
    const { committedMinor } = limitOf(await api.ask('GET', '/spend-limit', { of }));
    expect(committedMinor).toBeGreaterThan(0);
    await api.ask('PUT', '/spend-limit', { of, body: { limitMinor: Math.floor(committedMinor * 2.5) } });
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => openPostgres(api.database, of, 'business')));
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'spend_limit_reached', facts: { limit: Math.floor(committedMinor * 2.5) } });
    await makeUsable(api.database, alone.resourceId, new Date());
    expect(limitOf(await api.ask('GET', '/spend-limit', { of })).committedMinor).toBeLessThanOrEqual(Math.floor(committedMinor * 2.5));
    await openPostgres(api.database, of, 'trial');
  });
});
