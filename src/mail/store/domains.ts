import { AppError } from '../../core/errors';
import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import { violates } from '../../db/errors';
import type { Tx } from '../../db/transaction';
import type { DomainFailureReason, DomainStatus } from '../state';

export type DomainRow = {
  id: Id<'dom'>; mailServiceId: Id<'mls'>; orgId: Id<'org'>; projectId: Id<'prj'>; domain: string; status: DomainStatus; failureReason: DomainFailureReason | null;
  token: string; returnPath: string; hostedZoneId: string | null; awaitVersion: number | null; checkCount: number; misses: number; missedAt: Date | null;
  dmarcPolicy: string | null; lastCheckedAt: Date | null; nextCheckAt: Date | null; verificationDeadline: Date; verifiedAt: Date | null; degradedAt: Date | null;
  deletedAt: Date | null; createdAt: Date; updatedAt: Date;
};

const columns = `id, mail_service_id as "mailServiceId", org_id as "orgId", project_id as "projectId", domain, status, failure_reason as "failureReason", token,
  return_path as "returnPath", hosted_zone_id as "hostedZoneId", await_version as "awaitVersion", check_count as "checkCount", misses, missed_at as "missedAt",
  dmarc_policy as "dmarcPolicy", last_checked_at as "lastCheckedAt", next_check_at as "nextCheckAt", verification_deadline as "verificationDeadline",
  verified_at as "verifiedAt", degraded_at as "degradedAt", deleted_at as "deletedAt", created_at as "createdAt", updated_at as "updatedAt"`;

export type NewDomain = {
  id: Id<'dom'>; mailServiceId: string; orgId: string; projectId: string; domain: string; token: string; returnPath: string; now: Date; verificationDeadline: Date;
};

/** Errors: `domain_exists` when the project has the name already. */
export async function insertDomain(tx: Tx, domain: NewDomain): Promise<void> {
  try {
    await execute(tx, `insert into mail_domain (id, mail_service_id, org_id, project_id, domain, token, return_path, next_check_at, verification_deadline)
      values ($1, $2, $3, $4, $5, $6, $7, $8::timestamptz, $9::timestamptz)`,
    domain.id, domain.mailServiceId, domain.orgId, domain.projectId, domain.domain, domain.token, domain.returnPath, domain.now, domain.verificationDeadline);
  } catch (error) {
    throw violates(error, 'mail_domain_of_project') ? domainExists(domain.domain) : error;
  }
}

export function domainExists(domain: string): AppError {
  return new AppError('domain_exists', `Another mail service of this project has ${domain} already. Delete it there first.`);
}

/** A living domain of the project by id or canonical name; null when absent, foreign or deleted. */
export async function findDomain(db: Db, projectId: string, ref: { id: string } | { name: string }): Promise<DomainRow | null> {
  const [column, value] = 'id' in ref ? ['id', ref.id] : ['domain', ref.name];
  const [row] = await rows<DomainRow>(db, `select ${columns} from mail_domain where project_id = $1 and ${column} = $2 and deleted_at is null`, projectId, value);
  return row ?? null;
}

/** Any domain that is not deleted. */
export async function loadDomain(db: Db, domainId: string): Promise<DomainRow | null> {
  const [row] = await rows<DomainRow>(db, `select ${columns} from mail_domain where id = $1 and deleted_at is null`, domainId);
  return row ?? null;
}

/** The same, locked until the transaction ends. */
export async function lockDomain(tx: Tx, domainId: string): Promise<DomainRow | null> {
  await execute(tx, 'select from mail_domain where id = $1 for update', domainId);
  return loadDomain(tx, domainId);
}

/** Living domains of a service, newest first, after the key. */
export function listDomains(db: Db, serviceId: string, page: { after: PageKey | null; limit: number }): Promise<DomainRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<DomainRow>(db, `select ${columns} from mail_domain where mail_service_id = $1 and deleted_at is null
    and ($2::timestamptz is null or (created_at, id) < ($2::timestamptz, $3::text)) order by created_at desc, id desc limit $4::int`, serviceId, createdAt, id, page.limit);
}

export async function listDomainIds(db: Db, serviceId: string): Promise<Id<'dom'>[]> {
  return (await rows<{ id: Id<'dom'> }>(db, 'select id from mail_domain where mail_service_id = $1 and deleted_at is null order by id', serviceId)).map(({ id }) => id);
}

/** Verified and degraded domains whose check is due, the longest due first. */
export async function listDue(db: Db, now: Date, limit: number): Promise<Id<'dom'>[]> {
  return (await rows<{ id: Id<'dom'> }>(db, `select id from mail_domain where deleted_at is null and status in ('verified', 'degraded') and next_check_at <= $1::timestamptz
    order by next_check_at, id limit $2::int`, now, limit)).map(({ id }) => id);
}

/** Pending domains whose check is overdue by ten minutes: the run that should have done it is gone. */
export function listUnchecked(db: Db, limit: number): Promise<Pick<DomainRow, 'id' | 'orgId' | 'projectId' | 'domain'>[]> {
  return rows(db, `select id, org_id as "orgId", project_id as "projectId", domain from mail_domain d
    where deleted_at is null and status = 'pending' and next_check_at < now() - interval '10 minutes'
      and not exists (select from operation o where o.resource_id = d.id and o.kind = 'mail.verify_domain' and o.state in ('pending', 'running'))
    order by next_check_at limit $1::int`, limit);
}

export type CheckedDomain = Pick<DomainRow, 'status' | 'failureReason' | 'misses' | 'missedAt' | 'dmarcPolicy' | 'nextCheckAt' | 'verifiedAt' | 'degradedAt'>;

/** What a check makes of a domain, if nobody was faster since `before` was read. */
export async function writeCheck(tx: Tx, before: Pick<DomainRow, 'id' | 'status' | 'checkCount'>, after: CheckedDomain, checkedAt: Date): Promise<boolean> {
  return await execute(tx, `update mail_domain set status = $4, failure_reason = $5, misses = $6::int, missed_at = $7::timestamptz, dmarc_policy = $8, next_check_at = $9::timestamptz,
      verified_at = $10::timestamptz, degraded_at = $11::timestamptz, last_checked_at = $12::timestamptz, check_count = check_count + 1, await_version = null, updated_at = now()
    where id = $1 and status = $2 and check_count = $3::int and deleted_at is null`,
  before.id, before.status, before.checkCount, after.status, after.failureReason, after.misses, after.missedAt, after.dmarcPolicy, after.nextCheckAt, after.verifiedAt, after.degradedAt, checkedAt) === 1;
}

/** failed, suspended → pending with a new window; false when it was neither. */
export async function reopenWindow(tx: Tx, domainId: string, { now, deadline, from }: { now: Date; deadline: Date; from: 'failed' | 'suspended' }): Promise<boolean> {
  return await execute(tx, `update mail_domain set status = 'pending', failure_reason = null, misses = 0, missed_at = null, degraded_at = null, next_check_at = $2::timestamptz,
    verification_deadline = $3::timestamptz, updated_at = now() where id = $1 and status = $4 and deleted_at is null`, domainId, now, deadline, from) === 1;
}

/** Nothing may be sent, and nothing is checked, until an operator lifts it. */
export async function setDomainSuspended(tx: Tx, domainId: string): Promise<boolean> {
  return await execute(tx, `update mail_domain set status = 'suspended', failure_reason = null, degraded_at = null, next_check_at = null, updated_at = now()
    where id = $1 and status <> 'suspended' and deleted_at is null`, domainId) === 1;
}

export async function setHosted(tx: Tx, domainId: string, { zoneId, version }: { zoneId: string | null; version: number | null }): Promise<void> {
  await execute(tx, 'update mail_domain set hosted_zone_id = $2, await_version = $3::int, updated_at = now() where id = $1', domainId, zoneId, version);
}

/** The next check is not later than this; failed and suspended domains have none. */
export async function checkBy(tx: Tx, domainId: string, at: Date): Promise<void> {
  await execute(tx, `update mail_domain set next_check_at = least(next_check_at, $2::timestamptz), updated_at = now() where id = $1 and next_check_at is not null`, domainId, at);
}

export async function markDomainDeleted(tx: Tx, domainId: string): Promise<void> {
  await execute(tx, 'update mail_domain set deleted_at = now(), next_check_at = null, updated_at = now() where id = $1', domainId);
}
