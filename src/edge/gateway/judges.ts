import type { RequestFacts, RuleEngine } from '../../gateway/ports';
import type { Log } from '../../core/log';
import { Challenge, type UsedTokens } from './challenge';
import { compilePolicy } from './compiled-policy';
import type { Judge, MakeJudge } from './judge';
import type { RateLimits } from './limits';
import { judge, judgeResponse, type Stages } from './pipeline';

export interface JudgeDeps {
  readonly engine: RuleEngine;
  readonly limits: RateLimits;
  readonly used: UsedTokens;
  /** What keys of challenges are derived from; the same in every worker and after a restart. */
  readonly secret: Buffer;
  readonly log: Log;
  now?(): number;
}

/** What judges live traffic of a version of a policy: limits count, challenges are answered. */
export function judgesOf({ engine, limits, used, secret, log, now = Date.now }: JudgeDeps): MakeJudge {
  return ({ zoneId, version, policy }): Judge => {
    const compiled = compilePolicy(zoneId, version, policy);
    const challenge = new Challenge({ zoneId, settings: policy.challenge }, secret, used);
    const stages: Stages = { engine, limits, clearance: challenge, now, onEngineFault: (error) => log.error({ err: error, zoneId, version }, 'the rule engine failed on a request') };
    const waiting = new WeakMap<RequestFacts, (originStatus: number) => void>();
    const inspected = new WeakSet<RequestFacts>();
    return {
      policy, version, ruleSetVersion: engine.versionOf(policy.managedRules.ruleSet),
      async judge(facts, readBody) {
        const { decision, afterAnswer, inspectsAnswer } = await judge(stages, compiled, facts, readBody ? { readBody } : {});
        if (afterAnswer) waiting.set(facts, afterAnswer);
        if (inspectsAnswer) inspected.add(facts);
        return decision;
      },
      inspectsAnswer: (facts) => inspected.has(facts),
      judgeResponse: (facts, decision, response) => judgeResponse(stages, compiled, { facts, decision }, response),
      answered(facts, originStatus) {
        waiting.get(facts)?.(originStatus);
        waiting.delete(facts);
      },
      challengePage: (facts, eventId) => challenge.ask(facts, eventId, now()),
      answerChallenge: (facts) => challenge.answer(facts, now()),
    };
  };
}
