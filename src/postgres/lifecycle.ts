import { systemCause } from '../core/caller';
import { inTransaction } from '../db/transaction';
import { appendAudit } from '../identity/service';
import type { WorkDeps } from './provisioning';
import { settleBackups } from './backups';
import { releaseHost } from './store/hosts';
import { anonymise } from './store/lifecycle';
import type { ServiceRow } from './store/services';

/** The data of a deleted service is gone from its host: its room is free and nobody's name is kept. Safe twice. */
export async function markPurged({ db }: WorkDeps, { id, orgId, projectId }: ServiceRow): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    await releaseHost(tx, id);
    if (!await anonymise(tx, id)) return false;
    await settleBackups(tx, id, false);
    appendAudit(tx, {
      orgId, projectId, cause: systemCause('advancePostgresLifecycle'), outcome: 'done', target: { type: 'postgresService', id },
      changes: [{ field: 'anonymised', from: false, to: true }],
    });
    return true;
  });
}
