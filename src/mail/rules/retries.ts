import { retryHintSeconds } from './replies';

/** How long to try, and how long to wait after which attempt (MAIL_RETRY_SCHEDULE_SECONDS). */
export type RetryRules = { scheduleSeconds: readonly number[] };

const jitter = 0.2;

/**
 * When the next attempt is due after attempt `attempt` (from 1), or null when that lies beyond `expiresAt`. The schedule's
 * last wait repeats; each varies by ± 20 %, so that what failed together does not come back together. A server's hint
 * replaces it. `random` is in [0, 1).
 */
export function nextAttemptAt(
  rules: RetryRules, { attempt, now, expiresAt, text, retryAfterSeconds }: { attempt: number; now: Date; expiresAt: Date; text?: string | undefined; retryAfterSeconds?: number | undefined },
  random: () => number = Math.random,
): Date | null {
  const { scheduleSeconds } = rules;
  const planned = scheduleSeconds[Math.min(Math.max(attempt, 1), scheduleSeconds.length) - 1] ?? 0;
  const waitMs = (retryHintSeconds({ text, retryAfterSeconds }) ?? planned * (1 - jitter + 2 * jitter * random())) * 1_000;
  const next = new Date(now.getTime() + Math.round(waitMs));
  return next > expiresAt ? null : next;
}
