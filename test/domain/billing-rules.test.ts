import fc from 'fast-check';
import { amountMinor, composeStatement, decimal, decimalText, exponentOf, includedIn, round, sumText, type BilledSpan, type BilledUse, type PricedPlan, type Terms } from '../../src/billing/rules';

const runs = { numRuns: 300 };
const terms: Terms = { currency: 'USD', taxPercent: '0', minInvoiceMinor: 0n, carriedInMinor: 0n, creditMinor: 0n };
const plan = (code: string, monthlyPrice: string, more: Partial<PricedPlan> = {}): PricedPlan => ({
  product: 'mail', code, version: 1, displayName: code, monthlyPrice, included: {}, overage: null, ...more,
});
const period = { key: '2026-11', start: 1_000_000n, end: 1_000_000n + 30n * 86_400_000n };
const span = (from: bigint, to: bigint, of: PricedPlan, subscriptionId = 'sub_a'): BilledSpan => ({ subscriptionId, projectId: 'prj_a', resourceId: 'mls_a', plan: of, from, to });

/** The same sum without rationals: a price in 10^-10 units, multiplied out and divided once at the end. */
function modelMinor(price: string, ms: bigint, length: bigint, exponent: bigint): bigint {
  const [whole = '0', fraction = ''] = price.split('.');
  const scaled = BigInt(whole + fraction.padEnd(10, '0')) * ms * 10n ** exponent;
  const unit = 10n ** 10n * length;
  const down = scaled / unit;
  return (scaled % unit) * 2n >= unit ? down + 1n : down;
}

const price = fc.tuple(fc.bigInt(0n, 10n ** 15n), fc.bigInt(0n, 10n ** 10n - 1n)).map(([whole, fraction]) => `${whole}.${fraction.toString().padStart(10, '0')}`);
const cut = fc.bigInt(0n, period.end - period.start);

test('half a month of a 19 dollar plan is 9.50 dollars', () => {
  const half = (period.end - period.start) / 2n;
  const { lines, totalMinor } = composeStatement(period, [span(period.start, period.start + half, plan('launch', '19'))], [], terms);
  expect(totalMinor).toBe(950n);
  expect(lines).toMatchObject([{ kind: 'plan', plan: 'launch', planVersion: 1, quantity: '0.5', unitPrice: '19', amountMinor: 950n, basis: { seconds: '1296000', periodSeconds: '2592000' } }]);
});

test.each([['JPY', 0n], ['USD', 2n], ['KWD', 3n]])('%s amounts are exact to the last unit, up to 10^15', (currency, exponent) => {
  fc.assert(fc.property(price, cut, (monthlyPrice, ms) => {
    const { totalMinor } = composeStatement(period, [span(period.start, period.start + ms, plan('x', monthlyPrice))], [], { ...terms, currency });
    expect(totalMinor).toBe(ms === 0n ? 0n : modelMinor(monthlyPrice, ms, period.end - period.start, exponent));
    expect(exponentOf(currency)).toBe(exponent);
  }), runs);
});

test('half is rounded away from zero, also below it', () => {
  expect([5n, 15n, 25n, -5n, -15n, 4n, -4n].map((n) => round({ n, d: 10n }))).toEqual([1n, 2n, 3n, -1n, -2n, 0n, 0n]);
});

test('decimals survive the way through a rational', () => {
  fc.assert(fc.property(price, (text) => {
    const [before, after] = [decimal(text), decimal(decimalText(decimal(text)))];
    expect(before.n * after.d).toBe(after.n * before.d);
  }), runs);
  expect(['0.0006', '19', '0.10', '-2.50', '0'].map((text) => decimalText(decimal(text)))).toEqual(['0.0006', '19', '0.1', '-2.5', '0']);
  expect(() => decimal('1e3')).toThrow();
  expect(sumText(['0.1', '0.2', '3'])).toBe('3.3');
});

test('however a span is cut into pieces and shuffled, the statement is the same', () => {
  fc.assert(fc.property(fc.array(cut, { maxLength: 8 }), fc.bigInt(1n, 10n ** 6n), fc.integer(), (cuts, cents, seed) => {
    const of = plan('launch', decimalText({ n: cents, d: 100n }));
    const at = [0n, ...cuts, period.end - period.start].sort((a, b) => (a < b ? -1 : 1)).map((offset) => period.start + offset);
    const pieces = at.slice(1).map((to, i) => span(at[i] ?? to, to, of)).sort((a, b) => (Number(a.from) * seed) % 7 - (Number(b.from) * seed) % 7);
    expect(composeStatement(period, pieces, [], terms)).toEqual(composeStatement(period, [span(period.start, period.end, of)], [], terms));
  }), runs);
});

test('the parts of a split period cost unrounded what the whole costs', () => {
  fc.assert(fc.property(cut, price, (offset, monthlyPrice) => {
    const { n, d } = decimal(monthlyPrice);
    const share = (ms: bigint) => ({ n: n * ms, d: d * (period.end - period.start) });
    const [left, right] = [share(offset), share(period.end - period.start - offset)];
    expect((left.n + right.n) * d).toBe(n * left.d);
  }), runs);
});

test('time outside the period costs nothing', () => {
  const of = plan('launch', '19');
  const long = span(period.start - 10n ** 10n, period.end + 10n ** 10n, of);
  expect(composeStatement(period, [long], [], terms).totalMinor).toBe(1_900n);
  expect(composeStatement(period, [span(period.end, period.end + 1n, of)], [], terms).lines).toEqual([]);
});

test('a free plan makes no line, and no lines make nothing due', () => {
  const statement = composeStatement(period, [span(period.start, period.end, plan('launch', '0'))], [], { ...terms, taxPercent: '19' });
  expect(statement).toMatchObject({ lines: [], totalMinor: 0n, amountDueMinor: 0n });
});

const priced = (code: string, included: number, unitPrice: string) => plan(code, '49', { included: { 'mail.recipients': included }, overage: { 'mail.recipients': unitPrice } });
const use = (total: string, overage = true): BilledUse => ({ subscriptionId: 'sub_a', metric: 'mail.recipients', total, overage });

test('use beyond the included amount is charged at the price of the last plan, and what is included weighs the time of each', () => {
  const middle = period.start + (period.end - period.start) / 2n;
  const spans = [span(period.start, middle, priced('growth', 100_000, '0.0006')), span(middle, period.end, priced('business', 1_000_000, '0.0003'))];
  const { lines } = composeStatement(period, spans, [use('560000')], terms);
  expect(lines.filter((line) => line.kind === 'usage')).toMatchObject([{ plan: 'business', unitPrice: '0.0003', quantity: '10000', amountMinor: 300n, basis: { total: '560000', included: '550000' } }]);
});

test('use is free up to the included amount, and without overage altogether', () => {
  const spans = [span(period.start, period.end, priced('growth', 100_000, '0.0006'))];
  for (const uses of [[use('100000')], [use('200000', false)], []]) expect(composeStatement(period, spans, uses, terms).lines).toHaveLength(1);
});

test('the included amount lies between the smallest and the largest of the plans, rounded down', () => {
  fc.assert(fc.property(fc.array(fc.record({ included: fc.integer({ min: 0, max: 10 ** 6 }), ms: fc.bigInt(1n, 10n ** 9n) }), { minLength: 1, maxLength: 5 }), (stays) => {
    const included = includedIn(stays.map(({ included: n, ms }) => ({ plan: plan('x', '1', { included: { m: n } }), ms })), 'm');
    expect(included >= BigInt(Math.min(...stays.map((stay) => stay.included)))).toBe(true);
    expect(included <= BigInt(Math.max(...stays.map((stay) => stay.included)))).toBe(true);
  }), runs);
});

test('tax is one line on the subtotal, and the total is the sum of the lines', () => {
  fc.assert(fc.property(fc.array(fc.tuple(cut, fc.integer({ min: 0, max: 10 ** 6 })), { maxLength: 6 }), fc.integer({ min: 0, max: 4_000 }), (parts, hundredths) => {
    const spans = parts.map(([ms, cents], i) => span(period.start, period.start + ms, plan('x', decimalText({ n: BigInt(cents), d: 100n })), `sub_${i}`));
    const taxPercent = decimalText({ n: BigInt(hundredths), d: 100n });
    const statement = composeStatement(period, spans, [], { ...terms, taxPercent });
    expect(statement.lines.filter((line) => line.kind === 'tax').length).toBeLessThanOrEqual(1);
    expect(statement.taxMinor).toBe(amountMinor({ n: BigInt(hundredths), d: 10_000n }, { n: statement.subtotalMinor, d: 100n }, 2n));
    expect(statement.lines.reduce((sum, line) => sum + line.amountMinor, 0n)).toBe(statement.totalMinor);
    expect(statement.subtotalMinor + statement.taxMinor).toBe(statement.totalMinor);
  }), runs);
});

test('nothing is lost between carry, credit and due', () => {
  fc.assert(fc.property(fc.bigInt(0n, 10_000n), fc.bigInt(0n, 500n), fc.bigInt(0n, 20_000n), (cents, carriedInMinor, creditMinor) => {
    const of = plan('x', decimalText({ n: cents, d: 100n }));
    const statement = composeStatement(period, [span(period.start, period.end, of)], [], { ...terms, minInvoiceMinor: 50n, carriedInMinor, creditMinor });
    expect(statement.totalMinor).toBe(cents);
    expect(statement.creditMinor + statement.amountDueMinor + statement.carriedOutMinor).toBe(cents + carriedInMinor);
    expect(statement.amountDueMinor === 0n || statement.amountDueMinor >= 50n).toBe(true);
    expect(statement.creditMinor <= creditMinor).toBe(true);
  }), runs);
});
