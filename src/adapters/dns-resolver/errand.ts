/** What one call may spend (contract dns.md §4.5): packets, time, and look-ups of name servers within look-ups. */
export class Errand {
  /** Packets sent so far. */
  queries = 0;
  /** Names whose addresses are being looked up: one that needs itself has none. */
  readonly lookingUp = new Set<string>();
  private readonly startedMs: number;

  constructor(private readonly limits: { queriesMax: number; budgetMs: number }, private readonly nowMs: () => number) {
    this.startedMs = nowMs();
  }

  get durationMs(): number {
    return Math.round(this.nowMs() - this.startedMs);
  }

  get leftMs(): number {
    return this.limits.budgetMs - (this.nowMs() - this.startedMs);
  }

  /** Counts a packet that is about to be sent; false when none may be. */
  spend(): boolean {
    if (this.queries >= this.limits.queriesMax || this.leftMs <= 0) return false;
    this.queries++;
    return true;
  }
}
