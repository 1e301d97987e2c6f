import { systemCause } from '../core/caller';
import { inTransaction } from '../db/transaction';
import { appendAudit } from '../identity/service';
import type { WorkDeps } from './provisioning';
import { destroyOnes } from './store/credentials';
import { lockRun } from './store/runs';
import type { ServiceRow } from './store/services';

/** Nothing of the former password is left with us; the server has let go of it. False when a newer intent owns the service. */
export async function markOverlapEnded({ db }: WorkDeps, { id, orgId, projectId, generation }: ServiceRow, version: number): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    if (!await lockRun(tx, { serviceId: id, generation, operationId: '' }, ['available'])) return false;
    await destroyOnes(tx, id, ['previous']);
    appendAudit(tx, {
      orgId, projectId, cause: systemCause('advancePostgresLifecycle'), outcome: 'done', target: { type: 'postgresService', id },
      changes: [{ field: 'credentials.previous', from: version, to: null }],
    });
    return true;
  });
}
