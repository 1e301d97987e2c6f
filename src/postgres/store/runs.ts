import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Plan } from '../rules';
import type { Phase, Status, StatusReason } from '../state';
import { serviceColumns, type ServiceRow } from './services';

/** An instance of the pool that was bound to the service. */
export type Claimed = { instanceRef: string; systemId: string | null; host: string; port: number };

/** One accepted intent at work. `generation` is what it may still speak for: a newer intent has a higher one. */
export type Run = { serviceId: string; operationId: string; generation: number };

/**
 * The run is at work, provisioning in this phase; its first step sets the deadline. Null when a newer intent owns the service.
 * `alone`: the statement is its own transaction and need not wait for the disk, because a phase only informs a reader.
 */
export async function enterPhase(db: Db, run: Run, phase: Phase | null, commit: 'alone' | 'together' = 'alone'): Promise<ServiceRow | null> {
  const mode = commit === 'alone' ? `set_config('synchronous_commit', 'off', true)` : `''`;
  const [row] = await rows<ServiceRow>(db, `with mode as materialized (select ${mode})
    update postgres_service s set ${entered},
      phase = case when s.status <> 'provisioning' then null when $3 = 'initializing' and s.system_id is not null then 'starting' else $3 end
    from mode where s.id = $1 and s.generation = $2::int and s.status in ('provisioning', 'updating') returning ${serviceColumns}, null as "operationId"`,
  run.serviceId, run.generation, phase);
  return row ?? null;
}

/**
 * The same for a provisioning that is to have a host at once: room is reserved on the emptiest one of its region that nobody else is reserving on. Without a host
 * when there is none. Not waiting for the disk is safe: what a crash of the database takes back, it takes back together, and the step is repeated.
 */
export async function enterPlacing(db: Db, run: Run, bytesOf: Readonly<Record<Plan, number>>): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(db, `${lax},
    run as (select id, host_id, region, (($3::jsonb)->>plan)::bigint as bytes, case isolation when 'database' then 'host_pool' else 'embedded' end as backend
      from postgres_service, lax where ${owned} and status = 'provisioning' for update of postgres_service),
    host as (select h.name, run.bytes from postgres_host h, run
      where run.host_id is null and h.region = run.region and h.backend = run.backend and h.state = 'active' and h.services < h.max_services and h.reserved_bytes + run.bytes <= h.capacity_bytes
      order by h.reserved_bytes, h.name limit 1 for update of h skip locked),
    reserved as (update postgres_host h set reserved_bytes = h.reserved_bytes + host.bytes, services = h.services + 1, updated_at = now()
      from host where h.name = host.name returning h.name, host.bytes)
    update postgres_service s set ${entered}, phase = 'placing', host_id = coalesce(s.host_id, reserved.name), reserved_bytes = coalesce(reserved.bytes, s.reserved_bytes)
    from run left join reserved on true where s.id = run.id returning ${serviceColumns}, null as "operationId"`,
  run.serviceId, run.generation, JSON.stringify(bytesOf));
  return row ?? null;
}

/** The service while this run owns it in one of these statuses; null otherwise. */
export async function loadRun(db: Db, run: Run, statuses: readonly Status[]): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(db, `select ${serviceColumns}, null as "operationId" from postgres_service s
    where s.id = $1 and s.generation = $2::int and s.status = any($3::text[])`, run.serviceId, run.generation, statuses);
  return row ?? null;
}

/** The same, locked until the transaction ends; a row that changed while this waited is judged as it then is. */
export async function lockRun(tx: Tx, run: Run, statuses: readonly Status[]): Promise<ServiceRow | null> {
  const [row] = await rows<ServiceRow>(tx, `select ${serviceColumns}, null as "operationId" from postgres_service s
    where s.id = $1 and s.generation = $2::int and s.status = any($3::text[]) for update`, run.serviceId, run.generation, statuses);
  return row ?? null;
}

// What a repeat of the step would write again need not reach the disk by itself: the mark at the end does, and WAL is in order.
export function setInstanceRef(db: Db, run: Run, instanceRef: string): Promise<boolean> {
  return changed(db, `${lax} update postgres_service set instance_ref = $3 from lax where ${owned} and status = 'provisioning' and host_id is not null`, run, instanceRef);
}

/** A registered server's address is the service's own; the gateway's follows from configuration. */
export function setInstanceRunning(db: Db, run: Run, { systemId, host, port }: { systemId: string | null; host: string; port: number }): Promise<boolean> {
  return changed(db, `${lax} update postgres_service set system_id = $3, compute = 'running', host = case isolation when 'database' then $4 end,
    port = case isolation when 'database' then $5::int end from lax where ${owned} and status in ('provisioning', 'updating')`, run, systemId, host, port);
}

/** The instance is there and knows the login: gateways may let it in. */
export function openClaimed(db: Db, run: Run, { instanceRef, systemId, host, port }: Claimed): Promise<boolean> {
  return changed(db, `${lax} update postgres_service set instance_ref = $3, system_id = $4, compute = 'running', access_open = true,
    host = case isolation when 'database' then $5 end, port = case isolation when 'database' then $6::int end
    from lax where ${owned} and status = 'provisioning' and host_id is not null`, run, instanceRef, systemId, host, port);
}

/** The server knows the login: gateways may let it in. */
export function openAccess(db: Db, run: Run): Promise<boolean> {
  return changed(db, `${lax} update postgres_service set access_open = true from lax where ${owned} and status in ('provisioning', 'updating')`, run);
}

/** Gateways refuse from the commit on. A service that is deleted was closed with its DELETE. */
export function closeAccess(db: Db, run: Run): Promise<boolean> {
  return changed(db, `update postgres_service set access_open = false where ${owned} and status = 'updating'`, run);
}

export function setStopped(db: Db, run: Run): Promise<boolean> {
  return changed(db, `update postgres_service set compute = 'stopped' where ${owned} and status = 'updating'`, run);
}

/** provisioning → available; `claimed`: open from now on, on this instance. The service as it is now, or null when the compare-and-set lost. */
export async function setAvailable(tx: Tx, run: Run, claimed: Claimed | null): Promise<ServiceRow | null> {
  const values = claimed ? [claimed.instanceRef, claimed.systemId, claimed.host, claimed.port] : [];
  const opened = claimed ? `instance_ref = $3, system_id = $4, compute = 'running', access_open = true, host = case isolation when 'database' then $5 end, port = case isolation when 'database' then $6::int end,` : '';
  const [row] = await rows<ServiceRow>(tx, `update postgres_service s set ${opened} status = 'available', phase = null, deadline_at = null, run_seconds = null, updated_at = now(),
      available_at = coalesce(available_at, now()), deleted_before = null, deletion_requested_at = null
    where ${owned} and status = 'provisioning' and ${claimed ? 'host_id is not null' : 'access_open'} returning ${serviceColumns}, null as "operationId"`, run.serviceId, run.generation, ...values);
  return row ?? null;
}

/** provisioning → failed, after everything it held was given back. */
export function setFailed(tx: Tx, run: Run, reason: StatusReason): Promise<boolean> {
  return changed(tx, `update postgres_service set status = 'failed', status_reason = $3, phase = null, deadline_at = null, run_seconds = null, access_open = false,
      compute = 'stopped', updated_at = now()
    where ${owned} and status = 'provisioning'`, run, reason);
}

/** deleting → deleted. What still has a host is retained and can be brought back for so many hours; a purge cuts that to now. */
export function setDeleted(tx: Tx, run: Run, undeleteHours: number): Promise<boolean> {
  return changed(tx, `update postgres_service set status = 'deleted', deleted_at = now(), deadline_at = null, run_seconds = null, compute = 'stopped', updated_at = now(),
      recoverable_until = case when host_id is null then null when purge then now() else now() + $3::int * interval '1 hour' end
    where ${owned} and status = 'deleting'`, run, undeleteHours);
}

/** Services past their deadline, oldest first. */
export function findOverdue(db: Db, limit: number): Promise<(Pick<ServiceRow, 'id' | 'orgId' | 'projectId' | 'status'> & { deadlineAt: Date })[]> {
  return rows(db, `select id, org_id as "orgId", project_id as "projectId", status, deadline_at as "deadlineAt" from postgres_service
    where deadline_at < now() order by deadline_at limit $1::int`, limit);
}

const entered = `updated_at = now(), run_seconds = null, deadline_at = case when s.run_seconds is null then s.deadline_at else now() + s.run_seconds * interval '1 second' end`;
const owned = 'id = $1 and generation = $2::int';
const lax = `with lax as materialized (select set_config('synchronous_commit', 'off', true))`;

async function changed(db: Db, sql: string, run: Run, ...values: unknown[]): Promise<boolean> {
  return 1 === await execute(db, sql, run.serviceId, run.generation, ...values);
}
