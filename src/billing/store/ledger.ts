import { newId } from '../../core/ids';
import type { PageKey } from '../../core/cursor';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { ProviderEvent, ProviderInvoice } from '../ports';

export type LedgerKind = 'charge' | 'payment' | 'credit' | 'refund' | 'adjustment';
export type LedgerRow = {
  id: string; kind: LedgerKind; amountMinor: bigint; invoiceId: string | null; refType: string; refId: string; note: string; createdAt: Date;
};
export type NewLedgerEntry = { orgId: string; kind: LedgerKind; amountMinor: bigint; invoiceId: string | null; refType: string; refId: string };

/** Newest first. */
export function listLedger(db: Db, orgId: string, after: PageKey | null, limit: number): Promise<LedgerRow[]> {
  return rows<LedgerRow>(db, `
    select id, kind, amount_minor as "amountMinor", invoice_id as "invoiceId", ref_type as "refType", ref_id as "refId", note, created_at as "createdAt"
    from ledger_entry where org_id = $1 and ($2::timestamptz is null or (created_at, id) < ($2::timestamptz, $3)) order by created_at desc, id desc limit $4`,
  orgId, after?.[0] ?? null, after?.[1] ?? null, limit);
}

/** False when the same thing is in the books already: kind, refType and refId say what it is. */
export async function insertLedgerEntry(tx: Tx, entry: NewLedgerEntry): Promise<boolean> {
  const changed = await execute(tx, `
    insert into ledger_entry (id, org_id, kind, amount_minor, invoice_id, ref_type, ref_id) values ($1, $2, $3, $4::bigint, $5, $6, $7)
    on conflict (kind, ref_type, ref_id) do nothing`, newId('led'), entry.orgId, entry.kind, entry.amountMinor, entry.invoiceId, entry.refType, entry.refId);
  return changed === 1;
}

/** A payment is in the books and on its invoice, once; what is paid in full is paid. False when no such invoice was ever due. */
export async function recordPayment(tx: Tx, payment: { number: string; amountMinor: bigint; refType: string; refId: string }): Promise<boolean> {
  const [invoice] = await rows<{ id: string; orgId: string }>(tx, `select id, org_id as "orgId" from invoice where number = $1 and status <> 'draft' for update`, payment.number);
  if (!invoice) return false;
  const { amountMinor, refType, refId } = payment;
  const fresh = await insertLedgerEntry(tx, { orgId: invoice.orgId, kind: 'payment', amountMinor: -amountMinor, invoiceId: invoice.id, refType, refId });
  if (!fresh) return true;
  await execute(tx, `
    update invoice set paid_minor = paid_minor + $2::bigint, updated_at = now(),
      status = case when status = 'finalized' and paid_minor + $2::bigint >= amount_due_minor then 'paid' else status end,
      paid_at = case when status = 'finalized' and paid_minor + $2::bigint >= amount_due_minor then now() else paid_at end
    where id = $1`, invoice.id, amountMinor);
  return true;
}

/** False when this event had been received before. Two that come at once wait for each other here. */
export async function keepProviderEvent(tx: Tx, provider: string, { eventId, type, ...facts }: ProviderEvent): Promise<boolean> {
  const payload = JSON.stringify(facts, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
  return await execute(tx, `insert into provider_event (provider, event_id, type, payload) values ($1, $2, $3, $4::jsonb) on conflict do nothing`,
    provider, eventId, type, payload) === 1;
}

/** The invoice as our books have it; null when there is none. */
export async function readBooks(db: Db, invoiceId: string): Promise<ProviderInvoice | null> {
  const [row] = await rows<ProviderInvoice>(db, `select case status when 'finalized' then 'open' else status end as status, total_minor as "totalMinor", paid_minor as "paidMinor"
    from invoice where id = $1 and status <> 'draft'`, invoiceId);
  return row ?? null;
}
