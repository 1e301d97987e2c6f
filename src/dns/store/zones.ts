import type { Actor, Cause } from '../../core/caller';
import type { PageKey } from '../../core/cursor';
import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import { violates } from '../../db/errors';
import type { Tx } from '../../db/transaction';
import { AppError } from '../../core/errors';
import type { ShownZoneStatus, StatusReason, ZoneStatus } from '../state';

export type ZoneMode = 'full_hosting' | 'external';

export type ZoneRow = {
  id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'>; domain: string; unicodeDomain: string; registrable: string; mode: ZoneMode;
  status: ZoneStatus; statusReason: StatusReason | null; served: boolean; customNameservers: string[]; formerNameservers: string[]; formerUntil: Date | null;
  seenNameservers: string[]; cnameToken: string | null; provenAt: Date | null; lastCheckedAt: Date | null; nextCheckAt: Date | null;
  /** Of creation, or of the last restore. */ pendingSince: Date; cnameCursor: string | null; checkAttempt: number; ladderStartedAt: Date; checkFailures: number; inconclusives: number; misses: number; firstMissAt: Date | null; lastConclusiveNoAt: Date | null;
  serverProblems: boolean; misdelegated: boolean; version: number; serial: number; lastSyncedAt: Date | null; syncErrorCode: string | null;
  syncErrorMessage: string | null; recordCount: number; proxiedCount: number; activatedAt: Date | null; movedAt: Date | null; suspendedAt: Date | null;
  suspendedReason: 'billing' | 'operator' | null; deletedAt: Date | null; purgeAt: Date | null; createdAt: Date; updatedAt: Date;
  /** Names below DNS_NAMESERVER_SUFFIX and the TXT that proves the claim. */
  token: string; verifyToken: string;
  /** Names of the customer's own under which this project's claim was last proven. */
  provenNameservers: string[];
  /** Lowest version all live servers answer with, or that a push backend has; null while none is live or one of them lacks the zone. */
  ackedVersion: number | null; ackedAt: Date | null;
  appliedVersion: number; versionAt: Date; syncBlocked: boolean; syncForced: boolean;
  /** Addresses of the apex CNAME's target; null without such a record, and while none are known. */
  flattened: { ipv4: string[]; ipv6: string[]; ttl: number } | null;
  gatewayMode: 'off' | 'monitor' | 'block';
};

export const zoneColumns = `z.id, z.org_id as "orgId", z.project_id as "projectId", z.domain, z.unicode_domain as "unicodeDomain", z.registrable, z.mode, z.status,
  z.status_reason as "statusReason", z.served, z.custom_nameservers as "customNameservers", z.former_nameservers as "formerNameservers",
  z.former_until as "formerUntil", z.seen_nameservers as "seenNameservers", z.cname_token as "cnameToken", z.proven_at as "provenAt",
  z.last_checked_at as "lastCheckedAt", z.next_check_at as "nextCheckAt", coalesce(z.restored_at, z.created_at) as "pendingSince",
  z.cname_cursor as "cnameCursor", z.check_attempt as "checkAttempt", z.ladder_started_at as "ladderStartedAt",
  z.check_failures as "checkFailures", z.inconclusives, z.misses, z.first_miss_at as "firstMissAt", z.last_conclusive_no_at as "lastConclusiveNoAt",
  z.server_problems as "serverProblems", z.misdelegated, z.version, z.serial::float8 as serial, z.last_synced_at as "lastSyncedAt",
  z.sync_error_code as "syncErrorCode", z.sync_error_message as "syncErrorMessage", z.record_count as "recordCount", z.proxied_count as "proxiedCount",
  z.activated_at as "activatedAt", z.moved_at as "movedAt", z.suspended_at as "suspendedAt", z.suspended_reason as "suspendedReason",
  z.deleted_at as "deletedAt", z.purge_at as "purgeAt", z.created_at as "createdAt", z.updated_at as "updatedAt",
  n.token, n.verify_token as "verifyToken", n.proven_nameservers as "provenNameservers", p.version as "ackedVersion", p.at as "ackedAt",
  z.applied_version as "appliedVersion", z.version_at as "versionAt", z.sync_blocked as "syncBlocked", z.sync_forced as "syncForced",
  coalesce((select g.mode from gateway_policy g where g.zone_id = z.id), 'monitor') as "gatewayMode",
  (select json_build_object('ipv4', f.ipv4, 'ipv6', f.ipv6, 'ttl', f.ttl) from dns_record c join dns_flattened f on f.zone_id = c.zone_id and f.target = c.value
    where c.zone_id = z.id and c.name = '@' and c.type = 'CNAME' and c.deleted_at is null and f.ipv4 || f.ipv6 <> '{}') as flattened`;

/** A server that has sent no heartbeat for this long is not waited for. */
export const serverLiveSeconds = 15;

const joined = `join dns_nameserver_assignment n on n.project_id = z.project_id and n.domain = z.domain
  left join lateral (
    select case when bool_or(s.push) then z.applied_version when count(*) = count(a.version) then min(a.version) end as version,
      case when bool_or(s.push) then z.applied_at else max(a.at) end as at
    from dns_server s left join dns_ack a on a.server_id = s.id and a.zone_id = z.id
    where s.push or s.heartbeat_at > now() - interval '${serverLiveSeconds} seconds'
  ) p on true`;

/** Shown status in SQL: the same rule as shownZoneStatus. */
const shown = `case when z.deleted_at is not null then 'deleted' when z.suspended_at is not null then 'suspended' else z.status end`;

/** From `purge_at` on nothing of a zone is shown, whenever it is really removed. */
const kept = `z.purged_at is null and (z.purge_at is null or z.purge_at > clock_timestamp())`;

/** A zone of the project, deleted ones too while they can be restored; null when absent, foreign or past that. */
export async function findZone(db: Db, projectId: string, zoneId: string): Promise<ZoneRow | null> {
  const [row] = await rows<ZoneRow>(db, `select ${zoneColumns} from dns_zone z ${joined} where z.id = $1 and z.project_id = $2 and ${kept}`, zoneId, projectId);
  return row ?? null;
}

/** The same, locked until the transaction ends: every writer of a zone and its records takes this first. */
export async function lockZone(tx: Tx, projectId: string, zoneId: string): Promise<ZoneRow | null> {
  await lockRow(tx, zoneId, projectId);
  return findZone(tx, projectId, zoneId);
}

/**
 * Serialises every change of who holds names under one registrable domain, until the transaction ends. It comes before every
 * row lock: a write to one zone may begin or end the answers of another under the same domain.
 */
export async function lockClaims(tx: Tx, registrable: string): Promise<void> {
  await execute(tx, `select pg_advisory_xact_lock(hashtext('dns-claims'), hashtext($1))`, registrable);
}

/** No project: any. */
async function lockRow(tx: Tx, zoneId: string, projectId: string | null): Promise<void> {
  const [zone] = await rows<{ registrable: string }>(tx, 'select registrable from dns_zone where id = $1 and ($2::text is null or project_id = $2::text)', zoneId, projectId);
  if (!zone) return;
  await lockClaims(tx, zone.registrable);
  await execute(tx, 'select from dns_zone where id = $1 for update', zoneId);
}

/** Any zone, for whoever works on it; null when absent or purged. */
export async function loadZone(db: Db, zoneId: string): Promise<ZoneRow | null> {
  const [row] = await rows<ZoneRow>(db, `select ${zoneColumns} from dns_zone z ${joined} where z.id = $1 and z.purged_at is null`, zoneId);
  return row ?? null;
}

export async function lockAnyZone(tx: Tx, zoneId: string): Promise<ZoneRow | null> {
  await lockRow(tx, zoneId, null);
  return loadZone(tx, zoneId);
}

export type ZoneFilter = { projectId: string; status: ShownZoneStatus | null; mode: ZoneMode | null; search: string | null };

/** Zones of the project, newest first, after the key. Deleted ones only when asked for. */
export function listZones(db: Db, filter: ZoneFilter, page: { after: PageKey | null; limit: number }): Promise<ZoneRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<ZoneRow>(db, `select ${zoneColumns} from dns_zone z ${joined}
    where z.project_id = $1 and ${kept}
      and (case when $2::text is null then z.deleted_at is null else ${shown} = $2::text end)
      and ($3::text is null or z.mode = $3::text)
      and ($4::text is null or position($4::text in z.domain) > 0 or position($4::text in z.unicode_domain) > 0)
      and ($5::timestamptz is null or (z.created_at, z.id) < ($5::timestamptz, $6::text))
    order by z.created_at desc, z.id desc limit $7::int`,
  filter.projectId, filter.status, filter.mode, filter.search, createdAt, id, page.limit);
}

/** How many zones of these projects live. */
export async function countZones(db: Db, projectIds: readonly string[]): Promise<number> {
  const [row] = await rows<{ count: number }>(db, `select count(*)::int as count from dns_zone where project_id = any($1::text[]) and deleted_at is null`, projectIds);
  return row?.count ?? 0;
}

export async function liveZoneIds(db: Db, projectId: string): Promise<Id<'zone'>[]> {
  const found = await rows<{ id: Id<'zone'> }>(db, 'select id from dns_zone where project_id = $1 and deleted_at is null order by id', projectId);
  return found.map(({ id }) => id);
}

/** Which of these zones there are: those that are deleted may come back for a while. */
export async function knownZoneIds(db: Db, zoneIds: readonly string[]): Promise<Set<string>> {
  if (zoneIds.length === 0) return new Set();
  return new Set((await rows<{ id: string }>(db, 'select id from dns_zone where id = any($1::text[]) and deleted_at is null', zoneIds)).map(({ id }) => id));
}

/** The project's names and proof for a domain, made at its first claim and the same ever after. */
export async function ensureAssignment(tx: Tx, assignment: { projectId: string; domain: string; token: string; verifyToken: string }): Promise<{ token: string }> {
  const [row] = await rows<{ token: string }>(tx, `insert into dns_nameserver_assignment (project_id, domain, token, verify_token) values ($1, $2, $3, $4)
    on conflict (project_id, domain) do update set domain = excluded.domain returning token`, assignment.projectId, assignment.domain, assignment.token, assignment.verifyToken);
  return row ?? assignment;
}

export async function markEverLive(tx: Tx, projectId: string, domain: string): Promise<void> {
  await execute(tx, 'update dns_nameserver_assignment set ever_live = true where project_id = $1 and domain = $2 and not ever_live', projectId, domain);
}

export type NewZone = {
  id: Id<'zone'>; orgId: Id<'org'>; projectId: Id<'prj'>; domain: string; unicodeDomain: string; registrable: string; mode: ZoneMode;
  customNameservers: readonly string[]; cnameToken: string | null; serial: number; firstCheckSeconds: number;
  /** Who makes version 1. */
  cause: Pick<Cause, 'actor' | 'requestId'>;
};

/** Errors: `zone_exists` when the project has a live claim on the name. */
export async function insertZone(tx: Tx, zone: NewZone): Promise<void> {
  try {
    await execute(tx, `with zone as (insert into dns_zone (id, org_id, project_id, domain, unicode_domain, registrable, mode, custom_nameservers, cname_token, serial, status_reason, next_check_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8::text[], $9, $10::bigint, case when $7 = 'external' then 'awaiting_txt' else 'awaiting_nameservers' end, now() + $11::int * interval '1 second'))
      insert into dns_change_set (zone_id, version, serial, actor, request_id, created, updated, deleted, changes) values ($1, 1, $10::bigint, $12::json, $13, 0, 0, 0, '[]')`,
    zone.id, zone.orgId, zone.projectId, zone.domain, zone.unicodeDomain, zone.registrable, zone.mode, zone.customNameservers, zone.cnameToken, zone.serial, zone.firstCheckSeconds,
    JSON.stringify(zone.cause.actor), zone.cause.requestId);
  } catch (error) {
    throw violates(error, 'dns_zone_of_project') ? zoneExists(zone.domain) : error;
  }
}

export function zoneExists(domain: string): AppError {
  return new AppError('zone_exists', `This project has a zone for ${domain} already.`);
}

/** What proves a later claim of the same project beside its token names. */
export async function rememberProof(tx: Tx, projectId: string, domain: string, names: readonly string[]): Promise<void> {
  await execute(tx, 'update dns_nameserver_assignment set proven_nameservers = $3::text[] where project_id = $1 and domain = $2 and proven_nameservers <> $3::text[]', projectId, domain, names);
}

/** Ends the claim: nothing is answered for it, its proof is void, and it can be restored until `purge_at`. */
export async function markZoneDeleted(tx: Tx, zoneId: string, options: { purgeDays: number; reason: StatusReason | null }): Promise<void> {
  await execute(tx, `update dns_zone set deleted_at = now(), purge_at = now() + $2::int * interval '1 day', served = false, next_check_at = null, proven_at = null,
    status_reason = coalesce($3, status_reason), updated_at = now() where id = $1`, zoneId, options.purgeDays, options.reason);
}

/** Errors: `zone_exists` when the project has claimed the name anew. */
export async function markZoneRestored(tx: Tx, zone: { id: string; domain: string; status: ZoneStatus }): Promise<void> {
  try {
    await execute(tx, `update dns_zone set deleted_at = null, purge_at = null, status = $2, status_reason = case when $2 <> 'pending' then null when mode = 'external' then 'awaiting_txt' else 'awaiting_nameservers' end,
      next_check_at = now(), check_attempt = 0, ladder_started_at = now(), check_failures = 0, inconclusives = 0, misses = 0, first_miss_at = null, restored_at = now(),
      moved_at = case when $2 = 'moved' then now() end, updated_at = now() where id = $1`, zone.id, zone.status);
  } catch (error) {
    throw violates(error, 'dns_zone_of_project') ? zoneExists(zone.domain) : error;
  }
}

/** Whether another claim on the name is live now. */
export async function hasLiveClaim(db: Db, domain: string, exceptZoneId: string): Promise<boolean> {
  const [row] = await rows<{ live: boolean }>(db, `select exists (select from dns_zone
    where domain = $1 and id <> $2 and deleted_at is null and status <> 'pending') as live`, domain, exceptZoneId);
  return row?.live ?? false;
}

export async function setCustomNameservers(tx: Tx, zoneId: string, names: readonly string[]): Promise<void> {
  await execute(tx, `update dns_zone set former_nameservers = array(
      select name from unnest(custom_nameservers || case when former_until > now() then former_nameservers else '{}' end) with ordinality as f (name, at)
      where name <> all($2::text[]) group by name order by min(at) limit 40),
    former_until = now() + interval '7 days', custom_nameservers = $2::text[], updated_at = now() where id = $1`, zoneId, names);
}

/** What a version changed, and who did it. `changes` is kept as JSON. */
export type ChangeSet = { actor: Actor; requestId: string | null; created: number; updated: number; deleted: number; changes: unknown };

/**
 * One version on, with its change set: the zone's counters follow what was written with it. `all`: every answer may have changed.
 * Answers the time of the transaction, which all rows written in it bear.
 */
export async function bumpZone(tx: Tx, zone: { id: string; version: number; serial: number; recordCount: number; proxiedCount: number; all: boolean }, change: ChangeSet): Promise<Date> {
  const [row] = await rows<{ at: Date }>(tx, `with logged as (
      insert into dns_change_set (zone_id, version, serial, actor, request_id, created, updated, deleted, changes)
      values ($1, $2::int, $3::bigint, $7::json, $8, $9::int, $10::int, $11::int, $12::json))
    update dns_zone set version = $2::int, serial = $3::bigint, record_count = $4::int, proxied_count = $5::int,
      status_version = case when $6::boolean then $2::int else status_version end, updated_at = now() where id = $1 returning updated_at as at`,
  zone.id, zone.version, zone.serial, zone.recordCount, zone.proxiedCount, zone.all,
  JSON.stringify(change.actor), change.requestId, change.created, change.updated, change.deleted, JSON.stringify(change.changes));
  if (!row) throw new Error('The zone is locked by its writer, so it is there.');
  return row.at;
}

export async function setSuspension(tx: Tx, orgId: string, reason: 'billing' | 'operator' | null): Promise<number> {
  return reason === null
    ? execute(tx, `update dns_zone set suspended_at = null, suspended_reason = null, updated_at = now() where org_id = $1 and suspended_reason = 'billing'`, orgId)
    : execute(tx, `update dns_zone set suspended_at = now(), suspended_reason = $2, updated_at = now() where org_id = $1 and suspended_at is null and purged_at is null`, orgId, reason);
}
