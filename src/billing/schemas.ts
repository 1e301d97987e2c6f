import { z } from 'zod';
import { text, time } from '../core/fields';

export const products = ['mail', 'dns', 'postgres'] as const;
export type Product = (typeof products)[number];

/** Codes of plans a customer may be on; `none` holds what applies to dns without a subscription and is never sold. */
export const planCodes = ['trial', 'starter', 'launch', 'growth', 'business'] as const;
export type PlanCode = (typeof planCodes)[number];

export const subscriptionStatuses = ['trialing', 'active', 'suspended', 'canceled'] as const;
export const invoiceStatuses = ['draft', 'finalized', 'paid', 'void'] as const;
export const accountStatuses = ['current', 'past_due', 'restricted', 'suspended'] as const;
export const ledgerKinds = ['charge', 'payment', 'credit', 'refund', 'adjustment'] as const;
export const metrics = ['mail.recipients', 'dns.queries', 'dns.gateway_requests', 'postgres.storage_gib_hours'] as const;
export type Metric = (typeof metrics)[number];

/** A decimal of any length in a string: no amount is ever a float. */
export const decimalInput = z.string().regex(/^\d{1,15}(\.\d{1,10})?$/, 'must be a decimal in a string, like "0.0006"');
const minor = z.int().meta({ description: 'Smallest units of the currency (ISO 4217 exponent).' });
const numbers = z.record(z.string(), z.int());

export const planSchema = z.strictObject({
  id: z.string(), product: z.enum(products), code: z.enum(planCodes), version: z.int(), displayName: z.string(), currency: z.string(),
  monthlyPrice: z.string(), limits: numbers, included: numbers, overage: z.record(z.string(), z.string()).nullable(),
  activeFrom: time, activeTo: time.nullable(), createdAt: time, updatedAt: time,
}).meta({ id: 'Plan' });

const periodSchema = z.strictObject({ key: z.string().meta({ description: 'Month, like 2026-11.' }), start: time, end: time });

export const subscriptionSchema = z.strictObject({
  id: z.string(), product: z.enum(products), projectId: z.string().nullable(), resourceId: z.string(), plan: z.enum(planCodes), planVersion: z.int(),
  pendingPlan: z.enum(planCodes).nullable(), status: z.enum(subscriptionStatuses), overage: z.boolean(), currentPeriod: periodSchema,
  trialExpiresAt: time.nullable(), startedAt: time.nullable(), canceledAt: time.nullable(),
  estimateMinor: minor.meta({ description: 'What this period will cost if the subscription runs to its end, before tax.' }),
  createdAt: time, updatedAt: time,
}).meta({ id: 'Subscription' });

export const lineSchema = z.strictObject({
  number: z.int(), kind: z.enum(['plan', 'usage', 'tax']), projectId: z.string().nullable(), resourceId: z.string().nullable(),
  subscriptionId: z.string().nullable(), product: z.enum(products).nullable(), plan: z.string().nullable(), planVersion: z.int().nullable(),
  metric: z.string().nullable(), description: z.string(), quantity: z.string(), unitPrice: z.string(), from: time, to: time, late: z.boolean(),
  amountMinor: minor,
  basis: z.union([
    z.strictObject({ seconds: z.number(), periodSeconds: z.number() }),
    z.strictObject({ total: z.string(), included: z.string() }),
  ]),
}).meta({ id: 'InvoiceLine' });

export const invoiceSchema = z.strictObject({
  id: z.string().nullable().meta({ description: 'Null in the preview of a running period.' }), number: z.string().nullable(), status: z.enum(invoiceStatuses),
  period: periodSchema, currency: z.string(), lines: z.array(lineSchema), subtotalMinor: minor, taxMinor: minor, totalMinor: minor,
  carriedInMinor: minor, creditMinor: minor, carriedOutMinor: minor, amountDueMinor: minor, paidMinor: minor,
  cutoffAt: time, finalizedAt: time.nullable(), dueAt: time.nullable(), paidAt: time.nullable(), voidedAt: time.nullable(),
  provider: z.strictObject({
    name: z.string().nullable(), ref: z.string().nullable(), url: z.string().nullable(), pushedAt: time.nullable(), error: z.string().nullable(),
  }),
  createdAt: time, updatedAt: time,
}).meta({ id: 'Invoice' });

export const ledgerEntrySchema = z.strictObject({
  id: z.string(), kind: z.enum(ledgerKinds), amountMinor: minor.meta({ description: 'Positive: owed to us.' }), invoiceId: z.string().nullable(),
  refType: z.string(), refId: z.string(), note: z.string(), createdAt: time, updatedAt: time,
}).meta({ id: 'LedgerEntry' });

export const accountSchema = z.strictObject({
  id: z.string(), provider: z.string(), currency: z.string(), timeZone: z.string(), status: z.enum(accountStatuses), balanceMinor: minor,
  paymentMethod: z.strictObject({ kind: z.string(), last4: z.string() }).nullable(), createdAt: time, updatedAt: time,
}).meta({ id: 'BillingAccount' });

export const quotaSchema = z.strictObject({
  resource: z.string(), scopeId: z.string(), limit: z.int().nullable().meta({ description: 'Null: none.' }), used: z.int(),
  resetAt: time.nullable(), enforcement: z.enum(['hard', 'overage']), code: z.enum(['plan_limit_reached', 'quota_exceeded']),
}).meta({ id: 'Quota' });

export const spendLimitSchema = z.strictObject({
  limitMinor: minor.nullable(), committedMinor: minor.meta({ description: 'This period, running plans projected to its end.' }), periodEnd: time,
}).meta({ id: 'SpendLimit' });

export const usageSchema = z.strictObject({ metric: z.enum(metrics), resourceId: z.string(), start: time, quantity: z.string() }).meta({ id: 'Usage' });

export const plansQuery = z.object({ product: z.enum(products).optional() });
export const subscriptionsQuery = z.object({
  product: z.enum(products).optional(), status: z.enum(subscriptionStatuses).optional(), resourceId: text.max(64).optional(),
});
export const invoicesQuery = z.object({ status: z.enum(invoiceStatuses).optional() });
const instant = z.iso.datetime();
const dayMs = 86_400_000;
const usageDaysMax = { day: 92, hour: 8 } as const;
export const usageQuery = z.object({
  from: instant, to: instant.meta({ description: 'At most 92 days after `from`; by the hour 8.' }), metric: z.enum(metrics).optional(), resourceId: text.max(64).optional(),
  granularity: z.enum(['hour', 'day']).default('day'),
}).superRefine(({ from, to, granularity }, context) => {
  const days = (Date.parse(to) - Date.parse(from)) / dayMs;
  if (days <= 0) context.addIssue({ code: 'custom', path: ['to'], message: 'must be after from' });
  if (days > usageDaysMax[granularity]) context.addIssue({ code: 'custom', path: ['to'], message: `must be at most ${usageDaysMax[granularity]} days after from` });
});
export const changePreviewSchema = z.strictObject({
  linesBefore: z.array(lineSchema), linesAfter: z.array(lineSchema),
  differenceMinor: minor.meta({ description: 'What the running period will cost more, with tax, if the change is made now.' }),
  conflicts: z.array(z.strictObject({ resource: z.string(), scopeId: z.string(), used: z.int(), limit: z.int() })),
}).meta({ id: 'PlanChangePreview' });

export const overageBody = z.strictObject({ overage: z.boolean() });
export const spendLimitBody = z.strictObject({ limitMinor: z.int().min(0, 'must not be negative').max(1_000_000_000_000_000).nullable() });
export const changePlanBody = z.strictObject({ plan: z.enum(planCodes), dryRun: z.boolean().optional() });


const whole = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
const plannedPlan = z.strictObject({
  product: z.enum(products),
  code: z.enum([...planCodes, 'none']).meta({ description: '`none`: limits of dns without a subscription; never sold.' }),
  displayName: z.string().min(1).max(80),
  monthlyPrice: decimalInput,
  /** Resource → bound; a resource that is absent has none. */
  limits: z.record(z.string().regex(/^[a-z]+\.[a-z_]+$/), whole),
  included: z.partialRecord(z.enum(metrics), whole).default({}),
  /** Metric → price of one unit beyond what is included; null: nothing beyond it. */
  overage: z.partialRecord(z.enum(metrics), decimalInput).nullable().default(null),
});

export const catalogueSchema = z.array(plannedPlan).superRefine((plans, context) => {
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
