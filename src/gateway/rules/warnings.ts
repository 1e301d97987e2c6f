import { leavesOf, type Match } from '../schemas/match';
import type { Policy } from '../schemas/policy';
import { containsNetwork } from './networks';

export const warningCodes = ['would_block_you', 'unknown_rule', 'geo_database_missing', 'masked_host_bits', 'deny_shadowed_by_allow', 'no_proxied_names'] as const;
export type PolicyWarning = { code: (typeof warningCodes)[number]; path: string; message: string };

/** What a policy is judged by beside itself. */
export type WarningFacts = {
  /** Of who writes it. */
  ip: string;
  /** Ids of the policy's rule set; null when it cannot be asked. */
  ruleIds: ReadonlySet<string> | null;
  geo: { country: boolean; asn: boolean };
  masked: readonly string[];
  proxiedNames: number;
};

/** What is allowed but probably not meant. */
export function policyWarnings(policy: Policy, facts: WarningFacts): PolicyWarning[] {
  const blocked = policy.mode === 'block' ? blockingPath(policy, facts.ip) : null;
  return [
    ...(blocked === null ? [] : [{ code: 'would_block_you' as const, path: blocked, message: `Requests from your own address ${facts.ip} are refused.` }]),
    ...unknownRules(policy, facts.ruleIds),
    ...missingGeo(policy, facts.geo),
    ...facts.masked.map((path) => ({ code: 'masked_host_bits' as const, path, message: 'Bits beyond the prefix were cut off.' })),
    ...shadowed(policy),
    ...(facts.proxiedNames > 0 ? [] : [{ code: 'no_proxied_names' as const, path: '', message: 'No record of this zone is proxied, so no request comes by the gateway.' }]),
  ];
}

/** Where an address is refused whatever else a request says; null when it depends, or is let in. */
export function blockingPath(policy: Policy, ip: string): string | null {
  if (policy.ipLists.allow.some((network) => containsNetwork(network, ip))) return null;
  const denied = policy.ipLists.deny.findIndex((network) => containsNetwork(network, ip));
  if (denied >= 0) return `ipLists.deny.${denied}`;
  for (const [i, { enabled, action, match }] of policy.customRules.entries()) {
    const verdict = enabled && (action === 'allow' || action === 'block') ? matchesAddress(match, ip) : false;
    if (verdict === true) return action === 'block' ? `customRules.${i}` : null;
    if (verdict === null && action === 'allow') return null;
  }
  return null;
}

/** Null: it depends on more than the address. */
function matchesAddress(match: Match, ip: string): boolean | null {
  if ('not' in match) {
    const inner = matchesAddress(match.not, ip);
    return inner === null ? null : !inner;
  }
  const children = 'all' in match ? match.all : 'any' in match ? match.any : null;
  if (children) {
    const verdicts = children.map((child) => matchesAddress(child, ip));
    const decisive = 'any' in match;
    return verdicts.includes(decisive) ? decisive : verdicts.includes(null) ? null : !decisive;
  }
  if (!('field' in match) || match.field !== 'ip') return null;
  const values = Array.isArray(match.value) ? match.value : [match.value];
  const inside = values.some((value) => containsNetwork(String(value), ip));
  return match.op === 'eq' || match.op === 'in' ? inside : !inside;
}

function unknownRules({ managedRules }: Policy, known: ReadonlySet<string> | null): PolicyWarning[] {
  if (!known) return [];
  const named = [
    ...managedRules.disabledRules.map((id, i) => ({ id, path: `managedRules.disabledRules.${i}` })),
    ...managedRules.logOnlyRules.map((id, i) => ({ id, path: `managedRules.logOnlyRules.${i}` })),
    ...managedRules.exclusions.flatMap(({ ruleId }, i) => (ruleId === null ? [] : [{ id: ruleId, path: `managedRules.exclusions.${i}.ruleId` }])),
  ];
  return named.filter(({ id }) => !known.has(id)).map(({ id, path }) => ({ code: 'unknown_rule', path, message: `The rule set ${managedRules.ruleSet} has no rule ${id}.` }));
}

function missingGeo(policy: Policy, available: WarningFacts['geo']): PolicyWarning[] {
  const uses = [
    ...(policy.geo.mode === 'off' ? [] : [{ needs: 'country', path: 'geo.mode' }]), ...(policy.geo.denyAsns.length > 0 ? [{ needs: 'asn', path: 'geo.denyAsns' }] : []),
    ...[...policy.customRules.map(({ match }, i) => ({ match, path: `customRules.${i}.match` })), ...policy.rateLimits.map(({ match }, i) => ({ match, path: `rateLimits.${i}.match` }))]
      .flatMap(({ match, path }) => (match ? leavesOf(match).map(({ leaf, path: at }) => ({ needs: leaf.field, path: [path, ...at].join('.') })) : [])),
    ...policy.rateLimits.flatMap(({ key }, i) => key.map((needs, j) => ({ needs, path: `rateLimits.${i}.key.${j}` }))),
  ];
  return uses.filter(({ needs }) => (needs === 'country' && !available.country) || (needs === 'asn' && !available.asn))
    .map(({ needs, path }) => ({ code: 'geo_database_missing', path, message: `This installation has no ${needs === 'asn' ? 'network' : 'country'} database: the ${needs} of a request is unknown.` }));
}

function shadowed({ ipLists: { allow, deny } }: Policy): PolicyWarning[] {
  return deny.flatMap((network, i) => {
    const by = allow.find((wider) => containsNetwork(wider, network));
    return by === undefined ? [] : [{ code: 'deny_shadowed_by_allow' as const, path: `ipLists.deny.${i}`, message: `${network} is let in by ${by} in the allow list.` }];
  });
}
