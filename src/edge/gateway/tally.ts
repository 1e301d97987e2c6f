import type { Decision, ManagedVerdict, Outcome, Source } from '../../gateway/ports';
import type { Policy } from '../../gateway/schemas';

/** Which rule brought an outcome about. */
export type Cause = { readonly source: Source; readonly ruleId: string; readonly ruleName?: string };
/** What ends a request before its origin is asked. */
export type Stop = { readonly outcome: 'block' | 'rate_limit' | 'challenge'; readonly status: number; readonly code: string; readonly retryAfterSeconds?: number };
type Standing = Pick<Decision, 'outcome' | 'wouldHave' | 'source' | 'ruleId' | 'ruleName'>;

const byStrength = ['block', 'rate_limit', 'challenge', 'challenge_failed', 'challenge_passed', 'monitor', 'log', 'allow', 'clean'] as const satisfies readonly (Outcome | 'clean')[];
const clean: Standing = { outcome: 'clean', wouldHave: null, source: null, ruleId: null, ruleName: null };

export const cleanDecision: Decision = { ...clean, refusal: null, managed: null, steps: [] };

/** What stops a challenged client; the page or its JSON form is made by `challenge`. */
export const challengeStop: Stop = { outcome: 'challenge', status: 403, code: 'challenge_required' };

/** A block of this status, 403 unless told otherwise. */
export function blockStop(status = 403, code = 'request_blocked'): Stop {
  return { outcome: 'block', status, code };
}

/** The outcome of one request: the strongest reached, the first of equals (contract gateway.md §4.3). */
export class Tally {
  private standing: Standing = clean;
  private refusal: Decision['refusal'] = null;
  private readonly steps: { stage: string; ruleId: string | null; result: string }[] = [];
  managed: ManagedVerdict | null = null;

  constructor(private readonly mode: Policy['mode'], private readonly isExplained: boolean) {}

  /** Goes on from a decision already taken. */
  static after(decision: Decision, mode: Policy['mode']): Tally {
    const tally = new Tally(mode, false);
    tally.standing = decision;
    tally.managed = decision.managed;
    return tally;
  }

  reach(outcome: 'log' | 'allow', cause: Cause): void {
    this.note(outcome, null, cause);
  }

  /** A fault of the engine is told before anything else that is only logged. */
  fail(cause: Cause): void {
    if (this.standing.outcome === 'log') this.standing = clean;
    this.note('log', null, cause);
  }

  /** In block mode the client is refused; in monitor mode it is only written down. */
  stop(stop: Stop, cause: Cause): void {
    if (this.mode === 'monitor') return this.note('monitor', stop.outcome, cause);
    this.note(stop.outcome, null, cause);
    this.refusal = { status: stop.status, code: stop.code, retryAfterSeconds: stop.retryAfterSeconds ?? null, page: stop.outcome === 'challenge' ? 'challenge' : 'refused' };
  }

  /** Whether the request has come to its end, or would have in block mode. */
  get isStopped(): boolean {
    return this.refusal !== null || this.standing.wouldHave !== null;
  }

  /** For explanations only. */
  step(stage: string, result: string, ruleId: string | null = null): void {
    if (this.isExplained) this.steps.push({ stage, ruleId, result });
  }

  decision(): Decision {
    if (this.standing.outcome === 'clean' && !this.isExplained) return cleanDecision;
    const { outcome, wouldHave, source, ruleId, ruleName } = this.standing;
    return { outcome, wouldHave, source, ruleId, ruleName, refusal: this.refusal, managed: this.managed, steps: this.steps };
  }

  private note(outcome: Outcome, wouldHave: Decision['wouldHave'], { source, ruleId, ruleName }: Cause): void {
    if (byStrength.indexOf(outcome) >= byStrength.indexOf(this.standing.outcome)) return;
    this.standing = { outcome, wouldHave, source, ruleId, ruleName: ruleName === undefined || ruleName === '' ? null : ruleName };
  }
}
