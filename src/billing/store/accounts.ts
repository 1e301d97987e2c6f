import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type AccountRow = {
  id: string; provider: string; currency: string; timeZone: string; status: 'current' | 'past_due' | 'restricted' | 'suspended'; balanceMinor: bigint;
  paymentMethodKind: string | null; paymentMethodLast4: string | null; spendLimitMinor: bigint | null; createdAt: Date; updatedAt: Date;
};
export type PeriodRow = { key: string; start: Date; end: Date; timeZone: string };

const insertAccount = `insert into billing_account (org_id, provider, currency) select $1, provider, currency from billing_setting on conflict do nothing`;

/** The organisation's account with its balance; made when it has none yet. */
export async function readAccount(db: Db, orgId: string): Promise<AccountRow> {
  await execute(db, insertAccount, orgId);
  const [row] = await rows<AccountRow>(db, `
    select a.org_id as id, a.provider, a.currency, a.time_zone as "timeZone", a.status, a.payment_method_kind as "paymentMethodKind",
      a.payment_method_last4 as "paymentMethodLast4", a.spend_limit_minor as "spendLimitMinor", a.created_at as "createdAt", a.updated_at as "updatedAt",
      (select coalesce(sum(amount_minor), 0)::bigint from ledger_entry l where l.org_id = a.org_id) as "balanceMinor"
    from billing_account a where a.org_id = $1`, orgId);
  if (!row) throw new Error('The plan catalogue was never loaded: ensureCatalogue runs at boot.');
  return row;
}

export async function hasAccount(db: Db, orgId: string): Promise<boolean> {
  return (await rows(db, 'select 1 from billing_account where org_id = $1', orgId)).length === 1;
}

/** Whoever may raise what is committed holds the account until the commit; answers its spend limit. */
export async function lockSpendLimit(tx: Tx, orgId: string): Promise<bigint | null> {
  const [row] = await rows<{ limitMinor: bigint | null }>(tx, `select spend_limit_minor as "limitMinor" from billing_account where org_id = $1 for update`, orgId);
  return row?.limitMinor ?? null;
}

export async function writeSpendLimit(tx: Tx, orgId: string, limitMinor: number | null): Promise<void> {
  await execute(tx, insertAccount, orgId);
  await execute(tx, `update billing_account set spend_limit_minor = $2::bigint, updated_at = now() where org_id = $1`, orgId, limitMinor);
}

export async function writeTimeZone(tx: Tx, orgId: string, timeZone: string): Promise<void> {
  await execute(tx, insertAccount, orgId);
  await execute(tx, `update billing_account set time_zone = $2, updated_at = now() where org_id = $1 and time_zone <> $2`, orgId, timeZone);
}

/**
 * The billing month an instant falls into, stored when it is first asked for: the calendar month of the organisation's
 * zone. Periods tile time: a later one starts where the one before ends, whatever the zone is by then.
 */
export async function ensurePeriod(db: Db, orgId: string, at: Date): Promise<PeriodRow> {
  for (let months = 0; months < 1_200; months++) {
    const found = await findPeriod(db, orgId, at);
    if (found) return found;
    if (months === 0) await execute(db, insertAccount, orgId);
    await execute(db, insertNextPeriod, orgId, at);
  }
  throw new Error('A billing period lies more than a century away.');
}

/** The database's own clock, to the millisecond: within a transaction always its beginning. */
export async function databaseNow(db: Db): Promise<Date> {
  const [row] = await rows<{ now: Date }>(db, `select date_trunc('milliseconds', now()) as now`);
  return row?.now ?? new Date();
}

async function findPeriod(db: Db, orgId: string, at: Date): Promise<PeriodRow | null> {
  const [row] = await rows<PeriodRow>(db, `select key, start_at as start, end_at as end, time_zone as "timeZone" from billing_period
    where org_id = $1 and start_at <= $2::timestamptz and $2::timestamptz < end_at`, orgId, at);
  return row ?? null;
}

/** The month after the last stored one, before the first stored one, or of the instant itself when none is stored. */
const insertNextPeriod = `
  with ends as (select min(start_at) as first_start, max(end_at) as last_end, min(key) as first_key, max(key) as last_key from billing_period where org_id = $1),
  month as (
    select case when e.last_end is null then date_trunc('month', $2::timestamptz at time zone a.time_zone)
        when $2::timestamptz >= e.last_end then (e.last_key || '-01')::timestamp + interval '1 month'
        else (e.first_key || '-01')::timestamp - interval '1 month' end as first_day,
      e.first_start, e.last_end, a.time_zone, $2::timestamptz >= e.last_end as forward
    from billing_account a cross join ends e where a.org_id = $1)
  insert into billing_period (org_id, key, start_at, end_at, time_zone)
  select $1, to_char(first_day, 'YYYY-MM'),
    case when forward then last_end else make_timestamptz(extract(year from first_day)::int, extract(month from first_day)::int, 1, 0, 0, 0, time_zone) end,
    case when last_end is null or forward then make_timestamptz(extract(year from first_day + interval '1 month')::int,
      extract(month from first_day + interval '1 month')::int, 1, 0, 0, 0, time_zone) else first_start end, time_zone
  from month on conflict do nothing`;
