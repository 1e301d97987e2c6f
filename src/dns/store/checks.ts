import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Report } from '../report';
import type { StatusReason, ZoneStatus } from '../state';

/** One check of a zone at a time: true for whoever may do it. */
export async function takeCheckLease(db: Db, zoneId: string, seconds: number): Promise<boolean> {
  return await execute(db, `update dns_zone set check_lease_until = now() + $2::int * interval '1 second'
    where id = $1 and deleted_at is null and (check_lease_until is null or check_lease_until < now())`, zoneId, seconds) === 1;
}

export async function releaseCheckLease(db: Db, zoneId: string): Promise<void> {
  await execute(db, 'update dns_zone set check_lease_until = null where id = $1', zoneId);
}

/** The last report with its age in seconds, and whether a check is running now; null when the zone is gone. */
export async function readReport(db: Db, zoneId: string): Promise<{ report: Report | null; ageSeconds: number; checking: boolean } | null> {
  const [row] = await rows<{ report: Report | null; ageSeconds: number; checking: boolean }>(db, `select report, coalesce(check_lease_until > now(), false) as checking,
    coalesce(extract(epoch from clock_timestamp() - last_checked_at), 'infinity')::float8 as "ageSeconds" from dns_zone where id = $1 and deleted_at is null`, zoneId);
  return row ?? null;
}

/** Who holds the name by proof, other than this claim; null when nobody does. */
export async function findHolder(db: Db, domain: string, exceptZoneId: string): Promise<string | null> {
  const [row] = await rows<{ id: string }>(db, `select id from dns_zone where domain = $1 and id <> $2 and deleted_at is null and status in ('active', 'degraded')`, domain, exceptZoneId);
  return row?.id ?? null;
}

export type Checked = {
  id: string; status: ZoneStatus; reason: StatusReason | null; report: Report; nextCheckAt: Date; attempt: number; failures: number; inconclusives: number;
  misses: number; firstMissAt: Date | null; conclusiveNo: boolean; serverProblems: boolean; misdelegated: boolean; provenNow: boolean; seenNameservers: readonly string[] | null; cnameCursor: string | null;
};

/** What a check has changed of its zone. A check begun before the last one stored is not told any more. */
export async function writeCheck(tx: Tx, check: Checked): Promise<void> {
  await execute(tx, `update dns_zone set status = $2, status_reason = $3, report = $4::json, last_checked_at = clock_timestamp(), next_check_at = $5::timestamptz, check_attempt = $6::int,
      check_failures = $7::int, inconclusives = $8::int, misses = $9::int, first_miss_at = $10::timestamptz,
      last_conclusive_no_at = case when $11::boolean then now() else last_conclusive_no_at end, server_problems = $12::boolean, misdelegated = $13::boolean,
      proven_at = case when $2 = 'moved' and status <> 'moved' then null when $14::boolean then coalesce(proven_at, now()) else proven_at end,
      activated_at = case when $2 in ('active', 'degraded') and status not in ('active', 'degraded') then now() else activated_at end,
      moved_at = case when $2 = 'moved' and status <> 'moved' then now() when $2 = 'moved' then moved_at end,
      seen_nameservers = coalesce($15::text[], seen_nameservers), cname_cursor = $16, check_lease_until = null, updated_at = now()
    where id = $1`,
  check.id, check.status, check.reason, JSON.stringify(check.report), check.nextCheckAt, check.attempt, check.failures, check.inconclusives, check.misses, check.firstMissAt,
  check.conclusiveNo, check.serverProblems, check.misdelegated, check.provenNow, check.seenNameservers, check.cnameCursor);
}

/** Starts the ladder of checks anew: the next one is due now. */
export async function restartLadder(tx: Tx, zoneId: string): Promise<void> {
  await execute(tx, 'update dns_zone set check_attempt = 0, ladder_started_at = now(), next_check_at = now() where id = $1', zoneId);
}

/** Zones whose check is overdue by ten minutes: the run that should have done it is gone. */
export function listUnchecked(db: Db, limit: number): Promise<{ id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'>; domain: string }[]> {
  return rows(db, `select z.id, z.org_id as "orgId", z.project_id as "projectId", z.domain from dns_zone z
    where z.deleted_at is null and z.next_check_at < now() - interval '10 minutes'
      and not exists (select from operation o where o.resource_id = z.id and o.kind = 'dns.verify' and o.state in ('pending', 'running'))
    order by z.next_check_at limit $1::int`, limit);
}
