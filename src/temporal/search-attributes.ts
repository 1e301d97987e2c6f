import { defineSearchAttributeKey, SearchAttributeType, type SearchAttributePair } from '@temporalio/common';

/** Keyword attributes on every start (design.md §5); they must exist in the namespace before the first use. */
const keys = {
  orgId: defineSearchAttributeKey('OrgId', SearchAttributeType.KEYWORD),
  projectId: defineSearchAttributeKey('ProjectId', SearchAttributeType.KEYWORD),
  resourceId: defineSearchAttributeKey('ResourceId', SearchAttributeType.KEYWORD),
  product: defineSearchAttributeKey('Product', SearchAttributeType.KEYWORD),
  operation: defineSearchAttributeKey('Operation', SearchAttributeType.KEYWORD),
};

export const searchAttributeNames = Object.values(keys).map((key) => key.name);

/** `operation` is the id of the row a customer polls, so a job is found by what a customer can quote. */
export function searchAttributes(
  of: { product: string; orgId?: string | null; projectId?: string | null; resourceId?: string | null; operation?: string | null },
): SearchAttributePair[] {
  const pairs: SearchAttributePair[] = [{ key: keys.product, value: of.product }];
  if (of.orgId) pairs.push({ key: keys.orgId, value: of.orgId });
  if (of.projectId) pairs.push({ key: keys.projectId, value: of.projectId });
  if (of.resourceId) pairs.push({ key: keys.resourceId, value: of.resourceId });
  if (of.operation) pairs.push({ key: keys.operation, value: of.operation });
  return pairs;
}
