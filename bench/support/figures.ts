/** Figures of a benchmark, printed beside those of its peer. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export function summary(values: readonly number[]): { n: number; p50: number; p95: number; p99: number } {
  return { n: values.length, p50: percentile(values, 0.5), p95: percentile(values, 0.95), p99: percentile(values, 0.99) };
}

export function print(rows: readonly Record<string, string | number>[]): void {
  console.table(rows.map((row) => Object.fromEntries(Object.entries(row).map(([key, value]) => [key, typeof value === 'number' ? Math.round(value * 1000) / 1000 : value]))));
}
