import { leavesOf, type Policy } from '../schemas';

/** What of a policy the organisation's plan bounds (contract gateway.md §8), as the catalogue names it, in the order it is refused. */
export function policyCounts(policy: Policy): readonly { resource: string; used: number; of: string }[] {
  const matches = [...policy.customRules, ...policy.rateLimits].flatMap(({ match }) => (match ? leavesOf(match) : []));
  return [
    { resource: 'gateway.custom_rules', used: policy.customRules.length, of: 'custom rules' },
    { resource: 'gateway.rate_limits', used: policy.rateLimits.length, of: 'rate limits' },
    { resource: 'gateway.matches_leaves', used: matches.filter(({ leaf }) => leaf.op === 'matches').length, of: 'regular expressions' },
    { resource: 'gateway.ip_list_entries', used: policy.ipLists.allow.length + policy.ipLists.deny.length, of: 'IP list entries' },
  ];
}

export const retentionClasses = [1, 7, 30] as const;

/** How long events of a plan are kept, as one of the partitions: the shortest that keeps them long enough. */
export function retentionClass(days: number): (typeof retentionClasses)[number] {
  return retentionClasses.find((kept) => kept >= days) ?? 30;
}
