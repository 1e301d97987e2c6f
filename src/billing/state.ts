/** Statuses and their transitions (contract billing.md §2). Pure. */
export const subscriptionTransitions = {
  trialing: ['active', 'suspended', 'canceled'],
  active: ['suspended', 'canceled'],
  suspended: ['active', 'trialing', 'canceled'],
  canceled: [],
} as const;
export type SubscriptionStatus = keyof typeof subscriptionTransitions;

export const invoiceTransitions = {
  draft: ['finalized', 'paid'],
  finalized: ['paid', 'void'],
  paid: ['void'],
  void: [],
} as const;
export type InvoiceStatus = keyof typeof invoiceTransitions;

/** Accounts in these may not open or upgrade what costs money. */
export const restrictedAccounts = ['restricted', 'suspended'] as const;
