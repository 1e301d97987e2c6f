import { type Policy, policySchema } from '../../src/gateway/schemas';

/** The managed rules of a policy that has nothing else than these. */
export function managedSettings(given: Partial<Policy['managedRules']> = {}): Policy['managedRules'] {
  return policySchema.parse({ mode: 'block', managedRules: given }).managedRules;
}
