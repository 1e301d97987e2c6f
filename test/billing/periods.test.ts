import fc from 'fast-check';
import { setTimeZone } from '../../src/billing/service';
import { ensurePeriod, type PeriodRow } from '../../src/billing/store/accounts';
import { newId } from '../../src/core/ids';
import { rows } from '../../src/db/client';
import { inTransaction } from '../../src/db/transaction';
import { withDatabase } from '../support/database';

const given = withDatabase();
const first = new Date('2024-01-15T12:00:00Z');
const last = new Date('2032-12-15T12:00:00Z');
/** Odd offsets, summer time that begins at midnight or by half an hour, Ramadan, both ends of the world. */
const oddZones = [
  'UTC', 'Europe/Berlin', 'America/New_York', 'America/Havana', 'Asia/Beirut', 'Africa/Cairo', 'Africa/Casablanca', 'America/Asuncion', 'Asia/Gaza', 'Australia/Lord_Howe',
  'Asia/Kathmandu', 'America/St_Johns', 'Pacific/Chatham', 'Pacific/Kiritimati', 'Pacific/Pago_Pago', 'America/Santiago',
];
const newOrg = async (timeZone: string) => {
  const orgId = newId('org');
  await inTransaction(given.database, (tx) => setTimeZone(tx, orgId, timeZone));
  return orgId;
};
const periodAt = (orgId: string, at: Date) => ensurePeriod(given.database.prisma, orgId, at);
const stored = (orgId: string) => rows<PeriodRow>(given.database.prisma, `select key, start_at as start, end_at as end, time_zone as "timeZone" from billing_period where org_id = $1 order by key`, orgId);

/** What a clock on the wall shows, by the calendar of Node and not of PostgreSQL. */
function wallOf(at: Date, timeZone: string): string {
  const fields = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  const parts = new Map(new Intl.DateTimeFormat('en', { timeZone, ...fields }).formatToParts(at).map(({ type, value }) => [type, value]));
  return `${parts.get('year')}-${parts.get('month')}-${parts.get('day')} ${parts.get('hour')}:${parts.get('minute')}`;
}

const monthOf = (at: Date, timeZone: string): string => wallOf(at, timeZone).slice(0, 7);

/**
 * A month begins at 00:00 of its first day; where clocks skip that moment, at the first one there is. Where they show it twice
 * (Havana, 1 November 2026), PostgreSQL takes the second.
 */
function expectBeginning(at: Date, key: string, timeZone: string): void {
  const skipped = monthOf(at, timeZone) === key && monthOf(new Date(at.getTime() - 1), timeZone) !== key;
  if (!skipped) expect(wallOf(at, timeZone)).toBe(`${key}-01 00:00`);
}

const monthAfter = (key: string): string => new Date(Date.UTC(Number(key.slice(0, 4)), Number(key.slice(5)), 1)).toISOString().slice(0, 7);

function expectTiles(periods: readonly PeriodRow[]): void {
  periods.forEach((period, i) => {
    expect(period.start < period.end).toBe(true);
    const next = periods[i + 1];
    if (next) expect(next.start).toEqual(period.end);
  });
}

test.each(oddZones)('nine years of %s: every period is a calendar month, and they tile time', async (timeZone) => {
  const orgId = await newOrg(timeZone);
  await periodAt(orgId, first);
  await periodAt(orgId, last);
  const periods = await stored(orgId);
  expect(periods).toHaveLength(108);
  expectTiles(periods);
  for (const { key, start } of periods) expectBeginning(start, key, timeZone);
}, 30_000);

test('any zone, any instants in any order: each falls into its period, and the periods tile time', async () => {
  const zones = Intl.supportedValuesOf('timeZone');
  const known = new Set((await rows<{ name: string }>(given.database.prisma, 'select name from pg_timezone_names')).map(({ name }) => name));
  const instant = fc.integer({ min: first.getTime(), max: last.getTime() }).map((ms) => new Date(ms));
  await fc.assert(fc.asyncProperty(fc.constantFrom(...zones.filter((zone) => known.has(zone))), fc.array(instant, { minLength: 1, maxLength: 3 }), async (timeZone, instants) => {
    const orgId = await newOrg(timeZone);
    for (const at of instants) {
      const period = await periodAt(orgId, at);
      expect(period.start <= at && at < period.end).toBe(true);
      expectBeginning(period.start, period.key, timeZone);
      expect([monthOf(at, timeZone), monthOf(new Date(at.getTime() - 3_600_000), timeZone)]).toContain(period.key);
    }
    expectTiles(await stored(orgId));
  }), { numRuns: 12 });
}, 60_000);

test('a new zone counts from the next period, which begins where the present one ends', async () => {
  const moves = fc.array(fc.constantFrom(...oddZones), { minLength: 1, maxLength: 4 });
  await fc.assert(fc.asyncProperty(moves, async (zones) => {
    const orgId = await newOrg('UTC');
    let period = await periodAt(orgId, first);
    for (const timeZone of zones) {
      await inTransaction(given.database, (tx) => setTimeZone(tx, orgId, timeZone));
      expect(await periodAt(orgId, period.start)).toEqual(period);
      const next = await periodAt(orgId, period.end);
      expect(next.start).toEqual(period.end);
      expectBeginning(next.end, monthAfter(next.key), timeZone);
      period = next;
    }
    expectTiles(await stored(orgId));
  }), { numRuns: 10 });
}, 60_000);

test('asked for by many at once, a period is stored once', async () => {
  const orgId = await newOrg('Europe/Berlin');
  const found = await Promise.all(Array.from({ length: 16 }, () => periodAt(orgId, first)));
  expect(new Set(found.map(({ start }) => start.getTime())).size).toBe(1);
  expect(await stored(orgId)).toHaveLength(1);
});
