import type { PageKey } from '../../core/cursor';
import { rows, type Db } from '../../db/client';
import type { Product } from '../schemas';
import type { InvoiceStatus } from '../state';
import type { BilledSpan, BilledUse, PricedPlan } from '../rules';
import type { PeriodRow } from './accounts';

/** What the invoice of a period is made of, as far as it is known at an instant. */
export type Billed = { spans: BilledSpan[]; uses: BilledUse[] };

/** Plan time and use of the period up to `asOf`. Use counts when it had been received by then. */
export async function readBilled(db: Db, orgId: string, period: Pick<PeriodRow, 'start' | 'end'>, asOf: Date): Promise<Billed> {
  const plans = await readPricedPlans(db, orgId);
  const cutoff = asOf < period.end ? asOf : period.end;
  const spans = (await readSpans(db, orgId, period.start, cutoff)).flatMap(({ product, plan, planVersion, fromMs, toMs, ...span }) => {
    const priced = plans.get(planKey(product, plan, planVersion));
    return priced ? [{ ...span, plan: priced, from: BigInt(fromMs), to: BigInt(toMs) }] : [];
  });
  return { spans, uses: await readUses(db, orgId, period, asOf) };
}

type SpanRow = {
  subscriptionId: string; projectId: string | null; resourceId: string; product: Product; plan: string; planVersion: number; fromMs: number; toMs: number;
};

function readSpans(db: Db, orgId: string, start: Date, cutoff: Date): Promise<SpanRow[]> {
  if (cutoff <= start) return Promise.resolve([]);
  return rows<SpanRow>(db, `
    select u.subscription_id as "subscriptionId", s.project_id as "projectId", u.resource_id as "resourceId", u.product, u.plan, u.plan_version as "planVersion",
      (extract(epoch from lower(u.span)) * 1000)::float8 as "fromMs",
      (extract(epoch from least(upper(u.span), $3::timestamptz)) * 1000)::float8 as "toMs"
    from usage_span u join subscription s on s.id = u.subscription_id
    where u.org_id = $1 and u.slot = 'plan' and u.span && tstzrange($2::timestamptz, $3::timestamptz, '[)')`, orgId, start, cutoff);
}

/** Plan versions the organisation has time on or means to have. */
export async function readPricedPlans(db: Db, orgId: string): Promise<Map<string, PricedPlan>> {
  const found = await rows<PricedPlan>(db, `
    select p.product, p.code, p.version, p.display_name as "displayName", trim_scale(p.monthly_price)::text as "monthlyPrice", p.included, p.overage from plan p
    where (p.product, p.code, p.version) in (
      select product, plan, plan_version from usage_span where org_id = $1
      union select product, plan, plan_version from subscription where org_id = $1
      union select product, pending_plan, pending_version from subscription where org_id = $1)`, orgId);
  return new Map(found.map((plan) => [planKey(plan.product, plan.code, plan.version), plan]));
}

export function planKey(product: Product, code: string, version: number): string {
  return `${product}:${code}:${version}`;
}

/** Only metrics that some plan prices are summed: the others never make a line. */
function readUses(db: Db, orgId: string, { start, end }: Pick<PeriodRow, 'start' | 'end'>, asOf: Date): Promise<BilledUse[]> {
  return rows<BilledUse>(db, `
    with priced as (select distinct jsonb_object_keys(overage) as metric from plan where overage is not null),
    total as (
      select subscription_id, metric, sum(quantity) as quantity from usage_event
      where org_id = $1 and occurred_at >= $2::timestamptz and occurred_at < $3::timestamptz and received_at <= $4::timestamptz
        and subscription_id is not null and metric in (select metric from priced)
      group by subscription_id, metric)
    select subscription_id as "subscriptionId", metric, trim_scale(quantity)::text as total, exists (
      select 1 from usage_span u where u.org_id = $1 and u.subscription_id = total.subscription_id and u.slot = 'overage'
        and u.span && tstzrange($2::timestamptz, $3::timestamptz, '[)')) as overage from total`, orgId, start, end, asOf);
}

export type TermsRow = { currency: string; taxPercent: string; minInvoiceMinor: bigint; carriedInMinor: bigint; creditMinor: bigint };

/** By what the next invoice of a period is settled: what the last one carried out, and credits no invoice has used. */
export async function readTerms(db: Db, orgId: string, periodStart: Date): Promise<TermsRow> {
  const [row] = await rows<TermsRow>(db, `
    select g.currency, trim_scale(g.tax_percent)::text as "taxPercent", g.min_invoice_minor as "minInvoiceMinor",
      coalesce((select carried_out_minor from invoice where org_id = $1 and status in ('finalized', 'paid') and period_start < $2::timestamptz
        order by period_start desc limit 1), 0)::bigint as "carriedInMinor",
      greatest(coalesce((select -sum(amount_minor) from ledger_entry where org_id = $1 and kind = 'credit'), 0)
        - coalesce((select sum(credit_minor) from invoice where org_id = $1 and status in ('finalized', 'paid')), 0), 0)::bigint as "creditMinor"
    from billing_setting g`, orgId, periodStart);
  if (!row) throw new Error('The plan catalogue was never loaded: ensureCatalogue runs at boot.');
  return row;
}

export type InvoiceRow = {
  id: string; number: string | null; status: InvoiceStatus; periodKey: string; periodStart: Date; periodEnd: Date; currency: string;
  subtotalMinor: bigint; taxMinor: bigint; totalMinor: bigint; carriedInMinor: bigint; creditMinor: bigint; carriedOutMinor: bigint;
  amountDueMinor: bigint; paidMinor: bigint; cutoffAt: Date; finalizedAt: Date | null; dueAt: Date | null; paidAt: Date | null; voidedAt: Date | null;
  providerName: string | null; providerRef: string | null; providerUrl: string | null; providerPushedAt: Date | null; providerError: string | null;
  createdAt: Date; updatedAt: Date;
};
export type LineRow = {
  invoiceId: string; number: number; kind: 'plan' | 'usage' | 'tax'; projectId: string | null; resourceId: string | null; subscriptionId: string | null;
  product: Product | null; plan: string | null; planVersion: number | null; metric: string | null; description: string; quantity: string; unitPrice: string;
  from: Date; to: Date; late: boolean; amountMinor: bigint; basis: { seconds: string; periodSeconds: string } | { total: string; included: string };
};

const columns = `id, number, status, period_key as "periodKey", period_start as "periodStart", period_end as "periodEnd", currency,
  subtotal_minor as "subtotalMinor", tax_minor as "taxMinor", total_minor as "totalMinor", carried_in_minor as "carriedInMinor",
  credit_minor as "creditMinor", carried_out_minor as "carriedOutMinor", amount_due_minor as "amountDueMinor", paid_minor as "paidMinor",
  cutoff_at as "cutoffAt", finalized_at as "finalizedAt", due_at as "dueAt", paid_at as "paidAt", voided_at as "voidedAt",
  provider_name as "providerName", provider_ref as "providerRef", provider_url as "providerUrl", provider_pushed_at as "providerPushedAt",
  provider_error as "providerError", created_at as "createdAt", updated_at as "updatedAt"`;

/** Newest first. */
export function listInvoices(db: Db, { orgId, status }: { orgId: string; status: string | null }, after: PageKey | null, limit: number): Promise<InvoiceRow[]> {
  return rows<InvoiceRow>(db, `select ${columns} from invoice where org_id = $1 and ($2::text is null or status = $2)
    and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4)) order by created_at desc, id desc limit $5`,
  orgId, status, after?.[0] ?? null, after?.[1] ?? null, limit);
}

export async function findInvoice(db: Db, orgId: string, id: string): Promise<InvoiceRow | null> {
  const [row] = await rows<InvoiceRow>(db, `select ${columns} from invoice where id = $1 and org_id = $2`, id, orgId);
  return row ?? null;
}

export function readLines(db: Db, invoiceIds: readonly string[]): Promise<LineRow[]> {
  return rows<LineRow>(db, `
    select invoice_id as "invoiceId", number, kind, project_id as "projectId", resource_id as "resourceId", subscription_id as "subscriptionId", product,
      plan, plan_version as "planVersion", metric, description, quantity, unit_price as "unitPrice", from_at as from, to_at as to, late,
      amount_minor as "amountMinor", basis
    from invoice_line where invoice_id = any($1::text[]) order by invoice_id, number`, invoiceIds);
}
