import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

/** What a restored service is made from, as long as its row stands: also when it is tried again. */
export type RestoreSource = { sourceServiceId: string; backupId: string; target: Date | null };

export async function setRestoreSource(tx: Tx, serviceId: string, { backupId, target }: { backupId: string; target: Date | null }): Promise<void> {
  await execute(tx, 'update postgres_service set restore_backup_id = $2, restore_target = $3::timestamptz where id = $1', serviceId, backupId, target);
}

/** Null for a service that began empty. */
export async function findRestoreSource(db: Db, serviceId: string): Promise<RestoreSource | null> {
  const [row] = await rows<RestoreSource>(db, `select source_service_id as "sourceServiceId", restore_backup_id as "backupId", restore_target as target
    from postgres_service where id = $1 and restore_backup_id is not null`, serviceId);
  return row ?? null;
}
