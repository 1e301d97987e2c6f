import { z } from 'zod';
import { invalid, notFound } from '../../core/errors';
import { isSignedWebhook } from '../../core/webhook-signature';
import type { BillingProvider, EventHeaders, ProviderEvent, ProviderInvoice } from '../../billing/ports';

const amountMinor = z.int().min(1).max(1_000_000_000_000_000);
const reference = z.string().min(1).max(200);
const event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('payment.recorded'), invoiceNumber: z.string().min(1).max(40), amountMinor, reference }),
  z.object({ type: z.literal('payment.failed'), invoiceNumber: z.string().min(1).max(40), reference: reference.optional() }),
  z.object({ type: z.literal('credit.granted'), orgId: z.string().min(1).max(64), amountMinor, reference }),
]);
const known: ReadonlySet<unknown> = new Set(event.options.map((option) => option.shape.type.value));
const envelope = z.looseObject({ id: z.string().min(1).max(255).optional(), type: z.string().max(100), data: z.looseObject({}).optional() });

/**
 * Our own books as the provider: nobody else is asked, refs are our ids, there is no portal, use is not pushed. What an
 * operator or their bank tells comes as signed events. `readInvoice` is the invoice as it stands in our ledger, null when it never was.
 */
export function createLedgerProvider(books: { readInvoice(ref: string): Promise<ProviderInvoice | null> }): BillingProvider {
  return {
    name: 'ledger',
    ensureCustomer: async ({ orgId }) => ({ ref: orgId }),
    createPortalUrl: async () => null,
    finalizeInvoice: async ({ id }) => ({ ref: id, url: null }),
    voidInvoice: async () => undefined,
    async readInvoice(ref) {
      const invoice = await books.readInvoice(ref);
      if (!invoice) throw notFound('Invoice');
      return invoice;
    },
    pushUsage: async (batch) => batch.map(({ identifier }) => ({ identifier, accepted: true })),
    verifyEvent: isSignedWebhook,
    parseEvent,
  };
}

/** The event's fields stand beside `type` or in `data`; its id is its own or the `webhook-id`. Errors: `validation_error`. */
function parseEvent(json: unknown, headers: EventHeaders): ProviderEvent {
  const { id, type, data = {}, ...beside } = parsed(envelope, json);
  const eventId = id ?? headers['webhook-id'] ?? '';
  if (!known.has(type)) return { eventId, type: 'ignored' };
  const fields = parsed(event, { ...beside, ...data, type });
  switch (fields.type) {
    case 'payment.recorded': return { eventId, type: 'paid', invoiceRef: fields.invoiceNumber, amountMinor: BigInt(fields.amountMinor), reference: fields.reference };
    case 'payment.failed': return { eventId, type: 'payment_failed', invoiceRef: fields.invoiceNumber };
    case 'credit.granted': return { eventId, type: 'credited', customerRef: fields.orgId, amountMinor: BigInt(fields.amountMinor), reference: fields.reference };
  }
}

function parsed<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (!result.success) throw invalid(result.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })));
  return result.data;
}
