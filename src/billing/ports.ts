/**
 * Who collects the money (contract billing.md §6). Our ledger is the truth and this follows it: every call may be made
 * twice with one effect. Errors: AppError for what repeating cannot cure; anything else is tried again.
 */
export interface BillingProvider {
  readonly name: 'ledger' | 'stripe';
  /** The provider's name for the organisation; the given one when it still stands. */
  ensureCustomer(org: { orgId: string; displayName: string; email: string; ref?: string }): Promise<{ ref: string }>;
  /** Null: this provider has no portal. */
  createPortalUrl(customerRef: string, returnUrl: string): Promise<string | null>;
  /** The invoice stands at the provider with exactly our amounts. */
  finalizeInvoice(invoice: FinalInvoice, customerRef: string): Promise<{ ref: string; url: string | null }>;
  voidInvoice(ref: string): Promise<void>;
  /** Errors: `not_found`. */
  readInvoice(ref: string): Promise<ProviderInvoice>;
  pushUsage(batch: readonly UsageDelta[]): Promise<{ identifier: string; accepted: boolean; reason?: string }[]>;
  /** Whether the raw bytes were signed with one of the secrets, not long ago. Constant in time; never throws. */
  verifyEvent(raw: Buffer, headers: EventHeaders, secrets: readonly string[], now: Date): boolean;
  /** What the event means to us. Errors: `validation_error`. */
  parseEvent(json: unknown, headers: EventHeaders): ProviderEvent;
}

export type EventHeaders = Readonly<Record<string, string | undefined>>;

export type FinalInvoice = {
  id: string; number: string; currency: string; totalMinor: bigint; carriedInMinor: bigint; creditMinor: bigint; amountDueMinor: bigint; dueAt: Date | null;
  lines: readonly { number: number; projectId: string | null; description: string; amountMinor: bigint }[];
};
export type ProviderInvoice = { status: 'open' | 'paid' | 'void'; totalMinor: bigint; paidMinor: bigint };
/** One revision of an hour of use; `identifier` is `<bucketId>:<revision>`. */
export type UsageDelta = { identifier: string; customerRef: string; metric: string; quantity: string; at: Date };

export type ProviderEvent = {
  eventId: string;
  type: 'paid' | 'payment_failed' | 'refunded' | 'credited' | 'voided' | 'payment_method' | 'ignored';
  /** The invoice as the provider names it; of the ledger: its number. */
  invoiceRef?: string;
  customerRef?: string;
  amountMinor?: bigint;
  reference?: string;
};
