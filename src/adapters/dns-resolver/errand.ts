import type { QueryBudget } from '../../dns/ports';
import type { WireName } from '../../dns/rules/wire/name';
import type { Servers } from './referral-cache';
import type { Final, Said } from './walk';

/** What the calls of one check have heard so far: within it nothing is asked twice. */
export type Heard = { referrals: Map<WireName, Servers>; answers: Map<string, Said<Final>> };

/** What one call may spend (contract dns.md §4.5): packets, time, and look-ups of name servers within look-ups. */
export class Errand {
  /** Packets sent so far. */
  queries = 0;
  /**
   * Addresses of name servers, looked up once per call; none while that goes on, so one that needs itself has none. Without
   * it a few name servers that need each other cost a walk through all their orders, and not one packet.
   */
  readonly addresses = new Map<string, readonly string[]>();
  readonly heard: Heard;
  private readonly startedMs: number;

  constructor(private readonly limits: { queriesMax: number; budgetMs: number; shared?: QueryBudget | undefined; heard?: Heard | undefined }, private readonly nowMs: () => number) {
    this.heard = limits.heard ?? { referrals: new Map(), answers: new Map() };
    this.startedMs = nowMs();
  }

  get durationMs(): number {
    return Math.round(this.nowMs() - this.startedMs);
  }

  get leftMs(): number {
    return this.limits.budgetMs - (this.nowMs() - this.startedMs);
  }

  /** Whether anything may still be sent. */
  get isSpent(): boolean {
    const { queriesMax, shared } = this.limits;
    return this.queries >= queriesMax || (shared !== undefined && shared.queriesLeft <= 0) || this.leftMs <= 0;
  }

  /** Counts a packet that is about to be sent; false when none may be. */
  spend(): boolean {
    if (this.isSpent) return false;
    this.queries++;
    if (this.limits.shared) this.limits.shared.queriesLeft--;
    return true;
  }
}
