import type { WebhookAnswer } from '../ports';

/** Waits before each attempt, in seconds (contract mail.md §5). */
const ladder = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400] as const;
const jitter = 0.2;

/** A webhook with nothing but failures for this long is switched off. */
export const failingAfterHours = 120;

export type Verdict = { state: 'succeeded' | 'failed'; waitSeconds: null } | { state: 'pending'; waitSeconds: number };

/**
 * What follows from attempt `attempt` (from 1). Waits vary upwards only, within 20 %: the last attempt comes more than three
 * days after the first, whatever chance says. 429 and 503 may ask for a longer or shorter wait, up to a day. 410 ends it.
 */
export function verdictOf({ status, retryAfterSeconds }: Pick<WebhookAnswer, 'status' | 'retryAfterSeconds'>, attempt: number, random: () => number = Math.random): Verdict {
  if (status !== null && status >= 200 && status < 300) return { state: 'succeeded', waitSeconds: null };
  const planned = ladder[attempt];
  if (status === 410 || planned === undefined) return { state: 'failed', waitSeconds: null };
  if ((status === 429 || status === 503) && retryAfterSeconds !== null) return { state: 'pending', waitSeconds: Math.min(Math.max(retryAfterSeconds, 1), 86_400) };
  return { state: 'pending', waitSeconds: planned * (1 + jitter * random()) };
}
