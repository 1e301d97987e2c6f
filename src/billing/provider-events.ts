import { AppError, invalid, notFound } from '../core/errors';
import type { Tx } from '../db/transaction';
import type { BillingProvider, EventHeaders, ProviderEvent } from './ports';
import { insertLedgerEntry, keepProviderEvent, recordPayment } from './store/ledger';
import { hasAccount } from './store/accounts';

export type Incoming = { provider: string; raw: Buffer; headers: EventHeaders; now: Date };

/**
 * The event, once its signature is believed; nothing else of it is looked at before. Errors: `not_found` for a provider
 * that is not configured, `invalid_signature`, `invalid_json`, `validation_error`.
 */
export function receiveEvent(provider: BillingProvider, secrets: readonly string[], { provider: name, raw, headers, now }: Incoming): ProviderEvent {
  if (name !== provider.name || secrets.length === 0) throw notFound('Billing provider');
  if (!provider.verifyEvent(raw, headers, secrets, now)) throw new AppError('invalid_signature', 'The signature of this event is not valid or too old.');
  return provider.parseEvent(jsonOf(raw), headers);
}

/**
 * The event has its effect, in the caller's transaction and once, whatever its order and repetition: `duplicate` says
 * that it had it before. A payment told under two event ids counts once too: by its reference.
 */
export async function applyEvent(tx: Tx, provider: string, event: ProviderEvent): Promise<{ duplicate: boolean }> {
  if (!await keepProviderEvent(tx, provider, event)) return { duplicate: true };
  const { amountMinor = 0n, reference = event.eventId } = event;
  if (event.type === 'credited') {
    if (event.customerRef === undefined || !await hasAccount(tx, event.customerRef)) throw invalid([{ path: 'orgId', message: 'there is no such organisation' }]);
    await insertLedgerEntry(tx, { orgId: event.customerRef, kind: 'credit', amountMinor: -amountMinor, invoiceId: null, refType: `${provider}.credit`, refId: reference });
  }
  if (event.type === 'paid') {
    const known = event.invoiceRef !== undefined && await recordPayment(tx, { number: event.invoiceRef, amountMinor, refType: `${provider}.payment`, refId: reference });
    if (!known) throw invalid([{ path: 'invoiceNumber', message: 'there is no such invoice' }]);
  }
  return { duplicate: false };
}

function jsonOf(raw: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(raw));
  } catch (error) {
    throw new AppError('invalid_json', 'The body is not valid JSON in UTF-8.', {}, { cause: error });
  }
}
