import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { ServiceStatus, SuspendedReason } from '../state';

export type MailPlan = 'launch' | 'growth' | 'business';
export type ServiceRow = {
  id: Id<'mls'>; orgId: Id<'org'>; projectId: Id<'prj'>; displayName: string; plan: MailPlan; status: ServiceStatus; suspendedReason: SuspendedReason | null;
  suspendedAt: Date | null; sendsPerSecond: number; deletedAt: Date | null; createdAt: Date; updatedAt: Date;
  domainCount: number; apiKeyCount: number; webhookCount: number;
};

/** Keys that count: neither revoked nor replaced by another. */
const columns = `s.id, s.org_id as "orgId", s.project_id as "projectId", s.display_name as "displayName", s.plan, s.status, s.suspended_reason as "suspendedReason",
  s.suspended_at as "suspendedAt", s.sends_per_second as "sendsPerSecond", s.deleted_at as "deletedAt", s.created_at as "createdAt", s.updated_at as "updatedAt",
  (select count(*) from mail_domain d where d.mail_service_id = s.id and d.deleted_at is null)::int as "domainCount",
  (select count(*) from api_key k where k.service_id = s.id and k.revoked_at is null and k.replaced_by is null)::int as "apiKeyCount",
  (select count(*) from mail_webhook w where w.mail_service_id = s.id)::int as "webhookCount"`;

export type NewService = { id: Id<'mls'>; orgId: Id<'org'>; projectId: Id<'prj'>; displayName: string; plan: MailPlan; sendsPerSecond: number };

export async function insertService(tx: Tx, service: NewService): Promise<void> {
  await execute(tx, `insert into mail_service (id, org_id, project_id, display_name, plan, sends_per_second) values ($1, $2, $3, $4, $5, $6::int)`,
    service.id, service.orgId, service.projectId, service.displayName, service.plan, service.sendsPerSecond);
}

/** A living service of the project; null when absent, foreign or deleted. */
export async function findService(db: Db, projectId: string, serviceId: string): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(db, `select ${columns} from mail_service s where s.id = $1 and s.project_id = $2 and s.deleted_at is null`, serviceId, projectId);
  return row ?? null;
}

/** The same, locked until the transaction ends: taken by whoever writes the service or adds to it. */
export async function lockService(tx: Tx, projectId: string, serviceId: string): Promise<ServiceRow | null> {
  await execute(tx, 'select from mail_service where id = $1 and project_id = $2 for update', serviceId, projectId);
  return findService(tx, projectId, serviceId);
}

/** Any service, also one that is going or gone, locked until the transaction ends. */
export async function lockAnyService(tx: Tx, serviceId: string): Promise<ServiceRow | null> {
  await execute(tx, 'select from mail_service where id = $1 for update', serviceId);
  return loadService(tx, serviceId);
}

export async function loadService(db: Db, serviceId: string): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(db, `select ${columns} from mail_service s where s.id = $1`, serviceId);
  return row ?? null;
}

/** Living services of the project, newest first, after the key. */
export function listServices(db: Db, projectId: string, page: { after: PageKey | null; limit: number }): Promise<ServiceRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<ServiceRow>(db, `select ${columns} from mail_service s where s.project_id = $1 and s.deleted_at is null
    and ($2::timestamptz is null or (s.created_at, s.id) < ($2::timestamptz, $3::text)) order by s.created_at desc, s.id desc limit $4::int`, projectId, createdAt, id, page.limit);
}

export async function liveServiceIds(db: Db, scope: { projectId: string } | { orgId: string }): Promise<Id<'mls'>[]> {
  const [column, value] = 'projectId' in scope ? ['project_id', scope.projectId] : ['org_id', scope.orgId];
  return (await rows<{ id: Id<'mls'> }>(db, `select id from mail_service where ${column} = $1 and deleted_at is null order by id`, value)).map(({ id }) => id);
}

/** How many services of these projects are not removed yet. */
export async function countServices(db: Db, projectIds: readonly string[]): Promise<number> {
  const [row] = await rows<{ count: number }>(db, `select count(*)::int as count from mail_service where project_id = any($1::text[]) and status <> 'removed'`, projectIds);
  return row?.count ?? 0;
}

export async function setDisplayName(tx: Tx, serviceId: string, displayName: string): Promise<void> {
  await execute(tx, 'update mail_service set display_name = $2, updated_at = now() where id = $1', serviceId, displayName);
}

export async function setPlan(tx: Tx, serviceId: string, { plan, sendsPerSecond }: { plan: MailPlan; sendsPerSecond: number }): Promise<void> {
  await execute(tx, 'update mail_service set plan = $2, sends_per_second = $3::int, updated_at = now() where id = $1', serviceId, plan, sendsPerSecond);
}

/** The reason holds the service back; false when it did already, or the service is going. */
export async function addSuspension(tx: Tx, serviceId: string, reason: SuspendedReason): Promise<boolean> {
  return await execute(tx, `insert into mail_service_suspension (mail_service_id, reason)
    select id, $2 from mail_service where id = $1 and status in ('active', 'suspended') and suspended_reason is distinct from $2 on conflict do nothing`, serviceId, reason) === 1;
}

/** active → suspended; false when it was not active. */
export async function setSuspended(tx: Tx, serviceId: string, reason: SuspendedReason): Promise<boolean> {
  return await execute(tx, `update mail_service set status = 'suspended', suspended_reason = $2, suspended_at = now(), updated_at = now() where id = $1 and status = 'active'`, serviceId, reason) === 1;
}

/**
 * The reason (null: every one) holds the service back no more: suspended → active, or it is shown as suspended for the oldest of the
 * others. A lifted judgement on reputation begins anew. Answers its status; null when nothing that is shown has changed.
 */
export async function liftSuspension(tx: Tx, serviceId: string, reason: SuspendedReason | null): Promise<'active' | 'suspended' | null> {
  const [row] = await rows<{ status: 'active' | 'suspended' }>(tx, `
    with lifted as (delete from mail_service_suspension where mail_service_id = $1 and ($2::text is null or reason = $2)),
    other as (select reason from mail_service_suspension where mail_service_id = $1 and reason <> $2 order by created_at, reason limit 1)
    update mail_service s set status = case when o.reason is null then 'active' else 'suspended' end, suspended_reason = o.reason, updated_at = now(),
      suspended_at = case when o.reason is not null then s.suspended_at end, reputation_since = case when coalesce($2, 'reputation') = 'reputation' then now() else s.reputation_since end
    from (select 1) one left join other o on true
    where s.id = $1 and s.status = 'suspended' and ($2::text is null or s.suspended_reason = $2) returning s.status`, serviceId, reason);
  return row?.status ?? null;
}

/** active, suspended → deleting; false when it was neither. */
export async function setDeleting(tx: Tx, serviceId: string): Promise<boolean> {
  await execute(tx, 'delete from mail_service_suspension where mail_service_id = $1', serviceId);
  return await execute(tx, `update mail_service set status = 'deleting', suspended_reason = null, suspended_at = null, deleted_at = now(), updated_at = now()
    where id = $1 and status in ('active', 'suspended')`, serviceId) === 1;
}

/** deleting → removed; false when it was not deleting. */
export async function setRemoved(tx: Tx, serviceId: string): Promise<boolean> {
  return await execute(tx, `update mail_service set status = 'removed', updated_at = now() where id = $1 and status = 'deleting'`, serviceId) === 1;
}

export type GoingRow = { id: Id<'mls'>; orgId: Id<'org'>; projectId: Id<'prj'>; displayName: string; deletedAt: Date };

/** Services that have been deleting for longer than this; `orphaned`: those without open work alone. */
export function listGoing(db: Db, { olderThanMinutes, orphaned, limit }: { olderThanMinutes: number; orphaned: boolean; limit: number }): Promise<GoingRow[]> {
  return rows<GoingRow>(db, `select id, org_id as "orgId", project_id as "projectId", display_name as "displayName", deleted_at as "deletedAt" from mail_service s
    where status = 'deleting' and deleted_at < now() - $1::int * interval '1 minute'
      and (not $2::boolean or not exists (select from operation o where o.resource_id = s.id and o.kind = 'mail.delete_service' and o.state in ('pending', 'running')))
    order by deleted_at limit $3::int`, olderThanMinutes, orphaned, limit);
}
