import type { Issue } from '../../core/errors';
import { leavesOf, type Policy } from '../schemas';
import { compilePattern } from './pattern';

/** Patterns of rules that cannot be run in linear time or read at all, with their places. */
export function faultyPatterns(policy: Pick<Policy, 'customRules' | 'rateLimits'>): Issue[] {
  const rules = [...policy.customRules.map(({ match }, i) => ({ match, path: `customRules.${i}.match` })), ...policy.rateLimits.map(({ match }, i) => ({ match, path: `rateLimits.${i}.match` }))];
  return rules.flatMap(({ match, path }) => (match ? leavesOf(match) : []).flatMap(({ leaf, path: at }) => {
    const fault = leaf.op === 'matches' && typeof leaf.value === 'string' ? faultOf(leaf.value, leaf.ignoreCase ?? false) : null;
    return fault === null ? [] : [{ path: [path, ...at, 'value'].join('.'), message: fault }];
  }));
}

function faultOf(source: string, ignoreCase: boolean): string | null {
  try {
    compilePattern(source, { source: 'user', ignoreCase });
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : 'it cannot be read';
  }
}
