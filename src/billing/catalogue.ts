import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { canonicalJson } from '../core/canonical-json';
import type { Database } from '../db/client';
import { inTransaction } from '../db/transaction';
import { defaultCatalogue } from './default-catalogue';
import { decimalText, metrics, planCodes, products } from './schemas';
import { activePlans, insertPlan, lockCatalogue, retirePlan, writeSettings, ensureUsagePartitions } from './store/plans';

const whole = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const plannedPlan = z.strictObject({
  product: z.enum(products),
  code: z.enum([...planCodes, 'none']).meta({ description: '`none`: limits of dns without a subscription; never sold.' }),
  displayName: z.string().min(1).max(80),
  monthlyPrice: decimalText,
  /** Resource → bound; a resource that is absent has none. */
  limits: z.record(z.string().regex(/^[a-z]+\.[a-z_]+$/), whole),
  included: z.partialRecord(z.enum(metrics), whole).default({}),
  /** Metric → price of one unit beyond what is included; null: nothing beyond it. */
  overage: z.partialRecord(z.enum(metrics), decimalText).nullable().default(null),
});

/** Plans in the order customers see them, smallest first within a product. */
const catalogueSchema = z.array(plannedPlan).superRefine((plans, context) => {
  const seen = new Set<string>();
  for (const [index, { product, code }] of plans.entries()) {
    if (seen.has(`${product}:${code}`)) context.addIssue({ code: 'custom', path: [index, 'code'], message: `${product}:${code} stands twice` });
    seen.add(`${product}:${code}`);
    if (code === 'none' && product !== 'dns') context.addIssue({ code: 'custom', path: [index, 'code'], message: 'only dns has a column none' });
  }
  if (!seen.has('dns:launch')) context.addIssue({ code: 'custom', path: [], message: 'dns:launch is missing: every organisation begins on it' });
});

/** A plan as somebody writes it down. */
export type PlannedPlan = z.output<typeof plannedPlan>;
export type CatalogueConfig = { BILLING_PROVIDER: string; BILLING_CURRENCY: string; BILLING_PLANS_FILE?: string | undefined } & Partial<BillingRules>;
/** Defaults: no tax, 50, off. */
type BillingRules = { BILLING_TAX_PERCENT: string; BILLING_MIN_INVOICE_MINOR: number; BILLING_REQUIRE_PAYMENT_METHOD: boolean };

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
      provider: config.BILLING_PROVIDER, currency: config.BILLING_CURRENCY, taxPercent: config.BILLING_TAX_PERCENT ?? '0',
      minInvoiceMinor: config.BILLING_MIN_INVOICE_MINOR ?? 50, requirePaymentMethod: config.BILLING_REQUIRE_PAYMENT_METHOD ?? false,
    });
    await ensureUsagePartitions(tx);
    const active = new Map((await activePlans(tx, null)).map((plan) => [`${plan.product}:${plan.code}`, plan]));
    for (const [rank, plan] of planned.entries()) {
      const name = `${plan.product}:${plan.code}`;
      const before = active.get(name);
      active.delete(name);
      const wanted = { ...plan, rank, currency: config.BILLING_CURRENCY };
      if (before && fingerprint(before) === fingerprint(wanted)) continue;
      if (before) await retirePlan(tx, before);
      await insertPlan(tx, wanted);
    }
    for (const gone of active.values()) await retirePlan(tx, gone);
  });
}

/** What makes a version: everything a customer agrees to, and the plan's place in the row. */
function fingerprint(plan: Omit<PlannedPlan, 'product' | 'code'> & { rank: number; currency: string }): string {
  const { displayName, currency, monthlyPrice, limits, included, overage, rank } = plan;
  return canonicalJson({ displayName, currency, monthlyPrice, limits, included, overage, rank });
}
