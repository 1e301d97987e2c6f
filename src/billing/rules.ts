import type { Product } from './schemas';

/**
 * What is owed and why (contract billing.md §4). Pure, and exact: every amount is a rational of BigInts until its line is
 * rounded, once. `number` does no arithmetic in this file; a lint rule keeps it so. Instants and durations are
 * milliseconds.
 */
export type Rational = { readonly n: bigint; readonly d: bigint };

/** ISO 4217: currencies whose exponent is not 2. */
const exponents: Readonly<Record<string, bigint>> = {
  BIF: 0n, CLP: 0n, DJF: 0n, GNF: 0n, ISK: 0n, JPY: 0n, KMF: 0n, KRW: 0n, PYG: 0n, RWF: 0n, UGX: 0n, VND: 0n, VUV: 0n, XAF: 0n, XOF: 0n, XPF: 0n,
  BHD: 3n, IQD: 3n, JOD: 3n, KWD: 3n, LYD: 3n, OMR: 3n, TND: 3n,
};

/** Digits between the unit of a currency and its smallest unit. */
export function exponentOf(currency: string): bigint {
  return exponents[currency] ?? 2n;
}

/** The exact value of a decimal in a string. Errors: anything but `-?digits[.digits]`. */
export function decimal(text: string): Rational {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
  if (!match) throw new Error('A decimal has an unknown form.');
  const [, sign = '', whole = '', fraction = ''] = match;
  const n = BigInt(whole + fraction);
  return { n: sign === '-' ? -n : n, d: 10n ** BigInt(fraction.length) };
}

/** A rational as a decimal with at most `digits` places, half away from zero, without trailing zeros. */
export function decimalText(value: Rational, digits = 10n): string {
  const scale = 10n ** digits;
  const scaled = round({ n: value.n * scale, d: value.d });
  const fraction = (magnitude(scaled) % scale + scale).toString().replace(/^1/, '').replace(/0+$/, '');
  return `${scaled < 0n ? '-' : ''}${magnitude(scaled) / scale}${fraction === '' ? '' : `.${fraction}`}`;
}

/** The exact sum of decimals, as one. */
export function sumText(values: readonly string[]): string {
  const sum = values.map(decimal).reduce((a, b) => ({ n: a.n * b.d + b.n * a.d, d: a.d * b.d }), { n: 0n, d: 1n });
  return decimalText(sum);
}

/** The nearest integer, half away from zero. */
export function round({ n, d }: Rational): bigint {
  const doubled = (magnitude(n) * 2n + d) / (d * 2n);
  return n < 0n ? -doubled : doubled;
}

function magnitude(n: bigint): bigint {
  return n < 0n ? -n : n;
}

/** Smallest units of the currency: unit price x quantity, rounded once. */
export function amountMinor(unitPrice: Rational, quantity: Rational, exponent: bigint): bigint {
  return round({ n: unitPrice.n * quantity.n * 10n ** exponent, d: unitPrice.d * quantity.d });
}

/** A version of a plan, as far as it decides money. */
export type PricedPlan = {
  product: Product; code: string; version: number; displayName: string; monthlyPrice: string;
  included: Readonly<Record<string, number>>; overage: Readonly<Record<string, string>> | null;
};
/** Time on a plan, half-open. */
export type BilledSpan = { subscriptionId: string; projectId: string | null; resourceId: string; plan: PricedPlan; from: bigint; to: bigint };
/** Use of a metric over the period; `overage`: whether paying beyond the included amount was on at any time of it. */
export type BilledUse = { subscriptionId: string; metric: string; total: string; overage: boolean };
export type Period = { key: string; start: bigint; end: bigint };
export type Terms = { currency: string; taxPercent: string; minInvoiceMinor: bigint; carriedInMinor: bigint; creditMinor: bigint };

export type Line = {
  kind: 'plan' | 'usage' | 'tax'; projectId: string | null; resourceId: string | null; subscriptionId: string | null; product: Product | null;
  plan: string | null; planVersion: number | null; metric: string | null; description: string; quantity: string; unitPrice: string;
  from: bigint; to: bigint; late: boolean; amountMinor: bigint;
  basis: { seconds: string; periodSeconds: string } | { total: string; included: string };
};
export type Statement = {
  lines: Line[]; subtotalMinor: bigint; taxMinor: bigint; totalMinor: bigint; carriedInMinor: bigint; creditMinor: bigint;
  carriedOutMinor: bigint; amountDueMinor: bigint;
};

/**
 * The invoice of a period. The preview of a running one is this same function with what has been used so far.
 * Spans may be in any order and pieces; they are cut to the period.
 */
export function composeStatement(period: Period, spans: readonly BilledSpan[], uses: readonly BilledUse[], terms: Terms): Statement {
  const exponent = exponentOf(terms.currency);
  const bySubscription = groupBySubscription(period, spans);
  const plans = [...bySubscription.values()].flatMap((stays) => planLines(period, stays, exponent));
  const used = uses.flatMap((use) => usageLine(period, bySubscription.get(use.subscriptionId) ?? [], use, exponent));
  const lines = [...plans, ...used].sort(byPlace);
  const subtotalMinor = lines.reduce((sum, line) => sum + line.amountMinor, 0n);
  const tax = taxLine(period, subtotalMinor, terms, exponent);
  const taxMinor = tax.reduce((sum, line) => sum + line.amountMinor, 0n);
  return { lines: [...lines, ...tax], subtotalMinor, taxMinor, ...settlement(subtotalMinor + taxMinor, terms) };
}

/** Time on one plan version by one subscription: what a plan line stands for. */
type Stay = BilledSpan & { ms: bigint };

function groupBySubscription(period: Period, spans: readonly BilledSpan[]): Map<string, Stay[]> {
  const groups = new Map<string, Stay[]>();
  for (const span of spans) {
    const from = later(span.from, period.start);
    const to = earlier(span.to, period.end);
    if (from >= to) continue;
    const stays = groups.get(span.subscriptionId) ?? [];
    groups.set(span.subscriptionId, stays);
    const same = stays.find((stay) => stay.plan.code === span.plan.code && stay.plan.version === span.plan.version);
    if (!same) stays.push({ ...span, from, to, ms: to - from });
    else Object.assign(same, { from: earlier(same.from, from), to: later(same.to, to), ms: same.ms + (to - from) });
  }
  return groups;
}

function planLines(period: Period, stays: readonly Stay[], exponent: bigint): Line[] {
  const length = period.end - period.start;
  return stays.filter((stay) => decimal(stay.plan.monthlyPrice).n !== 0n).map((stay) => ({
    ...placeOf(stay), kind: 'plan', metric: null, description: `${stay.plan.displayName} plan, ${stay.plan.product}`,
    quantity: decimalText({ n: stay.ms, d: length }, 6n), unitPrice: stay.plan.monthlyPrice, from: stay.from, to: stay.to, late: false,
    amountMinor: amountMinor(decimal(stay.plan.monthlyPrice), { n: stay.ms, d: length }, exponent),
    basis: { seconds: secondsText(stay.ms), periodSeconds: secondsText(length) },
  }));
}

function usageLine(period: Period, stays: readonly Stay[], use: BilledUse, exponent: bigint): Line[] {
  const last = stays.reduce<Stay | null>((latest, stay) => (latest === null || stay.to > latest.to ? stay : latest), null);
  const unitPrice = last?.plan.overage?.[use.metric];
  if (!use.overage || !last || unitPrice === undefined || decimal(unitPrice).n === 0n) return [];
  const included = includedIn(stays, use.metric);
  const total = decimal(use.total);
  const beyond = { n: total.n - included * total.d, d: total.d };
  if (beyond.n <= 0n) return [];
  return [{
    ...placeOf(last), kind: 'usage', metric: use.metric, description: `${use.metric} beyond ${included} included`,
    quantity: decimalText(beyond), unitPrice, from: period.start, to: period.end, late: false,
    amountMinor: amountMinor(decimal(unitPrice), beyond, exponent), basis: { total: decimalText(total), included: included.toString() },
  }];
}

/** floor(sum(included x time) / sum(time)) over the plans of the period. */
export function includedIn(stays: readonly Pick<Stay, 'plan' | 'ms'>[], metric: string): bigint {
  const time = stays.reduce((sum, { ms }) => sum + ms, 0n);
  if (time === 0n) return 0n;
  return stays.reduce((sum, { plan, ms }) => sum + BigInt(plan.included[metric] ?? 0) * ms, 0n) / time;
}

/** What the plans a subscription has time on in the period include of a metric. */
export function includedOf(period: Period, spans: readonly BilledSpan[], { subscriptionId, metric }: { subscriptionId: string; metric: string }): bigint {
  return includedIn(groupBySubscription(period, spans).get(subscriptionId) ?? [], metric);
}

/** The most that can be added to a subtotal so that it and its tax stay within the limit; 0 when nothing can. */
export function leftBeforeTax(limitMinor: bigint, subtotalMinor: bigint, taxPercent: string): bigint {
  const percent = decimal(taxPercent);
  const whole = percent.d * 100n;
  const withTax = (subtotal: bigint) => subtotal + round({ n: subtotal * percent.n, d: whole });
  let most = (limitMinor * whole) / (whole + percent.n);
  while (withTax(most + 1n) <= limitMinor) most += 1n;
  while (most > 0n && withTax(most) > limitMinor) most -= 1n;
  return later(most - subtotalMinor, 0n);
}

/**
 * How many more one of `sharers` may use of what costs `unitPrice` each, so that all of them together stay within what is
 * left: each has whole smallest units of the currency, so that no rounding of their lines adds up to more.
 */
export function shareOf({ leftMinor, sharers, unitPrice, currency }: { leftMinor: bigint; sharers: bigint; unitPrice: string; currency: string }): bigint {
  const price = decimal(unitPrice);
  return (leftMinor / sharers) * price.d / (price.n * 10n ** exponentOf(currency));
}

/** Uses of which some are known by a counter too: the greater total of each. */
export function withCounted(uses: readonly BilledUse[], counted: readonly BilledUse[]): BilledUse[] {
  const nameOf = ({ subscriptionId, metric }: BilledUse) => `${subscriptionId} ${metric}`;
  const known = new Map(uses.map((use) => [nameOf(use), use]));
  for (const use of counted) {
    const stored = known.get(nameOf(use));
    if (!stored || isLess(decimal(stored.total), decimal(use.total))) known.set(nameOf(use), use);
  }
  return [...known.values()];
}

function isLess(a: Rational, b: Rational): boolean {
  return a.n * b.d < b.n * a.d;
}

function taxLine(period: Period, subtotalMinor: bigint, terms: Terms, exponent: bigint): Line[] {
  const percent = decimal(terms.taxPercent);
  if (percent.n === 0n || subtotalMinor === 0n) return [];
  const subtotal = { n: subtotalMinor, d: 10n ** exponent };
  const share = { n: percent.n, d: percent.d * 100n };
  return [{
    kind: 'tax', projectId: null, resourceId: null, subscriptionId: null, product: null, plan: null, planVersion: null, metric: null,
    description: `Tax ${decimalText(percent)} %`, quantity: decimalText(subtotal), unitPrice: decimalText(share), from: period.start, to: period.end,
    late: false, amountMinor: amountMinor(share, subtotal, exponent), basis: { total: decimalText(subtotal), included: '0' },
  }];
}

/** Credits lower what is due, not the total; below the least sum nothing is due and all is carried to the next invoice. */
function settlement(totalMinor: bigint, terms: Terms): Omit<Statement, 'lines' | 'subtotalMinor' | 'taxMinor'> {
  const { carriedInMinor } = terms;
  const owed = totalMinor + carriedInMinor;
  const creditMinor = earlier(terms.creditMinor, later(owed, 0n));
  const rest = owed - creditMinor;
  const due = rest >= terms.minInvoiceMinor && rest > 0n;
  return { totalMinor, carriedInMinor, creditMinor, carriedOutMinor: due ? 0n : rest, amountDueMinor: due ? rest : 0n };
}

function placeOf({ projectId, resourceId, subscriptionId, plan }: Stay): Pick<Line, 'projectId' | 'resourceId' | 'subscriptionId' | 'product' | 'plan' | 'planVersion'> {
  return { projectId, resourceId, subscriptionId, product: plan.product, plan: plan.code, planVersion: plan.version };
}

/** The order of lines is a function of what they say, never of how rows came back. */
function byPlace(a: Line, b: Line): -1 | 1 {
  return placeKey(a) < placeKey(b) ? -1 : 1;
}

function placeKey(line: Line): string {
  return [line.product, line.resourceId, line.subscriptionId, line.kind, line.from.toString().padStart(16, '0'), line.plan, line.planVersion, line.metric].join('\n');
}

/** Seconds of a duration, to the millisecond. */
export function secondsText(ms: bigint): string {
  return decimalText({ n: ms, d: 1_000n }, 3n);
}

export function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** Plan time of mail and dns begins when they are made, of postgres when it is first usable. */
export function startsAtCreation(product: Product): boolean {
  return product !== 'postgres';
}

/** Service-days of trial a project has in all. */
export const trialDaysMax = 42;

/** The counter of a resource: Postgres services are counted plan by plan, everything else by itself. */
export function counterName(resource: string, plan: string | undefined): string {
  return isPerPlan(resource) && plan !== undefined ? `${resource}.${plan}` : resource;
}

export function isPerPlan(resource: string): boolean {
  return resource === 'postgres.services';
}

/** The product whose plan bounds a resource: the gateway's numbers stand in the plans of dns. */
export function productOf(resource: string): Product {
  if (resource.startsWith('mail.')) return 'mail';
  return resource.startsWith('postgres.') ? 'postgres' : 'dns';
}

/** How a count that is full is refused (contract billing.md §4; dns.md §8, gateway.md §8). */
export function refusalOf(resource: string): 'plan_limit_reached' | 'quota_exceeded' {
  return productOf(resource) === 'dns' ? 'quota_exceeded' : 'plan_limit_reached';
}
