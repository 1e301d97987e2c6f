import type { z } from 'zod';
import type { Line, Statement } from './rules';
import { planCodes, type accountSchema, type invoiceSchema, type ledgerEntrySchema, type lineSchema, type planSchema, type subscriptionSchema } from './schemas';
import type { AccountRow, PeriodRow } from './store/accounts';
import type { InvoiceRow, LineRow } from './store/invoices';
import type { LedgerRow } from './store/ledger';
import type { PlanRow } from './store/plans';
import type { SubscriptionRow } from './store/subscriptions';

type View<S extends z.ZodType> = z.input<S>;

const iso = (at: Date | null): string | null => at?.toISOString() ?? null;
/** Amounts stay far below 2^53: the database holds bigint, JSON a number. */
const minor = (amount: bigint): number => Number(amount);

/** Null for `none`, which is never sold. */
export function viewPlan(row: PlanRow): View<typeof planSchema> | null {
  const code = planCodes.find((known) => known === row.code);
  if (!code) return null;
  const { product, version, displayName, currency, monthlyPrice, limits, included, overage } = row;
  return {
    id: `${product}:${code}:${version}`, product, code, version, displayName, currency, monthlyPrice, limits, included, overage,
    activeFrom: row.activeFrom.toISOString(), activeTo: iso(row.activeTo), createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewSubscription(row: SubscriptionRow, period: PeriodRow, estimateMinor: bigint): View<typeof subscriptionSchema> {
  return {
    id: row.id, product: row.product, projectId: row.projectId, resourceId: row.resourceId, plan: row.plan, planVersion: row.planVersion,
    pendingPlan: row.pendingPlan, status: row.status, overage: row.overage, currentPeriod: viewPeriod(period),
    trialExpiresAt: row.plan === 'trial' ? iso(row.trialExpiresAt) : null, startedAt: iso(row.startedAt), canceledAt: iso(row.canceledAt),
    estimateMinor: minor(estimateMinor), createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewPeriod({ key, start, end }: Pick<PeriodRow, 'key' | 'start' | 'end'>): { key: string; start: string; end: string } {
  return { key, start: start.toISOString(), end: end.toISOString() };
}

export function viewAccount(row: AccountRow): View<typeof accountSchema> {
  const { paymentMethodKind: kind, paymentMethodLast4: last4 } = row;
  return {
    id: row.id, provider: row.provider, currency: row.currency, timeZone: row.timeZone, status: row.status, balanceMinor: minor(row.balanceMinor),
    paymentMethod: kind === null || last4 === null ? null : { kind, last4 }, createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

export function viewLedgerEntry(row: LedgerRow): View<typeof ledgerEntrySchema> {
  const { id, kind, amountMinor, invoiceId, refType, refId, note } = row;
  const createdAt = row.createdAt.toISOString();
  return { id, kind, amountMinor: minor(amountMinor), invoiceId, refType, refId, note, createdAt, updatedAt: createdAt };
}

export function viewInvoice(row: InvoiceRow, lines: readonly LineRow[]): View<typeof invoiceSchema> {
  return {
    id: row.id, number: row.number, status: row.status, period: viewPeriod({ key: row.periodKey, start: row.periodStart, end: row.periodEnd }),
    currency: row.currency, lines: lines.map((line) => viewLine({ ...line, from: line.from, to: line.to }, line.number)),
    subtotalMinor: minor(row.subtotalMinor), taxMinor: minor(row.taxMinor), totalMinor: minor(row.totalMinor), carriedInMinor: minor(row.carriedInMinor),
    creditMinor: minor(row.creditMinor), carriedOutMinor: minor(row.carriedOutMinor), amountDueMinor: minor(row.amountDueMinor), paidMinor: minor(row.paidMinor),
    cutoffAt: row.cutoffAt.toISOString(), finalizedAt: iso(row.finalizedAt), dueAt: iso(row.dueAt), paidAt: iso(row.paidAt), voidedAt: iso(row.voidedAt),
    provider: { name: row.providerName, ref: row.providerRef, url: row.providerUrl, pushedAt: iso(row.providerPushedAt), error: row.providerError },
    createdAt: row.createdAt.toISOString(), updatedAt: row.updatedAt.toISOString(),
  };
}

/** A running period shown as the invoice it would be: a draft without id. */
export function viewPreview(
  { period, currency, statement, asOf }: { period: PeriodRow; currency: string; statement: Statement; asOf: Date }, cutoffAt: Date,
): View<typeof invoiceSchema> {
  return {
    id: null, number: null, status: 'draft', period: viewPeriod(period), currency, lines: viewLines(statement.lines),
    subtotalMinor: minor(statement.subtotalMinor), taxMinor: minor(statement.taxMinor), totalMinor: minor(statement.totalMinor),
    carriedInMinor: minor(statement.carriedInMinor), creditMinor: minor(statement.creditMinor), carriedOutMinor: minor(statement.carriedOutMinor),
    amountDueMinor: minor(statement.amountDueMinor), paidMinor: 0, cutoffAt: cutoffAt.toISOString(), finalizedAt: null, dueAt: null, paidAt: null, voidedAt: null,
    provider: { name: null, ref: null, url: null, pushedAt: null, error: null }, createdAt: period.start.toISOString(), updatedAt: asOf.toISOString(),
  };
}

export function viewLines(lines: readonly Line[]): View<typeof lineSchema>[] {
  return lines.map((line, index) => viewLine({ ...line, from: new Date(Number(line.from)), to: new Date(Number(line.to)) }, index + 1));
}

function viewLine(line: Omit<LineRow, 'invoiceId' | 'number'>, number: number): View<typeof lineSchema> {
  const { kind, projectId, resourceId, subscriptionId, product, plan, planVersion, metric, description, quantity, unitPrice, late, basis } = line;
  return {
    number, kind, projectId, resourceId, subscriptionId, product, plan, planVersion, metric, description, quantity, unitPrice,
    from: line.from.toISOString(), to: line.to.toISOString(), late, amountMinor: minor(line.amountMinor),
    basis: 'seconds' in basis ? { seconds: Number(basis.seconds), periodSeconds: Number(basis.periodSeconds) } : basis,
  };
}

