import type { OriginFinding } from '../../gateway/store/feed';

const repeatMs = 60_000;
const rememberedMax = 20_000;

/** What this process has found of origins since it last told: kept in the database for who looks at a zone's hosts. */
export class OriginHealth {
  private readonly last = new Map<string, { healthy: boolean; at: number }>();
  private readonly untold = new Map<string, OriginFinding>();

  /** `error` null: it was reached. The same again is told once a minute. */
  found(origin: { zoneId: string; hostname: string; address: string }, error: string | null, nowMs: number): void {
    const key = `${origin.zoneId} ${origin.hostname} ${origin.address}`;
    const before = this.last.get(key);
    const healthy = error === null;
    if (before && before.healthy === healthy && nowMs - before.at < repeatMs) return;
    if (this.last.size >= rememberedMax) this.last.clear();
    this.last.set(key, { healthy, at: nowMs });
    this.untold.set(key, { ...origin, healthy, lastError: error, checkedAt: new Date(nowMs).toISOString() });
  }

  /** Findings not taken yet; they are told again when `restore` gives them back. */
  take(): OriginFinding[] {
    const findings = [...this.untold.values()];
    this.untold.clear();
    return findings;
  }

  restore(findings: readonly OriginFinding[]): void {
    for (const finding of findings) {
      const key = `${finding.zoneId} ${finding.hostname} ${finding.address}`;
      if (!this.untold.has(key)) this.untold.set(key, finding);
    }
  }
}
