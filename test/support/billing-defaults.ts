import type { CatalogueConfig } from '../../src/billing/catalogue';

/** What billing reads of the configuration when nothing is set. */
export const billingDefaults: CatalogueConfig = {
  BILLING_PROVIDER: 'ledger', BILLING_CURRENCY: 'USD', BILLING_TAX_PERCENT: '0', BILLING_MIN_INVOICE_MINOR: 50, BILLING_REQUIRE_PAYMENT_METHOD: false,
  BILLING_PLANS_FILE: undefined,
};
