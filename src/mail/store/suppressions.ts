import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { suppressionReasons } from '../state';

export type SuppressionReason = (typeof suppressionReasons)[number];
export type SuppressionRow = {
  id: Id<'sup'>; mailServiceId: Id<'mls'>; address: string; addressKey: string; reason: SuppressionReason; sourceMessageId: string | null; note: string | null;
  expiresAt: Date | null; createdAt: Date; updatedAt: Date;
};

const columns = `id, mail_service_id as "mailServiceId", address, address_key as "addressKey", reason, source_message_id as "sourceMessageId", note,
  expires_at as "expiresAt", created_at as "createdAt", updated_at as "updatedAt"`;

export type SuppressionFilter = { serviceId: string; addressKey: string | null; reason: SuppressionReason | null };

/** Suppressions in force, newest first, after the key. */
export function listSuppressions(db: Db, filter: SuppressionFilter, page: { after: PageKey | null; limit: number }): Promise<SuppressionRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<SuppressionRow>(db, `select ${columns} from mail_suppression where mail_service_id = $1 and (expires_at is null or expires_at > now())
    and ($2::text is null or address_key = $2) and ($3::text is null or reason = $3)
    and ($4::timestamptz is null or (created_at, id) < ($4::timestamptz, $5::text)) order by created_at desc, id desc limit $6::int`,
  filter.serviceId, filter.addressKey, filter.reason, createdAt, id, page.limit);
}

export type NewSuppression = Pick<SuppressionRow, 'id' | 'address' | 'addressKey' | 'reason' | 'sourceMessageId' | 'note' | 'expiresAt'> & { serviceId: string };

/** The address is suppressed; null when it was already, and stays as it is. One whose time is over makes room. */
export async function insertSuppression(tx: Tx, suppression: NewSuppression): Promise<SuppressionRow | null> {
  const [row] = await rows<SuppressionRow>(tx, `insert into mail_suppression as s (id, mail_service_id, address, address_key, reason, source_message_id, note, expires_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8::timestamptz)
    on conflict (mail_service_id, address_key) do update set id = excluded.id, address = excluded.address, reason = excluded.reason, source_message_id = excluded.source_message_id,
      note = excluded.note, expires_at = excluded.expires_at, created_at = now(), updated_at = now() where s.expires_at <= now()
    returning ${columns}`,
  suppression.id, suppression.serviceId, suppression.address, suppression.addressKey, suppression.reason, suppression.sourceMessageId, suppression.note, suppression.expiresAt);
  return row ?? null;
}

export async function findSuppression(db: Db, serviceId: string, addressKey: string): Promise<SuppressionRow | null> {
  const [row] = await rows<SuppressionRow>(db, `select ${columns} from mail_suppression where mail_service_id = $1 and address_key = $2 and (expires_at is null or expires_at > now())`, serviceId, addressKey);
  return row ?? null;
}

/** Whoever asks: the project of a session, or the service of a key. */
export type SuppressionScope = { projectId: string } | { serviceId: string };

/** It is gone; null when it was absent, foreign or over. */
export async function deleteSuppression(tx: Tx, scope: SuppressionScope, suppressionId: string): Promise<SuppressionRow | null> {
  const [row] = await rows<SuppressionRow>(tx, `delete from mail_suppression where id = $1 and (expires_at is null or expires_at > now()) and mail_service_id in (
    select id from mail_service where deleted_at is null and ($2::text is null or project_id = $2) and ($3::text is null or id = $3)) returning ${columns}`,
  suppressionId, 'projectId' in scope ? scope.projectId : null, 'serviceId' in scope ? scope.serviceId : null);
  return row ?? null;
}
