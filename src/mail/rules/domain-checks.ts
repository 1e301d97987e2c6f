import type { DomainFailureReason, DomainStatus } from '../state';

/** When a sender domain is checked, and what a check makes of it (contract mail.md §2.2). */

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
/** How long a domain may be pending, and degraded. */
export const windowMs = 72 * hourMs;
/** Definitive misses in a row that degrade, and how far apart they must lie to count. */
const missesToDegrade = 3;
const missApartMs = hourMs;
/** After a check that says nothing. */
const afterUnknownMs = 15 * minuteMs;
/** After the check at once. */
const ladderMs = [15 * secondMs, 30 * secondMs, ...[1, 2, 5, 10, 15, 30, 60].map((minutes) => minutes * minuteMs)];

/**
 * Of the required records together. `ok`: all are there; `miss`: one is missing by the word of every server that has a say;
 * `unknown`: DNS did not tell.
 */
export type Verdict = 'ok' | 'miss' | 'unknown';

export type DomainFacts = {
  status: DomainStatus; failureReason: DomainFailureReason | null; misses: number; missedAt: Date | null; verificationDeadline: Date; degradedAt: Date | null;
};
export type DomainChange = Pick<DomainFacts, 'status' | 'failureReason' | 'misses' | 'missedAt'>;

/**
 * What a check makes of a domain. `asked`: a customer's POST verify, which raises and never lowers, and leaves the count of
 * misses alone. An unknown verdict changes nothing.
 */
export function afterCheck(domain: DomainFacts, verdict: Verdict, { now, asked }: { now: Date; asked: boolean }): DomainChange {
  const { status, failureReason, misses, missedAt } = domain;
  const same = { status, failureReason, misses, missedAt };
  if (verdict === 'unknown' || status === 'suspended' || status === 'failed') return same;
  if (verdict === 'ok') return { status: 'verified', failureReason: null, ...(asked && status === 'verified' ? { misses, missedAt } : { misses: 0, missedAt: null }) };
  if (asked) return same;
  if (status === 'pending') return now >= domain.verificationDeadline ? { ...same, status: 'failed', failureReason: 'window_expired' } : same;
  if (status === 'degraded') {
    const over = domain.degradedAt !== null && now.getTime() - domain.degradedAt.getTime() >= windowMs;
    return over ? { ...same, status: 'failed', failureReason: 'records_lost' } : same;
  }
  const counts = missedAt === null || now.getTime() - missedAt.getTime() >= missApartMs;
  const counted = counts ? { misses: misses + 1, missedAt: now } : { misses, missedAt };
  return { status: counted.misses >= missesToDegrade ? 'degraded' : 'verified', failureReason: null, ...counted };
}

/**
 * Milliseconds to the next check; null: none by itself. Pending: at 0, 15 s, 30 s, 1, 2, 5, 10, 15, 30 min, 1 h of the window, then hourly, ± 10 %;
 * verified: 24 h ± 2 h, but hourly while a miss is counted or a new key waits to be seen; degraded: hourly. Unknown: 15 min. `random`: 0 to 1.
 */
export function nextCheckDelayMs(
  domain: Pick<DomainFacts, 'status' | 'misses' | 'verificationDeadline'>, verdict: Verdict, { now, random, rotating }: { now: Date; random: number; rotating: boolean },
): number | null {
  if (domain.status === 'failed' || domain.status === 'suspended') return null;
  if (verdict === 'unknown') return afterUnknownMs;
  switch (domain.status) {
    case 'pending': return pendingDelayMs(windowMs - (domain.verificationDeadline.getTime() - now.getTime()), random);
    case 'verified': return domain.misses > 0 || rotating ? Math.round(hourMs * (1 + 0.1 * random)) : Math.round(24 * hourMs + 2 * hourMs * (2 * random - 1));
    case 'degraded': return Math.round(hourMs * (1 + 0.1 * random));
  }
}

/** The next rung above what has passed of the window; a rung that may have been checked early is behind. */
function pendingDelayMs(elapsedMs: number, random: number): number {
  const factor = 0.9 + 0.2 * random;
  const rung = ladderMs.find((at) => at * 0.9 > elapsedMs);
  return Math.max(secondMs, Math.round(rung === undefined ? hourMs * factor : rung * factor - elapsedMs));
}
