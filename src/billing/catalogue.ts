import { readFile } from 'node:fs/promises';
import { canonicalJson } from '../core/canonical-json';
import type { Config } from '../config';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { defaultCatalogue } from './default-catalogue';
import { decimal, decimalText } from './rules';
import { catalogueSchema, planCodes, type PlannedPlan } from './schemas';
import { activePlans, insertPlan, lockCatalogue, retirePlan, writeSettings, ensureUsagePartitions } from './store/plans';

export type CatalogueConfig = Pick<Config, 'BILLING_PROVIDER' | 'BILLING_CURRENCY' | 'BILLING_TAX_PERCENT' | 'BILLING_MIN_INVOICE_MINOR'
  | 'BILLING_REQUIRE_PAYMENT_METHOD' | 'BILLING_PLANS_FILE'>;

/** The catalogue of this installation: the default, or BILLING_PLANS_FILE in its place. Errors: names every fault of the file. */
export async function readCatalogue(file: string | undefined): Promise<PlannedPlan[]> {
  if (file === undefined) return catalogueSchema.parse(defaultCatalogue);
  const result = catalogueSchema.safeParse(JSON.parse(await readFile(file, 'utf8')));
  if (result.success) return result.data;
  const faults = result.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`BILLING_PLANS_FILE ${file} has ${faults.length} fault(s):\n${faults.join('\n')}`);
}

/**
 * The database sells what the configuration says: a plan that changed has a new version, one that is gone is no longer
 * sold, and nothing is written when nothing changed. Call it at boot, in any number of processes: one works, the others
 * wait and find it done.
 */
export async function ensureCatalogue(database: Database, config: CatalogueConfig): Promise<void> {
  const planned = await readCatalogue(config.BILLING_PLANS_FILE);
  await inTransaction(database, async (tx) => {
    await lockCatalogue(tx);
    await writeSettings(tx, {
      provider: config.BILLING_PROVIDER, currency: config.BILLING_CURRENCY, taxPercent: config.BILLING_TAX_PERCENT,
      minInvoiceMinor: config.BILLING_MIN_INVOICE_MINOR, requirePaymentMethod: config.BILLING_REQUIRE_PAYMENT_METHOD,
    });
    await ensureUsagePartitions(tx);
    const active = new Map((await activePlans(tx, null)).map((plan) => [`${plan.product}:${plan.code}`, plan]));
    for (const plan of planned) {
      const name = `${plan.product}:${plan.code}`;
      const before = active.get(name);
      active.delete(name);
      const wanted = { ...plan, rank: sizes.indexOf(plan.code), currency: config.BILLING_CURRENCY, monthlyPrice: decimalText(decimal(plan.monthlyPrice)) };
      if (before && fingerprint(before) === fingerprint(wanted)) continue;
      if (before) await retirePlan(tx, before);
      await insertPlan(tx, wanted);
    }
    for (const gone of active.values()) await retirePlan(tx, gone);
  });
}

/** Plans from small to large: what an upgrade is. */
const sizes = ['none', ...planCodes];

/** What makes a version: everything a customer agrees to. */
function fingerprint(plan: Omit<PlannedPlan, 'product' | 'code'> & { currency: string }): string {
  const { displayName, currency, monthlyPrice, limits, included, overage } = plan;
  return canonicalJson({ displayName, currency, monthlyPrice, limits, included, overage });
}
