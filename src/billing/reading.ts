import type { z } from 'zod';
import type { Cursors } from '../core/cursor';
import { notFound } from '../core/errors';
import type { Id } from '../core/ids';
import { readPage, type Page, type PageRequest } from '../core/page';
import type { Db } from '../db/client';
import { estimatesOf, projectStatement } from './invoices';
import { isPerPlan, productOf, refusalOf, sumText } from './rules';
import { metrics, type Metric, type planSchema, type Product, type quotaSchema, type spendLimitSchema, type subscriptionSchema, type usageQuery, type usageSchema } from './schemas';
import { limits } from './service';
import { findInvoice, listInvoices, readLines } from './store/invoices';
import { listLedger, type LedgerRow } from './store/ledger';
import { activePlans } from './store/plans';
import { listCounters } from './store/quotas';
import { findSubscription, listSubscriptions, type SubscriptionRow } from './store/subscriptions';
import { readAccount } from './store/accounts';
import { readUsage, usageAsOf } from './store/usage';
import { viewInvoice, viewPlan, viewSubscription } from './view';

/** Whose rows a caller sees: a project's and the organisation's own, or (below the organisation) all. */
export type Scope = { orgId: Id<'org'>; projectId: Id<'prj'> | null };
type Reading = { db: Db; cursors: Cursors; scope: Scope };

const createdKey = (row: { createdAt: Date; id: string }) => [row.createdAt.toISOString(), row.id];

/** A page of subscriptions, newest first, each with its share of what the running period will cost. */
export async function readSubscriptions(
  { db, cursors, scope }: Reading, filter: { product?: string | undefined; status?: string | undefined; resourceId?: string | undefined }, request: PageRequest,
): Promise<Page<z.input<typeof subscriptionSchema>>> {
  const { product, status, resourceId } = filter;
  const page = await readPage(cursors, ['subscriptions', scope, product, status, resourceId], request, {
    limitDefault: 25, keyOf: createdKey, fetch: (after, limit) => listSubscriptions(db, { ...scope, product, status, resourceId }, after, limit),
  });
  return { ...page, items: await viewSubscriptions(db, scope.orgId, page.items) };
}

/** Errors: `not_found` for an absent and for a foreign one. */
export async function readSubscription(db: Db, scope: Scope, id: string): Promise<z.input<typeof subscriptionSchema>> {
  const row = await findSubscription(db, scope, id);
  const [view] = row ? await viewSubscriptions(db, scope.orgId, [row]) : [];
  if (!view) throw notFound('Subscription');
  return view;
}

async function viewSubscriptions(db: Db, orgId: string, found: readonly SubscriptionRow[]): Promise<z.input<typeof subscriptionSchema>[]> {
  if (found.length === 0) return [];
  const costs = await projectStatement(db, orgId);
  const estimates = estimatesOf(costs);
  return found.map((row) => viewSubscription(row, costs.period, estimates.get(row.id) ?? 0n));
}

/** A page of invoices with their lines, newest first. */
export async function readInvoices({ db, cursors, scope: { orgId } }: Reading, status: string | null, request: PageRequest): Promise<Page<ReturnType<typeof viewInvoice>>> {
  const page = await readPage(cursors, ['invoices', orgId, status], request, {
    limitDefault: 25, keyOf: createdKey, fetch: (after, limit) => listInvoices(db, { orgId, status }, after, limit),
  });
  const lines = await readLines(db, page.items.map((row) => row.id));
  return { ...page, items: page.items.map((row) => viewInvoice(row, lines.filter((line) => line.invoiceId === row.id))) };
}

/** Errors: `not_found` for an absent and for a foreign one. */
export async function readInvoice(db: Db, orgId: string, id: string): Promise<ReturnType<typeof viewInvoice>> {
  const row = await findInvoice(db, orgId, id);
  if (!row) throw notFound('Invoice');
  return viewInvoice(row, await readLines(db, [row.id]));
}

export function readLedger({ db, cursors, scope: { orgId } }: Reading, request: PageRequest): Promise<Page<LedgerRow>> {
  return readPage(cursors, ['ledger', orgId], request, { limitDefault: 25, keyOf: createdKey, fetch: (after, limit) => listLedger(db, orgId, after, limit) });
}

/** Plans on sale, smallest first. */
export async function readPlans(db: Db, product: Product | null): Promise<z.input<typeof planSchema>[]> {
  return (await activePlans(db, product)).map(viewPlan).filter((plan) => plan !== null);
}

export async function readSpendLimit(db: Db, orgId: string): Promise<z.input<typeof spendLimitSchema>> {
  const { spendLimitMinor } = await readAccount(db, orgId);
  const { statement, period } = await projectStatement(db, orgId);
  return { limitMinor: spendLimitMinor === null ? null : Number(spendLimitMinor), committedMinor: Number(statement.totalMinor), periodEnd: period.end.toISOString() };
}

/** Use by hour or by day of the organisation's zone, with the sum of each metric. */
export async function readUse(db: Db, scope: Scope, query: z.output<typeof usageQuery>): Promise<{ usage: z.input<typeof usageSchema>[]; totals: Partial<Record<Metric, string>>; asOf: string | null }> {
  const { metric = null, resourceId = null, granularity } = query;
  const { timeZone } = await readAccount(db, scope.orgId);
  const found = await readUsage(db, { ...scope, from: new Date(query.from), to: new Date(query.to), metric, resourceId, granularity, timeZone });
  const asOf = await usageAsOf(db, scope.orgId);
  const totals = Object.fromEntries(metrics.map((name) => [name, found.filter((row) => row.metric === name).map((row) => row.quantity)] as const)
    .filter(([, quantities]) => quantities.length > 0).map(([name, quantities]) => [name, sumText(quantities)]));
  return { usage: found.map((row) => ({ ...row, start: row.start.toISOString() })), totals, asOf: asOf?.toISOString() ?? null };
}

type Quota = z.input<typeof quotaSchema>;

/** What is counted, with its bounds: for a project also what it has none of yet. */
export async function readQuotas(db: Db, scope: Scope): Promise<Quota[]> {
  const plans = await activePlans(db, null);
  const dns = await limits(db, { orgId: scope.orgId }, 'dns');
  const perPlan = plans.filter((plan) => plan.code !== 'none').flatMap((plan) => Object.entries(plan.limits)
    .filter(([resource]) => isPerPlan(resource)).map(([resource, limit]) => [`${resource}.${plan.code}`, limit] as const));
  const services = plans.find((plan) => plan.product === 'mail')?.limits['mail.services'] ?? null;
  const bounds = new Map<string, number | null>([...perPlan, ['mail.services', services], ['dns.zones', dns['dns.zones'] ?? null]]);
  const counters = new Map((await listCounters(db, scope.orgId, scope.projectId)).map((row) => [`${row.scopeId}\n${row.resource}`, row]));
  const { projectId } = scope;
  if (projectId !== null) {
    for (const resource of bounds.keys()) {
      const key = `${projectId}\n${resource}`;
      if (!counters.has(key)) counters.set(key, { scopeId: projectId, resource, used: 0 });
    }
  }
  const known = [...counters.values()].filter(({ resource }) => /^(mail|dns|gateway|postgres)\./.test(resource));
  return Promise.all(known.map(async ({ scopeId, resource, used }) => ({
    resource, scopeId, used, limit: bounds.has(resource) ? bounds.get(resource) ?? null : await ownLimit(db, scope.orgId, scopeId, resource),
    resetAt: null, enforcement: 'hard' as const, code: refusalOf(resource),
  })));
}

async function ownLimit(db: Db, orgId: string, scopeId: string, resource: string): Promise<number | null> {
  return (await limits(db, { orgId, resourceId: scopeId }, productOf(resource)))[resource] ?? null;
}
