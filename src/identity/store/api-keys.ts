import type { Scope } from '../../core/caller';
import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type ApiKeyRow = {
  id: Id<'key'>; serviceId: Id<'mls'>; orgId: Id<'org'>; projectId: Id<'prj'>; name: string; mode: 'live' | 'test'; prefix: string; last4: string; scopes: Scope[];
  allowedDomains: string[]; expiresAt: Date | null; lastUsedAt: Date | null; replacedBy: string | null; graceUntil: Date | null; revokedAt: Date | null;
  createdBy: string; createdAt: Date; updatedAt: Date;
  /** By the database's clock, as the check of a request sees it. */
  status: 'active' | 'expired' | 'revoked';
};

const columns = `id, service_id as "serviceId", org_id as "orgId", project_id as "projectId", name, mode, prefix, last4, scopes, allowed_domains as "allowedDomains",
  expires_at as "expiresAt", last_used_at as "lastUsedAt", replaced_by as "replacedBy", grace_until as "graceUntil", revoked_at as "revokedAt", created_by as "createdBy",
  created_at as "createdAt", updated_at as "updatedAt",
  case when revoked_at is not null then 'revoked' when expires_at <= now() or grace_until <= now() then 'expired' else 'active' end as status`;

export type NewApiKeyRow = Pick<ApiKeyRow, 'id' | 'serviceId' | 'orgId' | 'projectId' | 'name' | 'mode' | 'prefix' | 'last4' | 'expiresAt' | 'createdBy'> & {
  digest: string; scopes: readonly Scope[]; allowedDomains: readonly string[];
};

export async function insertApiKey(tx: Tx, key: NewApiKeyRow): Promise<ApiKeyRow> {
  const [row] = await rows<ApiKeyRow>(tx, `insert into api_key (id, service_id, org_id, project_id, name, mode, prefix, last4, digest, scopes, allowed_domains, expires_at, created_by)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[], $11::text[], $12::timestamptz, $13) returning ${columns}`,
  key.id, key.serviceId, key.orgId, key.projectId, key.name, key.mode, key.prefix, key.last4, key.digest, key.scopes, key.allowedDomains, key.expiresAt, key.createdBy);
  if (!row) throw new Error('The key was not written.');
  return row;
}

/** A key of the project, whatever its status, locked until the transaction ends; null when absent or foreign. */
export async function lockApiKey(tx: Tx, projectId: string, keyId: string): Promise<ApiKeyRow | null> {
  const [row] = await rows<ApiKeyRow>(tx, `select ${columns} from api_key where id = $1 and project_id = $2 for update`, keyId, projectId);
  return row ?? null;
}

/** Keys of a service, newest first, after the key; revoked ones only when asked for. */
export function listApiKeys(db: Db, filter: { serviceId: string; revoked: boolean }, page: { after: PageKey | null; limit: number }): Promise<ApiKeyRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<ApiKeyRow>(db, `select ${columns} from api_key where service_id = $1 and ($2::boolean or revoked_at is null)
    and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4::text)) order by created_at desc, id desc limit $5::int`, filter.serviceId, filter.revoked, createdAt, id, page.limit);
}

/** Its next use is refused; null when it was revoked before. */
export async function setRevoked(tx: Tx, keyId: string): Promise<ApiKeyRow | null> {
  const [row] = await rows<ApiKeyRow>(tx, `update api_key set revoked_at = now(), updated_at = now() where id = $1 and revoked_at is null returning ${columns}`, keyId);
  return row ?? null;
}

/** It works for these hours more beside the key that takes its place. */
export async function setReplaced(tx: Tx, keyId: string, { replacedBy, graceHours }: { replacedBy: string; graceHours: number }): Promise<ApiKeyRow | null> {
  const [row] = await rows<ApiKeyRow>(tx, `update api_key set replaced_by = $2, grace_until = now() + $3::int * interval '1 hour', updated_at = now()
    where id = $1 and revoked_at is null returning ${columns}`, keyId, replacedBy, graceHours);
  return row ?? null;
}

export function revokeAll(tx: Tx, serviceId: string): Promise<number> {
  return execute(tx, 'update api_key set revoked_at = now(), updated_at = now() where service_id = $1 and revoked_at is null', serviceId);
}
