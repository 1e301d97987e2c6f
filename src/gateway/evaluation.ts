import type { z } from 'zod';
import type { GatewayDeps } from './deps';
import { completePolicy, readPolicy, requireRunnable } from './policies';
import { loadRuleFacts } from './rule-catalogue';
import { canonicalPolicy } from './rules/canonical';
import type { evaluateBody, evaluationAnswer } from './schemas';

/** How a request would be judged by the policy in force, or by the one given. Errors: `not_found`, `unsafe_regex`, `rule_set_unavailable`, `deadline_exceeded` after 1 s. */
export async function evaluateRequest(
  deps: Pick<GatewayDeps, 'db' | 'policyEvaluator'>, projectId: string, zoneId: string, { request, policy: draft }: z.infer<typeof evaluateBody>,
): Promise<z.infer<typeof evaluationAnswer>['evaluation']> {
  const { zone, policy: present } = await readPolicy(deps, projectId, zoneId);
  const ruleFacts = await loadRuleFacts(deps.policyEvaluator);
  const policy = draft ? canonicalPolicy(completePolicy(draft, ruleFacts)).policy : present;
  if (draft) requireRunnable(policy, ruleFacts);
  const { outcome, wouldHave, steps, rules, anomalyScore, durationMicros } = await deps.policyEvaluator.evaluate(zone.id, policy, request);
  return { outcome, wouldHave, steps: [...steps], rules: rules.map(({ tags, ...rule }) => ({ ...rule, tags: [...tags] })), anomalyScore, durationMicros };
}
