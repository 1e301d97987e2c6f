import type { Id } from '../../core/ids';
import type { PageKey } from '../../core/cursor';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Names, Plan } from '../rules';
import { before, holdingKinds, type Change, type Phase, type Status, type StatusReason, type StorageState } from '../state';

export type ServiceRow = {
  id: Id<'pg'>; orgId: Id<'org'>; projectId: Id<'prj'>; displayName: string; plan: Plan; status: Status; statusBefore: Status | null;
  statusReason: StatusReason | null; phase: Phase | null; generation: number; region: string; version: string; isolation: 'instance' | 'database';
  compute: 'running' | 'idle' | 'stopped'; accessOpen: boolean; host: string | null; port: number | null; database: string; allowedCidrs: string[];
  deletionProtection: boolean; purge: boolean; sourceServiceId: string | null; hostId: string | null; instanceRef: string | null;
  storageState: StorageState; usedBytes: number | null; measuredAt: Date | null; deadlineAt: Date | null; createdAt: Date; updatedAt: Date;
  availableAt: Date | null; suspendedAt: Date | null; deletionRequestedAt: Date | null; deletedAt: Date | null; recoverableUntil: Date | null;
  trialExpiresAt: Date | null; change: Change | null; pendingPlan: Plan | null; deletedBefore: Date | null; systemId: string | null; storageNoticed: boolean;
  earliestRestoreAt: Date | null; archivedUntil: Date | null;
  /** The open operation that holds the service. */
  operationId: Id<'op'> | null;
};

export const serviceColumns = `s.id, s.org_id as "orgId", s.project_id as "projectId", s.display_name as "displayName", s.plan, s.status,
  s.status_before as "statusBefore", s.status_reason as "statusReason", s.phase, s.generation, s.region, s.version, s.isolation, s.compute,
  s.access_open as "accessOpen", s.host, s.port, s.database, s.allowed_cidrs as "allowedCidrs", s.deletion_protection as "deletionProtection",
  s.purge, s.source_service_id as "sourceServiceId", s.host_id as "hostId", s.instance_ref as "instanceRef", s.storage_state as "storageState",
  s.used_bytes::float8 as "usedBytes", s.measured_at as "measuredAt", s.deadline_at as "deadlineAt", s.created_at as "createdAt",
  s.updated_at as "updatedAt", s.available_at as "availableAt", s.suspended_at as "suspendedAt",
  s.deletion_requested_at as "deletionRequestedAt", s.deleted_at as "deletedAt", s.recoverable_until as "recoverableUntil",
  s.trial_expires_at as "trialExpiresAt", s.change, s.pending_plan as "pendingPlan", s.deleted_before as "deletedBefore", s.system_id as "systemId",
  s.storage_noticed as "storageNoticed", s.earliest_restore_at as "earliestRestoreAt", s.archived_until as "archivedUntil"`;

const holder = `(select o.id from operation o where o.resource_id = s.id and o.state in ('pending', 'running')
  and o.kind in (${holdingKinds.map((kind) => `'${kind}'`).join(', ')}) order by o.created_at desc, o.id desc limit 1) as "operationId"`;

export type NewService = {
  id: Id<'pg'>; orgId: Id<'org'>; projectId: Id<'prj'>; displayName: string; plan: Plan; region: string; version: string;
  isolation: 'instance' | 'database'; names: Names; allowedCidrs: readonly string[]; deletionProtection: boolean; trialDays: number | null;
  /** The service it is restored from, and how long that may take; otherwise it is made empty. */
  source?: { serviceId: string; runSeconds: number };
};

/** Seconds making a service may take once a workflow has begun it. */
export const provisionSeconds = 120;

/** The service, provisioning at generation 1, with its first credential still to be made. Its deadline until a workflow begins is an alert. */
export async function insertService(tx: Tx, service: NewService): Promise<ServiceRow> {
  const [row] = await rows<Omit<ServiceRow, 'operationId'>>(tx, `
    with s as (
      insert into postgres_service (id, org_id, project_id, key, display_name, plan, status, region, version, isolation, database, allowed_cidrs,
        deletion_protection, deadline_at, trial_expires_at, run_seconds, source_service_id)
      values ($1, $2, $3, $4, $5, $6, 'provisioning', $7, $8, $9, $10, $11::text[], $12::boolean, now() + interval '10 minutes',
        now() + $13::int * interval '1 day', $15::int, $16)
      returning *),
    credential as (insert into postgres_credential (service_id, version, login) select s.id, 1, $14 from s)
    select ${serviceColumns} from s`,
  service.id, service.orgId, service.projectId, service.names.key, service.displayName, service.plan, service.region, service.version,
  service.isolation, service.names.database, service.allowedCidrs, service.deletionProtection, service.trialDays, service.names.logins[0],
  service.source?.runSeconds ?? provisionSeconds, service.source?.serviceId ?? null);
  if (!row) throw new Error('The service row was not written.');
  return { ...row, operationId: null };
}

/** A service of the project, deleted or not; null when absent, foreign or anonymised. */
export async function findService(db: Db, projectId: string, serviceId: string): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(db, `select ${serviceColumns}, ${holder} from postgres_service s
    where s.id = $1 and s.project_id = $2 and s.anonymised_at is null`, serviceId, projectId);
  return row ?? null;
}

/** The same, locked until the transaction ends: whoever changes a service by request takes this first. */
export async function lockService(tx: Tx, projectId: string, serviceId: string): Promise<ServiceRow | null> {
  await execute(tx, 'select from postgres_service where id = $1 and project_id = $2 for update', serviceId, projectId);
  return findService(tx, projectId, serviceId);
}

/** Services of a project, newest first, after the key. Deleted ones only when asked for. */
export function listServices(db: Db, list: { projectId: string; status: Status | null; after: PageKey | null; limit: number }): Promise<ServiceRow[]> {
  const [createdAt, id] = list.after ?? [null, null];
  return rows<ServiceRow>(db, `select ${serviceColumns}, ${holder} from postgres_service s
    where s.project_id = $1 and s.anonymised_at is null
      and (case when $2::text is null then s.status <> 'deleted' else s.status = $2::text end)
      and ($3::timestamptz is null or (s.created_at, s.id) < ($3::timestamptz, $4::text))
    order by s.created_at desc, s.id desc limit $5::int`, list.projectId, list.status, createdAt, id, list.limit);
}

/** Any service, for whoever works on it; null when absent. */
export async function loadService(db: Db, serviceId: string): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(db, `select ${serviceColumns}, ${holder} from postgres_service s
    where s.id = $1 and s.anonymised_at is null`, serviceId);
  return row ?? null;
}

/** What a request may change at any time; null leaves a field as it is. */
export async function updateSettings(
  tx: Tx, serviceId: string, change: { displayName: string | null; deletionProtection: boolean | null; allowedCidrs: readonly string[] | null },
): Promise<void> {
  await execute(tx, `update postgres_service set display_name = coalesce($2, display_name),
    deletion_protection = coalesce($3::boolean, deletion_protection), allowed_cidrs = coalesce($4::text[], allowed_cidrs), updated_at = now()
    where id = $1`, serviceId, change.displayName, change.deletionProtection, change.allowedCidrs);
}

/** DELETE is accepted: nobody gets in from the commit on, and work of lower generation is void. False when it was too late. */
export async function beginDeletion(tx: Tx, service: { id: string; generation: number; purge: boolean }): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set status = 'deleting', status_before = null, status_reason = null, phase = null,
      suspended_at = null, access_open = false, generation = generation + 1, purge = $3::boolean, deletion_requested_at = now(),
      deadline_at = now() + interval '10 minutes', run_seconds = null, change = null, pending_plan = null, suspended_reason = null, suspended_since = null,
      deleted_before = null, updated_at = now()
    where id = $1 and generation = $2 and status = any($4::text[])`, service.id, service.generation, service.purge, before('deleting'));
}

/** A deletion on its way, or done, keeps nothing; true when that is news. */
export async function askPurge(tx: Tx, serviceId: string): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set purge = true, updated_at = now(),
      recoverable_until = case when status = 'deleted' then now() end
    where id = $1 and status in ('deleting', 'deleted') and not purge`, serviceId);
}

/** Any service, locked until the transaction ends; null when absent. */
export async function lockAnyService(tx: Tx, serviceId: string): Promise<ServiceRow | null> {
  await execute(tx, 'select from postgres_service where id = $1 for update', serviceId);
  return loadService(tx, serviceId);
}

/** Services of an organisation in a status, suspended for the reason where one is given; locked in one order. */
export async function lockOfOrganization(tx: Tx, orgId: string, status: Status, reason: StatusReason | null): Promise<ServiceRow[]> {
  return rows<ServiceRow>(tx, `select ${serviceColumns}, null as "operationId" from postgres_service s
    where s.org_id = $1 and s.status = $2 and ($3::text is null or s.status_reason = $3::text) order by s.id for update`, orgId, status, reason);
}

/** Services of a project that a deletion of the project must delete; locked in one order. */
export async function lockLiving(tx: Tx, projectId: string): Promise<ServiceRow[]> {
  await execute(tx, `select from postgres_service where project_id = $1 and status not in ('deleting', 'deleted') order by id for update`, projectId);
  return rows<ServiceRow>(tx, `select ${serviceColumns}, ${holder} from postgres_service s
    where s.project_id = $1 and s.status not in ('deleting', 'deleted') order by s.id`, projectId);
}

/** How many services of the projects are not deleted yet. */
export async function countUndeleted(db: Db, projectIds: readonly string[]): Promise<number> {
  const [row] = await rows<{ count: number }>(db, `select count(*)::int as count from postgres_service
    where project_id = any($1::text[]) and status <> 'deleted'`, projectIds);
  return row?.count ?? 0;
}
