import { createLedgerProvider } from '../../src/adapters/billing-provider/ledger';
import type { BillingProvider, FinalInvoice, ProviderEvent, ProviderInvoice } from '../../src/billing/ports';
import { newId } from '../../src/core/ids';
import { signedHeaders } from '../support/signed-webhook';

/** What a provider under test brings along: its events as it writes them, and its books. */
type Bench = {
  provider: BillingProvider; secrets: string[];
  paid(invoice: { number: string; amountMinor: number }): string;
  invoices: Map<string, ProviderInvoice>;
};

function ledgerBench(): Bench {
  const invoices = new Map<string, ProviderInvoice>();
  return {
    invoices, secrets: [`whsec_${Buffer.alloc(24, 1).toString('base64')}`, `whsec_${Buffer.alloc(24, 2).toString('base64')}`],
    provider: createLedgerProvider({ readInvoice: async (ref) => invoices.get(ref) ?? null }),
    paid: ({ number, amountMinor }) => JSON.stringify({ type: 'payment.recorded', invoiceNumber: number, amountMinor, reference: 'bank-1' }),
  };
}

const finalInvoice = (): FinalInvoice => ({
  id: newId('bil'), number: 'HF-1999-000007', currency: 'USD', totalMinor: 1_900n, carriedInMinor: 0n, creditMinor: 0n, amountDueMinor: 1_900n, dueAt: null,
  lines: [{ number: 1, projectId: null, description: 'Launch plan', amountMinor: 1_900n }],
});

describe.each([['ledger', ledgerBench]])('%s keeps the contract of billing providers', (name, bench) => {
  const { provider, secrets, paid, invoices } = bench();
  const body = paid({ number: 'HF-1999-000007', amountMinor: 1_900 });
  const verify = (raw: string, headers: Record<string, string>, now = new Date()) => provider.verifyEvent(Buffer.from(raw), headers, secrets, now);

  test('is called what it is', () => expect(provider.name).toBe(name));

  test('twice is once: customer, invoice, void, use', async () => {
    const org = { orgId: newId('org'), displayName: 'Acme', email: 'a@acme.test' };
    const customer = await provider.ensureCustomer(org);
    expect(await provider.ensureCustomer({ ...org, ref: customer.ref })).toEqual(customer);
    const invoice = finalInvoice();
    const { ref } = await provider.finalizeInvoice(invoice, customer.ref);
    expect((await provider.finalizeInvoice(invoice, customer.ref)).ref).toBe(ref);
    await provider.voidInvoice(ref);
    await provider.voidInvoice(ref);
    const delta = { identifier: 'use_x:1', customerRef: customer.ref, metric: 'mail.recipients', quantity: '3', at: new Date() };
    for (let i = 0; i < 2; i++) expect(await provider.pushUsage([delta])).toEqual([{ identifier: 'use_x:1', accepted: true }]);
  });

  test('shows an invoice as it stands and refuses one it never had', async () => {
    const id = newId('bil');
    invoices.set(id, { status: 'open', totalMinor: 1_900n, paidMinor: 5n });
    expect(await provider.readInvoice(id)).toEqual({ status: 'open', totalMinor: 1_900n, paidMinor: 5n });
    await expect(provider.readInvoice(newId('bil'))).rejects.toMatchObject({ code: 'not_found' });
  });

  test('believes each of the secrets, and no other, no other bytes, no other time', () => {
    for (const secret of secrets) expect(verify(body, signedHeaders(body, { id: 'evt-1', secret }))).toBe(true);
    const [secret = ''] = secrets;
    const headers = signedHeaders(body, { id: 'evt-1', secret });
    const now = Date.now();
    expect(verify(body, signedHeaders(body, { id: 'evt-1', secret: `whsec_${Buffer.alloc(24, 9).toString('base64')}` }))).toBe(false);
    expect(verify(`${body} `, headers)).toBe(false);
    expect(verify(body, { ...headers, 'webhook-id': 'evt-2' })).toBe(false);
    expect([-301_000, -290_000, 290_000, 301_000].map((ms) => verify(body, signedHeaders(body, { id: 'evt-1', secret, at: new Date(now + ms) }), new Date(now)))).toEqual([false, true, true, false]);
    for (const header of Object.keys(headers)) expect(verify(body, { ...headers, [header]: '' })).toBe(false);
    expect(verify(body, {})).toBe(false);
  });

  test('reads a payment, ignores what it does not know, refuses what is malformed', () => {
    const headers = { 'webhook-id': 'evt-7' };
    const event: ProviderEvent = provider.parseEvent(JSON.parse(body), headers);
    expect(event).toEqual({ eventId: 'evt-7', type: 'paid', invoiceRef: 'HF-1999-000007', amountMinor: 1_900n, reference: 'bank-1' });
    expect(provider.parseEvent({ type: 'weather.changed' }, headers)).toMatchObject({ type: 'ignored' });
    for (const bad of [null, [], 'x', {}, { ...JSON.parse(body) as object, amountMinor: -1 }, { ...JSON.parse(body) as object, amountMinor: 1.5 }]) {
      expect(() => provider.parseEvent(bad, headers)).toThrow(expect.objectContaining({ code: 'validation_error' }));
    }
  });
});

test('the ledger has no portal, and takes its fields beside the type or in data', async () => {
  const { provider } = ledgerBench();
  expect(await provider.createPortalUrl('org_x', 'https://example.test')).toBeNull();
  expect(provider.parseEvent({ id: 'own', type: 'credit.granted', data: { orgId: 'org_x', amountMinor: 5, reference: 'r' } }, { 'webhook-id': 'evt' }))
    .toEqual({ eventId: 'own', type: 'credited', customerRef: 'org_x', amountMinor: 5n, reference: 'r' });
});
