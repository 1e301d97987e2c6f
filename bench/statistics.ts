/** The value below which this share of the samples lies (nearest rank). */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

/** `name   p50 12.3  p95 45.6 ms`, in columns. */
export function line(name: string, samples: readonly number[], shares: readonly number[] = [0.5, 0.95]): string {
  const figures = shares.map((share) => `p${share * 100} ${percentile(samples, share).toFixed(1).padStart(8)}`).join('  ');
  return `${name.padEnd(58)} ${figures} ms  (${samples.length})`;
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
