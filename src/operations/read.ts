import type { PageKey } from '../core/cursor';
import { rows, type Db } from '../db/client';
import { operationColumns, type OperationRow, type OperationState } from './store';

/** `projectId` null: the organisation's own work and that of all its projects. */
export type OperationScope = { orgId: string; projectId: string | null };

/** null for one that is absent or belongs to somebody else. */
export async function findOperation(db: Db, scope: OperationScope, operationId: string): Promise<OperationRow | null> {
  const [row] = await rows<OperationRow>(db, `select ${operationColumns} from operation
    where id = $1 and org_id = $2 and ($3::text is null or project_id = $3)`, operationId, scope.orgId, scope.projectId);
  return row ?? null;
}

/** A keyset page, newest first. */
export function readOperations(
  db: Db, scope: OperationScope, page: { resourceId: string | null; state: OperationState | null; after: PageKey | null; limit: number },
): Promise<OperationRow[]> {
  const conditions = ['org_id = $1'];
  const values: unknown[] = [scope.orgId];
  const value = (given: unknown) => `$${values.push(given)}`;
  if (scope.projectId !== null) conditions.push(`project_id = ${value(scope.projectId)}`);
  if (page.resourceId !== null) conditions.push(`resource_id = ${value(page.resourceId)}`);
  if (page.state !== null) conditions.push(`state = ${value(page.state)}`);
  if (page.after) conditions.push(`(created_at, id) < (${value(page.after[0])}::timestamptz, ${value(page.after[1])})`);
  return rows<OperationRow>(db, `select ${operationColumns} from operation
    where ${conditions.join(' and ')} order by created_at desc, id desc limit ${value(page.limit)}::int`, ...values);
}
