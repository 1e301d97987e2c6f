import { kindOf, type Match, type MatchLeaf, type Policy } from '../schemas';
import { asGiven, parseNetwork, withPrefix } from './networks';

/** `masked`: paths of networks that had bits set beyond their prefix. */
export type Canonical<P> = { policy: P; masked: string[] };
type WithNetworks = Pick<Policy, 'customRules' | 'rateLimits' | 'ipLists'>;

/**
 * The policy with every address and network as it is kept: host bits cut off, one spelling, no entry of an IP list twice.
 * Doing it again changes nothing.
 */
export function canonicalPolicy<P extends WithNetworks>(policy: P): Canonical<P> {
  const masked: string[] = [];
  const list = (entries: readonly string[], path: string) => [...new Set(entries.map((entry, i) => canonicalEntry(entry, `${path}.${i}`, masked)))];
  return {
    policy: {
      ...policy,
      customRules: policy.customRules.map((rule, i) => ({ ...rule, match: canonicalMatch(rule.match, `customRules.${i}.match`, masked) })),
      rateLimits: policy.rateLimits.map((limit, i) => ({ ...limit, match: limit.match && canonicalMatch(limit.match, `rateLimits.${i}.match`, masked) })),
      ipLists: { allow: list(policy.ipLists.allow, 'ipLists.allow'), deny: list(policy.ipLists.deny, 'ipLists.deny') },
    },
    masked,
  };
}

function canonicalEntry(text: string, path: string, masked: string[]): string {
  const network = parseNetwork(text);
  if (network?.masked) masked.push(path);
  return network ? withPrefix(network) : text;
}

function canonicalMatch(match: Match, path: string, masked: string[]): Match {
  if ('all' in match) return { all: match.all.map((child, i) => canonicalMatch(child, `${path}.all.${i}`, masked)) };
  if ('any' in match) return { any: match.any.map((child, i) => canonicalMatch(child, `${path}.any.${i}`, masked)) };
  if ('not' in match) return { not: canonicalMatch(match.not, `${path}.not`, masked) };
  return kindOf(match.field) === 'ip' ? canonicalLeaf(match, `${path}.value`, masked) : match;
}

/** One address stays one address: a rule says `203.0.113.7` and not a network of one. */
function canonicalLeaf(leaf: MatchLeaf, path: string, masked: string[]): MatchLeaf {
  const one = (text: string, at: string): string => {
    const network = parseNetwork(text);
    if (network?.masked) masked.push(at);
    return network ? asGiven(network) : text;
  };
  if (typeof leaf.value === 'string') return { ...leaf, value: one(leaf.value, path) };
  if (!Array.isArray(leaf.value)) return leaf;
  return { ...leaf, value: [...new Set(leaf.value.map((item, i) => one(String(item), `${path}.${i}`)))] };
}
