import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { BackupKind, BackupStatus } from '../state';

export type BackupRow = {
  id: Id<'bak'>; serviceId: Id<'pg'>; kind: BackupKind; status: BackupStatus; sizeBytes: number | null; systemId: string | null; startedAt: Date; completedAt: Date | null;
  expiresAt: Date | null; restoreFrom: Date | null; restoreUntil: Date | null; verifiedAt: Date | null; updatedAt: Date;
};

const columns = `b.id, b.service_id as "serviceId", b.kind, b.status, b.size_bytes::float8 as "sizeBytes", b.system_id as "systemId", b.started_at as "startedAt",
  b.completed_at as "completedAt", b.expires_at as "expiresAt", b.restore_from as "restoreFrom", b.verified_at as "verifiedAt", b.updated_at as "updatedAt",
  case when b.status = 'complete' then case b.kind when 'final' then b.restore_from else greatest(b.restore_from, s.archived_until) end end as "restoreUntil"`;
const source = 'postgres_backup b join postgres_service s on s.id = b.service_id';
/** What a restore can begin with. */
const usable = `b.status = 'complete' and b.kind <> 'final'`;

export async function insertBackup(tx: Tx, backup: { id: Id<'bak'>; serviceId: string; kind: BackupKind }): Promise<BackupRow> {
  await execute(tx, 'insert into postgres_backup (id, service_id, kind) values ($1, $2, $3)', backup.id, backup.serviceId, backup.kind);
  const row = await findBackup(tx, backup.serviceId, backup.id);
  if (!row) throw new Error('The backup row was not written.');
  return row;
}

export async function findBackup(db: Db, serviceId: string, backupId: string): Promise<BackupRow | null> {
  const [row] = await rows<BackupRow>(db, `select ${columns} from ${source} where b.service_id = $1 and b.id = $2`, serviceId, backupId);
  return row ?? null;
}

/** Newest first, after the key. */
export function listBackups(db: Db, { serviceId, after, limit }: { serviceId: string; after: PageKey | null; limit: number }): Promise<BackupRow[]> {
  const [startedAt, id] = after ?? [null, null];
  return rows<BackupRow>(db, `select ${columns} from ${source} where b.service_id = $1 and ($2::timestamptz is null or (b.started_at, b.id) < ($2::timestamptz, $3::text))
    order by b.started_at desc, b.id desc limit $4::int`, serviceId, startedAt, id, limit);
}

/** Manual backups that are kept or under way, and whether any is under way. */
export async function countBackups(db: Db, serviceId: string): Promise<{ manual: number; running: number }> {
  const [row] = await rows<{ manual: number; running: number }>(db, `select count(*) filter (where kind = 'manual' and status in ('running', 'complete'))::int as manual,
    count(*) filter (where status = 'running')::int as running from postgres_backup where service_id = $1`, serviceId);
  return row ?? { manual: 0, running: 0 };
}

/** The newest backup from which the time can be reached; null: there is none that old. */
export async function backupBefore(db: Db, serviceId: string, time: Date): Promise<BackupRow | null> {
  const [row] = await rows<BackupRow>(db, `select ${columns} from ${source} where b.service_id = $1 and ${usable} and b.restore_from <= $2::timestamptz
    order by b.restore_from desc limit 1`, serviceId, time);
  return row ?? null;
}

export type Taken = { sizeBytes: number; from: string; systemId: string };

/** running → complete, and the service's window reaches to it. False when it was no longer running. */
export async function setBackupComplete(tx: Tx, backupId: string, taken: Taken, keptDays: number): Promise<boolean> {
  const changed = await execute(tx, `update postgres_backup set updated_at = now(), status = 'complete', completed_at = now(), size_bytes = $2::bigint, restore_from = $3::timestamptz, system_id = $4,
    expires_at = now() + $5::int * interval '1 day' where id = $1 and status = 'running'`, backupId, taken.sizeBytes, taken.from, taken.systemId, keptDays);
  return changed === 1;
}

/** running → failed. False when it was no longer running. */
export async function setBackupFailed(tx: Tx, backupId: string): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_backup set updated_at = now(), status = 'failed' where id = $1 and status = 'running'`, backupId);
}

/** The service can be restored from its oldest backup on; called whenever a backup begins or ceases to count. */
export async function refreshWindow(tx: Tx, serviceId: string): Promise<void> {
  await execute(tx, `update postgres_service s set earliest_restore_at = (select min(b.restore_from) from postgres_backup b where b.service_id = s.id and ${usable}) where s.id = $1`, serviceId);
}

/** What a deletion has kept, as the last of the service's backups. Safe twice. */
export async function insertFinal(tx: Tx, id: Id<'bak'>, serviceId: string): Promise<void> {
  await execute(tx, `insert into postgres_backup (id, service_id, kind, status, size_bytes, system_id, completed_at, restore_from, expires_at)
    select $1, s.id, 'final', 'complete', coalesce(s.used_bytes, 0), s.system_id, s.deleted_at, s.deleted_at, s.recoverable_until from postgres_service s
    where s.id = $2 and s.status = 'deleted' and s.recoverable_until > now()
      and not exists (select from postgres_backup b where b.service_id = s.id and b.kind = 'final' and b.status = 'complete')`, id, serviceId);
}

/** Backups of these kinds are gone; what ran has failed. */
export async function endBackups(tx: Tx, serviceId: string, kinds: readonly BackupKind[]): Promise<void> {
  await execute(tx, `update postgres_backup set updated_at = now(), status = case status when 'running' then 'failed' else 'expired' end
    where service_id = $1 and status in ('running', 'complete') and kind = any($2::text[])`, serviceId, kinds);
  await refreshWindow(tx, serviceId);
}

/** complete → expired, unless a service is being made of it. False when it is not expired now. */
export async function setExpired(tx: Tx, backupId: string): Promise<boolean> {
  await execute(tx, `update postgres_backup b set updated_at = now(), status = 'expired' where id = $1 and status = 'complete'
    and not exists (select from postgres_service made where made.restore_backup_id = b.id and made.status = 'provisioning')`, backupId);
  const [row] = await rows<{ expired: boolean }>(tx, `select status = 'expired' as expired from postgres_backup where id = $1`, backupId);
  return row?.expired ?? false;
}

/** Nothing of an expired backup is left on its host. */
export async function setDropped(db: Db, backupId: string): Promise<void> {
  await execute(db, `update postgres_backup set dropped_at = now() where id = $1 and status = 'expired'`, backupId);
}

/** The newest archived log of a service: until then it can be restored. Times only move forward. */
export async function recordArchived(db: Db, serviceId: string, until: string | null): Promise<void> {
  if (until === null) return;
  await execute(db, `update postgres_service set archived_until = $2::timestamptz where id = $1 and archived_until is distinct from greatest(archived_until, $2::timestamptz)`, serviceId, until);
}

/** A drill has been made; `ok`: the backup became a database again. */
export async function recordDrill(tx: Tx, backupId: string, ok: boolean): Promise<void> {
  await execute(tx, 'update postgres_backup set updated_at = now(), drilled_at = now(), verified_at = case when $2::boolean then now() else verified_at end where id = $1', backupId, ok);
}
