import { AppError } from '../core/errors';
import { prepared, type Database } from '../db/client';
import type { RateRule } from './operation';

export type Quota = { rule: RateRule; remaining: number; resetSeconds: number };

/** 429 with the quota it ran into, for the headers. */
export class RateLimited extends AppError {
  constructor(rule: RateRule, waitMs: number) {
    const seconds = Math.max(1, Math.ceil(waitMs / 1000));
    super('rate_limited', `Too many requests. Try again in ${seconds} s.`,
      { limit: rule.limit, periodSeconds: rule.periodSeconds, resetAt: new Date(Date.now() + waitMs).toISOString() }, { retryAfterSeconds: seconds });
    this.quota = { rule, remaining: 0, resetSeconds: seconds };
  }

  readonly quota: Quota;
}

export interface Limiter {
  /** Counts one request of `key` under the rule. Errors: `rate_limited` with Retry-After. */
  take(rule: RateRule, key: string): Promise<Quota>;
}

/**
 * GCRA in one statement: the row holds the theoretical arrival time of the next request, so the count is exact across
 * processes. In front of it a refusal is remembered until it ends: a flood costs no database trip. Requests of one subject
 * that come while a statement for it runs are counted together by the next: they would only wait for each other's row.
 */
export function createLimiter(database: Database): Limiter {
  const refusedUntil = new Map<string, number>();
  const take = async ({ rule, key }: Counted, n: number): Promise<Quota | null> => {
    const until = refusedUntil.get(key);
    if (until !== undefined && until > Date.now()) throw new RateLimited(rule, until - Date.now());
    const emissionMs = (rule.periodSeconds * 1000) / rule.limit;
    const windowMs = emissionMs * (rule.burst ?? rule.limit);
    const [row] = await prepared<{ allowed: boolean; aheadMs: number }>(database, statement, [key, emissionMs * n, windowMs]);
    const aheadMs = row?.aheadMs ?? 0;
    if (row?.allowed) {
      refusedUntil.delete(key);
      return { rule, remaining: Math.max(0, Math.floor((windowMs - aheadMs) / emissionMs)), resetSeconds: Math.ceil(aheadMs / 1000) };
    }
    if (n > 1) return null;
    const waitMs = Math.max(1, aheadMs + emissionMs - windowMs);
    if (refusedUntil.size > 10_000) refusedUntil.clear();
    refusedUntil.set(key, Date.now() + waitMs);
    throw new RateLimited(rule, waitMs);
  };
  const waiting = new Map<string, Waiter[]>();
  const work = async (counted: Counted, group: readonly Waiter[]): Promise<void> => {
    await settleGroup(take, counted, group);
    const next = waiting.get(counted.key) ?? [];
    waiting.set(counted.key, []);
    if (next.length > 0) return work(counted, next);
    waiting.delete(counted.key);
  };
  return {
    take: (rule, subject) => new Promise<Quota>((resolve, reject) => {
      const key = `${rule.name}|${subject}`;
      const waiter = { resolve, reject };
      const others = waiting.get(key);
      if (others) return void others.push(waiter);
      waiting.set(key, []);
      void work({ rule, key }, [waiter]);
    }),
  };
}

type Counted = { rule: RateRule; key: string };
type Waiter = { resolve: (quota: Quota) => void; reject: (error: unknown) => void };

/** All at once when there is room for all, else one by one in their order. Never rejects. */
async function settleGroup(take: (counted: Counted, n: number) => Promise<Quota | null>, counted: Counted, group: readonly Waiter[]): Promise<void> {
  const all = group.length > 1 ? await take(counted, group.length).catch(() => null) : null;
  for (const [place, { resolve, reject }] of group.entries()) {
    if (all) resolve({ ...all, remaining: all.remaining + group.length - 1 - place });
    else await take(counted, 1).then((quota) => (quota ? resolve(quota) : reject(new Error('unreachable: one is counted or refused'))), reject);
  }
}

// $2: what these requests add. The second branch answers when they do not fit: the present state, unchanged.
const statement = `
  with taken as (
    insert into rate_limit as r (key, arrival_at) select $1, clock_timestamp() + $2::float8 * interval '1 millisecond' where $2::float8 <= $3::float8
    on conflict (key) do update set arrival_at = greatest(r.arrival_at, clock_timestamp()) + $2::float8 * interval '1 millisecond'
      where greatest(r.arrival_at, clock_timestamp()) + $2::float8 * interval '1 millisecond' <= clock_timestamp() + $3::float8 * interval '1 millisecond'
    returning arrival_at)
  select true as allowed, extract(epoch from arrival_at - clock_timestamp())::float8 * 1000 as "aheadMs" from taken
  union all
  select false, greatest(0, extract(epoch from arrival_at - clock_timestamp()))::float8 * 1000 from rate_limit
  where key = $1 and not exists (select from taken)`;

/** `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10) of the tightest quota that was taken. */
export function rateLimitHeaders(quotas: readonly Quota[]): Record<string, string> {
  const [tightest] = quotas.toSorted((a, b) => a.remaining - b.remaining);
  if (!tightest) return {};
  return {
    'RateLimit-Policy': quotas.map(({ rule }) => `"${rule.name}";q=${rule.limit};w=${rule.periodSeconds}`).join(', '),
    RateLimit: `"${tightest.rule.name}";r=${tightest.remaining};t=${tightest.resetSeconds}`,
  };
}
