import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Product } from '../schemas';

/** A version of a plan. `none` is in the same table: it carries limits and is never sold. */
export type PlanRow = {
  product: Product; code: 'none' | 'trial' | 'starter' | 'launch' | 'growth' | 'business'; version: number; rank: number; displayName: string; currency: string;
  monthlyPrice: string; limits: Record<string, number>; included: Record<string, number>; overage: Record<string, string> | null;
  activeFrom: Date; activeTo: Date | null; createdAt: Date; updatedAt: Date;
};
export type Settings = { provider: string; currency: string; taxPercent: string; minInvoiceMinor: number; requirePaymentMethod: boolean };

export const planColumns = `p.product, p.code, p.version, p.rank, p.display_name as "displayName", p.currency,
  trim_scale(p.monthly_price)::text as "monthlyPrice", p.limits, p.included, p.overage,
  p.active_from as "activeFrom", p.active_to as "activeTo", p.created_at as "createdAt", p.updated_at as "updatedAt"`;

/** One process writes the catalogue at a time, until its transaction ends. */
export async function lockCatalogue(tx: Tx): Promise<void> {
  await execute(tx, `select pg_advisory_xact_lock(hashtext('holdfast-billing-catalogue'))`);
}

export async function writeSettings(tx: Tx, settings: Settings): Promise<void> {
  await execute(tx, `
    insert into billing_setting (provider, currency, tax_percent, min_invoice_minor, require_payment_method) values ($1, $2, $3::numeric, $4, $5)
    on conflict (singleton) do update set provider = excluded.provider, currency = excluded.currency, tax_percent = excluded.tax_percent,
      min_invoice_minor = excluded.min_invoice_minor, require_payment_method = excluded.require_payment_method, updated_at = now()`,
  settings.provider, settings.currency, settings.taxPercent, settings.minInvoiceMinor, settings.requirePaymentMethod);
}

/** Partitions for usage as old as is taken (35 days) and for a quarter ahead. */
export async function ensureUsagePartitions(tx: Tx): Promise<void> {
  await execute(tx, `select ensure_usage_partitions(now() - interval '36 days', now() + interval '3 months')`);
}

/** Versions in force, smallest plan first; of one product or of all. */
export function activePlans(db: Db, product: Product | null): Promise<PlanRow[]> {
  return rows<PlanRow>(db, `select ${planColumns} from plan p
    where p.active_to is null and ($1::text is null or p.product = $1) order by p.product, p.rank`, product);
}

/** The version in force; null when the catalogue does not have the plan. */
export async function findActivePlan(db: Db, product: Product, code: string): Promise<PlanRow | null> {
  const [row] = await rows<PlanRow>(db, `select ${planColumns} from plan p where p.product = $1 and p.code = $2 and p.active_to is null`, product, code);
  return row ?? null;
}

export async function insertPlan(tx: Tx, plan: Omit<PlanRow, 'version' | 'activeFrom' | 'activeTo' | 'createdAt' | 'updatedAt'>): Promise<void> {
  await execute(tx, `
    insert into plan (product, code, version, rank, display_name, currency, monthly_price, limits, included, overage)
    values ($1, $2, (select coalesce(max(version), 0) + 1 from plan where product = $1 and code = $2), $3, $4, $5, $6::numeric, $7::jsonb, $8::jsonb, $9::jsonb)`,
  plan.product, plan.code, plan.rank, plan.displayName, plan.currency, plan.monthlyPrice,
  JSON.stringify(plan.limits), JSON.stringify(plan.included), plan.overage === null ? null : JSON.stringify(plan.overage));
}

/** No longer sold; whoever is on it stays on it. */
export async function retirePlan(tx: Tx, plan: Pick<PlanRow, 'product' | 'code' | 'version'>): Promise<void> {
  await execute(tx, `update plan set active_to = now(), updated_at = now() where product = $1 and code = $2 and version = $3 and active_to is null`,
    plan.product, plan.code, plan.version);
}
