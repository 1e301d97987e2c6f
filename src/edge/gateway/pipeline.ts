import type { Decision, ManagedVerdict, RequestFacts, ResponseFacts, RuleEngine } from '../../gateway/ports';
import { botFault } from './bots';
import type { CompiledLimit, CompiledPolicy } from './compiled-policy';
import type { Allowance } from './limits';
import { RequestView } from './request-view';
import { blockStop, challengeStop, cleanDecision, Tally, type Cause } from './tally';

/** The stages from the policy to the origin (contract gateway.md §4.3, 5 to 12 and 14): the same code for traffic and for the API's evaluator. */
export interface Stages {
  readonly engine: RuleEngine;
  /** Null: nothing is counted (the evaluator). */
  readonly limits: {
    excess(zoneId: string, key: string, limit: Allowance, nowMs: number): number | null;
    count(zoneId: string, key: string, limit: Allowance, nowMs: number): void;
  } | null;
  /** Whether the client has solved this zone's challenge; null: nobody has. */
  readonly clearance: { isCleared(request: RequestView, nowMs: number): boolean } | null;
  now(): number;
  /** Told what the engine has thrown. */
  onEngineFault?(error: unknown): void;
}

export interface JudgeOptions {
  /** The facts with the part of the body that is inspected; asked for at most once, only when a stage needs it. Absent: the facts are whole. */
  readonly readBody?: () => Promise<RequestFacts>;
  /** Fills `steps`. */
  readonly explain?: boolean;
}

export interface Judgement {
  readonly decision: Decision;
  /** To be told the origin's status of a forwarded request: some limits count by it. Null: nobody asks. */
  readonly afterAnswer: ((originStatus: number) => void) | null;
  /** Whether the answer is to be shown to `judgeResponse`. */
  readonly inspectsAnswer: boolean;
}

/** Judges one request. Never throws: what the engine throws is its fault, and the policy says what follows. */
export async function judge(stages: Stages, policy: CompiledPolicy, facts: RequestFacts, options: JudgeOptions = {}): Promise<Judgement> {
  if (policy.policy.mode === 'off') return { decision: cleanDecision, afterAnswer: null, inspectsAnswer: false };
  const course = new Course(stages, policy, facts, options);
  const isRefused = course.addresses() || course.geo();
  if (!isRefused && policy.comparesBodySize && facts.contentLength === null) await course.readBody();
  const isDecided = isRefused || course.customRules() || course.rateLimits() || course.bots();
  if (!isDecided) await course.managedRules();
  return { decision: course.tally.decision(), afterAnswer: course.afterAnswer(), inspectsAnswer: course.inspectsAnswer() };
}

/** Stage 14: what the origin answered may still be refused. Never throws. */
export async function judgeResponse(stages: Stages, policy: CompiledPolicy, request: { facts: RequestFacts; decision: Decision }, response: ResponseFacts): Promise<Decision> {
  const { managedRules, mode } = policy.policy;
  const now = stages.now();
  const tally = Tally.after(request.decision, mode);
  const verdict = await guarded(stages, () => stages.engine.inspectResponse(request.facts, response, managedRules, now));
  if (verdict.matches.length > 0) tally.managed = { ...verdict, matches: [...(request.decision.managed?.matches ?? []), ...verdict.matches] };
  applyVerdict(tally, policy, verdict);
  return tally.decision();
}

class Course {
  readonly tally: Tally;
  private view: RequestView;
  private readonly skipped = new Set<string>();
  private readonly counted: { entry: CompiledLimit; key: string }[] = [];
  private cleared: boolean | undefined;
  private bodyRead = false;
  private isAllowed = false;

  constructor(private readonly stages: Stages, private readonly compiled: CompiledPolicy, facts: RequestFacts, private readonly options: JudgeOptions) {
    this.view = new RequestView(facts);
    this.tally = new Tally(compiled.policy.mode, options.explain ?? false);
  }

  async readBody(): Promise<void> {
    if (this.bodyRead || !this.options.readBody) return;
    this.bodyRead = true;
    this.view = new RequestView(await this.options.readBody());
  }

  addresses(): boolean {
    const { allow, deny } = this.compiled;
    if (allow.has(this.view.address)) return this.allow('ip_list', { source: 'ip_list', ruleId: 'ip_list.allow' });
    if (deny.has(this.view.address)) return this.stop('ip_list', blockStop(), { source: 'ip_list', ruleId: 'ip_list.deny' });
    return this.pass('ip_list');
  }

  geo(): boolean {
    const { countries, denyAsns, policy: { geo } } = this.compiled;
    const { country, asn } = this.view.facts;
    const isDenied = country !== null && geo.mode !== 'off' && countries.has(country) === (geo.mode === 'deny');
    if (isDenied) return this.stop('geo', blockStop(), { source: 'geo', ruleId: 'geo.country' });
    if (asn !== null && denyAsns.has(asn)) return this.stop('geo', blockStop(), { source: 'geo', ruleId: 'geo.asn' });
    return this.pass('geo');
  }

  customRules(): boolean {
    for (const { rule, matches } of this.compiled.rules) {
      if (!matches(this.view)) continue;
      const cause: Cause = { source: 'custom', ruleId: rule.id, ruleName: rule.name };
      if (rule.action === 'allow') return this.allow('custom_rules', cause);
      if (rule.action === 'block') return this.stop('custom_rules', blockStop(rule.status ?? 403), cause);
      if (rule.action === 'challenge' && !this.isCleared()) return this.stop('custom_rules', challengeStop, cause);
      if (rule.action === 'log') this.tally.reach('log', cause);
      for (const stage of rule.skip) this.skipped.add(stage);
      this.tally.step('custom_rules', rule.action === 'challenge' ? 'cleared' : rule.action, rule.id);
    }
    return this.pass('custom_rules');
  }

  rateLimits(): boolean {
    const { limits, now } = this.stages;
    if (this.skipped.has('rateLimits') || !limits) return this.pass('rate_limits', limits ? 'skipped' : 'not_counted');
    const nowMs = now();
    const within: { entry: CompiledLimit; key: string }[] = [];
    for (const entry of this.compiled.limits) {
      const { limit } = entry;
      if (!entry.matches(this.view) || (limit.action === 'challenge' && this.isCleared())) continue;
      const cause: Cause = { source: 'rate_limit', ruleId: limit.id, ruleName: limit.name };
      const key = entry.keyOf(this.view);
      const waitSeconds = limits.excess(this.compiled.zoneId, key, limit, nowMs);
      if (waitSeconds === null) within.push({ entry, key });
      else if (limit.action === 'log') this.tally.reach('log', cause);
      else if (limit.action === 'challenge') return this.stop('rate_limits', challengeStop, cause);
      else return this.stop('rate_limits', { outcome: 'rate_limit', status: 429, code: 'rate_limited', retryAfterSeconds: waitSeconds }, cause);
    }
    for (const { entry, key } of within) {
      if (entry.limit.countStatuses) this.counted.push({ entry, key });
      else limits.count(this.compiled.zoneId, key, entry.limit, nowMs);
    }
    return this.pass('rate_limits');
  }

  bots(): boolean {
    if (this.skipped.has('bots')) return this.pass('bots', 'skipped');
    const { bots } = this.compiled.policy;
    const ruleId = botFault(bots, this.view);
    if (!ruleId || (bots.mode === 'challenge' && this.isCleared())) return this.pass('bots');
    const cause: Cause = { source: 'bot', ruleId };
    if (bots.mode === 'block') return this.stop('bots', blockStop(), cause);
    if (bots.mode === 'challenge') return this.stop('bots', challengeStop, cause);
    this.tally.reach('log', cause);
    return this.pass('bots', 'log');
  }

  async managedRules(): Promise<void> {
    const { managedRules } = this.compiled.policy;
    if (this.skipped.has('managed') || !managedRules.enabled) {
      this.pass('managed', 'skipped');
      return;
    }
    const blocksLarge = managedRules.bodyLimitAction === 'block';
    const tooLarge: Cause = { source: 'managed', ruleId: 'managed.body_limit' };
    if (blocksLarge && (this.view.facts.contentLength ?? 0) > managedRules.maxBodyBytes) {
      this.stop('managed', blockStop(413, 'payload_too_large'), tooLarge);
      return;
    }
    await this.readBody();
    if (blocksLarge && !this.view.facts.bodyComplete) {
      this.stop('managed', blockStop(413, 'payload_too_large'), tooLarge);
      return;
    }
    const verdict = await guarded(this.stages, () => this.stages.engine.inspectRequest(this.view.facts, managedRules, this.stages.now()));
    this.tally.managed = verdict;
    const result = applyVerdict(this.tally, this.compiled, verdict);
    this.tally.step('managed', result, verdict.deciding?.id ?? null);
  }

  afterAnswer(): Judgement['afterAnswer'] {
    const { stages, compiled, counted, tally } = this;
    if (counted.length === 0 || tally.isStopped) return null;
    return (originStatus) => {
      for (const { entry: { limit }, key } of counted) {
        if (limit.countStatuses?.includes(originStatus)) stages.limits?.count(compiled.zoneId, key, limit, stages.now());
      }
    };
  }

  /** Not of what is allowed or skips the managed rules, nor where block would not have asked the origin. */
  inspectsAnswer(): boolean {
    const { enabled, inspectResponse } = this.compiled.policy.managedRules;
    return enabled && inspectResponse && !this.isAllowed && !this.tally.isStopped && !this.skipped.has('managed');
  }

  private isCleared(): boolean {
    return (this.cleared ??= this.stages.clearance?.isCleared(this.view, this.stages.now()) ?? false);
  }

  private pass(stage: string, result = 'pass'): false {
    this.tally.step(stage, result);
    return false;
  }

  private allow(stage: string, cause: Cause): true {
    this.isAllowed = true;
    this.tally.reach('allow', cause);
    this.tally.step(stage, 'allow', cause.ruleId);
    return true;
  }

  private stop(stage: string, stop: Parameters<Tally['stop']>[0], cause: Cause): true {
    this.tally.stop(stop, cause);
    this.tally.step(stage, stop.outcome, cause.ruleId);
    return true;
  }
}

/** Score at or above the threshold blocks, whatever else happened; then comes what the policy says of an engine that could not finish. */
function applyVerdict(tally: Tally, { policy }: CompiledPolicy, verdict: ManagedVerdict): 'block' | 'log' | 'engine' | 'pass' {
  const cause: Cause = { source: 'managed', ruleId: verdict.deciding?.id ?? 'managed', ...(verdict.deciding ? { ruleName: verdict.deciding.message } : {}) };
  if (verdict.blocked) {
    tally.stop(blockStop(), cause);
    return 'block';
  }
  if (verdict.fault) {
    const fault: Cause = { source: 'engine', ruleId: `engine.${verdict.fault}` };
    if (policy.onEngineError === 'closed') tally.stop(blockStop(503, 'engine_error'), fault);
    else tally.fail(fault);
    return 'engine';
  }
  if (verdict.matches.length === 0) return 'pass';
  tally.reach('log', cause);
  return 'log';
}

async function guarded(stages: Stages, inspect: () => ManagedVerdict | Promise<ManagedVerdict>): Promise<ManagedVerdict> {
  try {
    return await inspect();
  } catch (error) {
    stages.onEngineFault?.(error);
    return { score: 0, threshold: 0, blocked: false, deciding: null, matches: [], suggestion: null, fault: 'exception' };
  }
}
