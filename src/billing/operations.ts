import { z } from 'zod';
import type { Cause, OrgCaller, ProjectCaller } from '../core/caller';
import type { Tx } from '../db/transaction';
import { pageAnswer, pageQuery } from '../core/page';
import { operationsOf, orgPrefix, Reply, type RateRule } from '../http/operation';
import { operationSchema, viewOperation } from '../operations/view';
import { acceptPlanChange, previewPlanChange } from './change-plan';
import { previewStatement } from './invoices';
import { refreshCeilings } from './mail-usage';
import { applyEvent, receiveEvent } from './provider-events';
import { readInvoice, readInvoices, readLedger, readPlans, readQuotas, readSpendLimit, readSubscription, readSubscriptions, readUse, type Scope } from './reading';
import {
  accountSchema, changePlanBody, changePreviewSchema, invoiceSchema, invoicesQuery, ledgerEntrySchema, metrics, overageBody, planSchema, plansQuery, quotaSchema,
  spendLimitBody, spendLimitSchema, subscriptionSchema, subscriptionsQuery, usageQuery, usageSchema,
} from './schemas';
import { switchOverage, type BillingDeps } from './service';
import { readAccount, writeSpendLimit } from './store/accounts';
import { viewAccount, viewLedgerEntry, viewPreview } from './view';

export type { BillingDeps } from './service';

const { project, signed } = operationsOf<BillingDeps>();
const tag = 'Billing';

/** `{P}/billing/…`, and the same without a project: what belongs to the organisation answers alike under both. */
function at<const Path extends string>(path: Path) {
  return { path: `/billing${path}`, aliases: [`${orgPrefix}/billing${path}`], tag } as const;
}

const listPlans = project('billing:read')({
  id: 'listPlans', method: 'get', ...at('/plans'), summary: 'List the plans on sale', query: plansQuery, answer: z.object({ plans: z.array(planSchema), ...pageAnswer }),
  handle: async ({ deps, query }) => ({ plans: await readPlans(deps.db.prisma, query.product ?? null), ...whole }),
});

const listQuotas = project('billing:read')({
  id: 'listQuotas', method: 'get', ...at('/quotas'), summary: 'List what is counted, and its limits', answer: z.object({ quotas: z.array(quotaSchema), ...pageAnswer }),
  handle: async ({ deps, caller }) => ({ quotas: await readQuotas(deps.db.prisma, scopeOf(caller)), ...whole }),
});

const listSubscriptions = project('billing:read')({
  id: 'listSubscriptions', method: 'get', ...at('/subscriptions'), summary: 'List subscriptions, newest first', query: subscriptionsQuery.extend(pageQuery),
  answer: z.object({ subscriptions: z.array(subscriptionSchema), ...pageAnswer }),
  async handle({ deps, caller, query }) {
    const { items, ...page } = await readSubscriptions(reading(deps, caller), query, query);
    return { subscriptions: items, ...page };
  },
});

const getSubscription = project('billing:read')({
  id: 'getSubscription', method: 'get', ...at('/subscriptions/:subscriptionId'), summary: 'Read a subscription', answer: z.object({ subscription: subscriptionSchema }),
  handle: async ({ deps, caller, params }) => ({ subscription: await readSubscription(deps.db.prisma, scopeOf(caller), params.subscriptionId) }),
});

const updateSubscription = project('billing:plans')({
  id: 'updateSubscription', method: 'patch', ...at('/subscriptions/:subscriptionId'), summary: 'Switch paying beyond the included amount on or off',
  body: overageBody, answer: z.object({ subscription: subscriptionSchema }), errors: ['invalid_state'],
  handle: ({ deps, caller, params, body, cause, transact }) => transact(async (tx) => {
    const before = await switchOverage(tx, scopeOf(caller), params.subscriptionId, body.overage);
    await refreshCeilings(tx, before.orgId);
    audit(deps, tx, { caller, cause }, { target: { type: 'subscription', id: before.id }, changes: [{ field: 'overage', from: before.overage, to: body.overage }] });
    return { subscription: await readSubscription(tx, scopeOf(caller), before.id) };
  }),
});

const changePlan = project('billing:plans')({
  id: 'changePlan', method: 'post', ...at('/subscriptions/:subscriptionId/change-plan'), summary: 'Move a subscription to another plan', status: 202, idempotent: true,
  description: 'With `dryRun` nothing changes and the answer (200) is the preview of what the running period would cost.',
  body: changePlanBody,
  answer: z.object({ subscription: subscriptionSchema.optional(), operation: operationSchema.optional(), preview: changePreviewSchema.optional() }),
  errors: ['invalid_state', 'plan_limit_reached', 'payment_required', 'spend_limit_reached', 'quota_exceeded'],
  limits: ({ deps, params }) => [{ rule: { name: 'change-plan', limit: deps.config.RATE_CHANGE_PLAN_PER_HOUR, periodSeconds: 3_600 }, key: params.subscriptionId }],
  handle: ({ deps, caller, params, body, cause, transact }) => transact(async (tx) => {
    const change = { ...scopeOf(caller), subscriptionId: params.subscriptionId, plan: body.plan };
    if (body.dryRun) return new Reply({ preview: await previewPlanChange(tx, change) }, { status: 200 });
    const { before, operation } = await acceptPlanChange(tx, change, { cause, products: deps.changePlan, ...deps.lockForChange && { lock: deps.lockForChange } });
    audit(deps, tx, { caller, cause }, { target: { type: 'subscription', id: before.id }, changes: [{ field: 'plan', from: before.plan, to: body.plan }] });
    const subscription = await readSubscription(tx, scopeOf(caller), before.id);
    return new Reply({ subscription, operation: viewOperation(operation) }, { headers: { Location: addressOf(caller, `/subscriptions/${before.id}`) } });
  }),
});

const listUsage = project('billing:read')({
  id: 'listUsage', method: 'get', ...at('/usage'), summary: 'Read use by hour or day', query: usageQuery,
  description: 'Days are those of the organisation\'s time zone.',
  answer: z.object({ usage: z.array(usageSchema), totals: z.partialRecord(z.enum(metrics), z.string()), asOf: z.iso.datetime().nullable(), ...pageAnswer }),
  limits: ({ deps, caller }) => [{ rule: perMinute('usage', deps), key: caller.org.id }],
  handle: async ({ deps, caller, query }) => ({ ...await readUse(deps.db.prisma, scopeOf(caller), query), ...whole }),
});

const previewInvoice = project('billing:invoices')({
  id: 'previewInvoice', method: 'get', ...at('/invoices/preview'), summary: 'Show the running period as the invoice it would be now',
  answer: z.object({ invoice: invoiceSchema, asOf: z.iso.datetime() }),
  limits: ({ deps, caller }) => [{ rule: perMinute('invoice-preview', deps), key: caller.org.id }],
  async handle({ deps, caller }) {
    const costs = await previewStatement(deps.db.prisma, caller.org.id);
    const cutoffAt = new Date(costs.period.end.getTime() + deps.config.BILLING_GRACE_HOURS * 3_600_000);
    return { invoice: viewPreview(costs, cutoffAt), asOf: costs.asOf.toISOString() };
  },
});

const listInvoices = project('billing:invoices')({
  id: 'listInvoices', method: 'get', ...at('/invoices'), summary: 'List invoices, newest first', query: invoicesQuery.extend(pageQuery),
  answer: z.object({ invoices: z.array(invoiceSchema), ...pageAnswer }),
  async handle({ deps, caller, query }) {
    const { items, ...page } = await readInvoices(reading(deps, caller), query.status ?? null, query);
    return { invoices: items, ...page };
  },
});

const getInvoice = project('billing:invoices')({
  id: 'getInvoice', method: 'get', ...at('/invoices/:invoiceId'), summary: 'Read an invoice', answer: z.object({ invoice: invoiceSchema }),
  handle: async ({ deps, caller, params }) => ({ invoice: await readInvoice(deps.db.prisma, caller.org.id, params.invoiceId) }),
});

const listLedgerEntries = project('billing:invoices')({
  id: 'listLedgerEntries', method: 'get', ...at('/ledger'), summary: 'List what was charged and paid, newest first', query: z.object(pageQuery),
  answer: z.object({ ledgerEntries: z.array(ledgerEntrySchema), ...pageAnswer }),
  async handle({ deps, caller, query }) {
    const { items, ...page } = await readLedger(reading(deps, caller), query);
    return { ledgerEntries: items.map(viewLedgerEntry), ...page };
  },
});

const getBillingAccount = project('billing:invoices')({
  id: 'getBillingAccount', method: 'get', ...at('/account'), summary: 'Read the account of the organisation', answer: z.object({ account: accountSchema }),
  handle: async ({ deps, caller }) => ({ account: viewAccount(await readAccount(deps.db.prisma, caller.org.id)) }),
});

const getSpendLimit = project('billing:invoices')({
  id: 'getSpendLimit', method: 'get', ...at('/spend-limit'), summary: 'Read the spend limit and what is committed', answer: z.object({ spendLimit: spendLimitSchema }),
  handle: async ({ deps, caller }) => ({ spendLimit: await readSpendLimit(deps.db.prisma, caller.org.id) }),
});

const setSpendLimit = project('billing:manage')({
  id: 'setSpendLimit', method: 'put', ...at('/spend-limit'), summary: 'Set or lift the spend limit', body: spendLimitBody, answer: z.object({ spendLimit: spendLimitSchema }),
  description: 'Running services never stop; new ones and upgrades that would commit more are refused.',
  handle: ({ deps, caller, body, cause, transact }) => transact(async (tx) => {
    const before = await readSpendLimit(tx, caller.org.id);
    await writeSpendLimit(tx, caller.org.id, body.limitMinor);
    await refreshCeilings(tx, caller.org.id);
    audit(deps, tx, { caller, cause }, { target: { type: 'billingAccount', id: caller.org.id }, changes: [{ field: 'limitMinor', from: before.limitMinor, to: body.limitMinor }] });
    return { spendLimit: { ...before, limitMinor: body.limitMinor } };
  }),
});

const receiveBillingEvent = signed({
  id: 'receiveBillingEvent', method: 'post', path: '/api/billing/provider-events/:provider', summary: 'Take an event of the payment provider', tag,
  description: 'The ledger takes Standard Webhooks of `payment.recorded`, `payment.failed` and `credit.granted`. An event has its effect once, in whatever order and however often it comes.',
  bodyMaxBytes: 1_048_576, answer: z.object({ received: z.literal(true), duplicate: z.boolean() }), errors: ['not_found', 'invalid_json'],
  async handle({ deps, params: { provider }, request, transact }) {
    const { billingProvider, config, clock } = deps;
    const event = receiveEvent(billingProvider, config.LEDGER_WEBHOOK_SECRETS, { provider, raw: request.rawBody, headers: request.headers, now: clock.now() });
    return transact(async (tx) => ({ received: true as const, ...await applyEvent(tx, provider, event) }));
  },
});

/** `preview` stands before `:invoiceId`: the router takes the first that fits. */
export const billingOperations = [
  listPlans, listQuotas, listSubscriptions, getSubscription, updateSubscription, changePlan, listUsage, previewInvoice, listInvoices, getInvoice,
  listLedgerEntries, getBillingAccount, getSpendLimit, setSpendLimit, receiveBillingEvent,
];

const whole = { nextCursor: null, hasMore: false };

type Member = OrgCaller | ProjectCaller;

function scopeOf(caller: Member): Scope {
  return { orgId: caller.org.id, projectId: 'project' in caller ? caller.project.id : null };
}

function reading(deps: BillingDeps, caller: Member) {
  return { db: deps.db.prisma, cursors: deps.cursors, scope: scopeOf(caller) };
}

function perMinute(name: string, { config }: BillingDeps): RateRule {
  return { name, limit: config.RATE_USAGE_PER_MINUTE, periodSeconds: 60 };
}

function addressOf(caller: Member, path: string): string {
  const inProject = 'project' in caller ? `/projects/${caller.project.slug}` : '';
  return `/v1/api/orgs/${caller.org.slug}${inProject}/billing${path}`;
}

function audit(
  { appendAudit }: BillingDeps, tx: Tx, { caller, cause }: { caller: Member; cause: Cause },
  changed: { target: { type: string; id: string }; changes: readonly { field: string; from: unknown; to: unknown }[] },
): void {
  appendAudit(tx, { orgId: caller.org.id, projectId: scopeOf(caller).projectId, cause, outcome: 'done', ...changed });
}
