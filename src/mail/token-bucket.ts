/** Tokens that come back evenly, as many at once as come in a second (at least one). Of one process. */
export class TokenBucket {
  private tokens: number;
  private readonly most: number;
  private at: number;

  /** `perSecond` 0: never a token. `nowMs` is a clock that does not go back. */
  constructor(private readonly perSecond: number, private readonly nowMs: () => number = () => performance.now()) {
    this.most = perSecond === 0 ? 0 : Math.max(1, perSecond);
    this.tokens = this.most;
    this.at = nowMs();
  }

  /** Whole tokens there are. */
  available(): number {
    const now = this.nowMs();
    this.tokens = Math.min(this.most, this.tokens + ((now - this.at) / 1_000) * this.perSecond);
    this.at = now;
    return Math.floor(this.tokens);
  }

  /** Takes `n` when there are as many. */
  take(n = 1): boolean {
    if (this.available() < n) return false;
    this.tokens -= n;
    return true;
  }

  /** Milliseconds until there is one; Infinity when there will be none. */
  msUntilToken(): number {
    if (this.available() >= 1) return 0;
    return this.perSecond === 0 ? Infinity : Math.ceil(((1 - this.tokens) / this.perSecond) * 1_000);
  }
}
