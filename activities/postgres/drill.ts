import { AppError } from '../../src/core/errors';
import { inTransaction } from '../../src/db/transaction';
import { pickForDrill } from '../../src/postgres/store/backup-schedule';
import { recordDrill } from '../../src/postgres/store/backups';
import { beating } from './backup';
import type { PostgresActivityDeps } from './work';

export type DrillEnd = { backupId: string | null; verified: boolean; tables: number };

/** A backup is only one once it has been a database again. */
export function createDrillActivities(deps: PostgresActivityDeps) {
  return {
    drillBackup: () => drillBackup(deps),
  };
}

/** One backup, any, is restored in full; one that cannot be is an alert. A host that does not answer is a fault of the moment and is tried again. */
async function drillBackup(deps: PostgresActivityDeps): Promise<DrillEnd> {
  const picked = await pickForDrill(deps.db.prisma);
  if (!picked) return { backupId: null, verified: false, tables: 0 };
  const read = await beating(() => deps.postgresBackend.drill(picked.serviceId, picked.id)).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'restore_unavailable') return null;
    throw error;
  });
  const verified = read !== null && read.systemId === picked.systemId;
  await inTransaction(deps.db, async (tx) => {
    await recordDrill(tx, picked.id, verified);
    if (!verified) deps.alerts.raise(tx, {
      action: 'failedDrill', by: 'postgres-restore-drill', orgId: picked.orgId, projectId: picked.projectId, target: { type: 'postgresBackup', id: picked.id },
      changes: [{ field: 'verified', from: null, to: false }],
    });
  });
  return { backupId: picked.id, verified, tables: read?.tables ?? 0 };
}
