/** Windows of the summary (contract gateway.md §4.5). */
export type Window = { hours: number; fromMs: number; toMs: number; bucketSeconds: number };

const minuteMs = 60_000;

/** `to` is the end of the running minute; buckets are aligned to `from`, the last may be shorter. */
export function summaryWindow(hours: number, nowMs: number): Window {
  const toMs = (Math.floor(nowMs / minuteMs) + 1) * minuteMs;
  return { hours, toMs, fromMs: toMs - hours * 60 * minuteMs, bucketSeconds: hours <= 1 ? 60 : hours <= 6 ? 300 : hours <= 72 ? 3_600 : 21_600 };
}

/** Start and end of every bucket of the window. */
export function bucketsOf({ fromMs, toMs, bucketSeconds }: Window): { startMs: number; endMs: number }[] {
  const step = bucketSeconds * 1_000;
  return Array.from({ length: Math.ceil((toMs - fromMs) / step) }, (_, i) => ({ startMs: fromMs + i * step, endMs: Math.min(fromMs + (i + 1) * step, toMs) }));
}
