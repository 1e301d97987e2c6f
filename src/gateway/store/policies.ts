import type { PageKey } from '../../core/cursor';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { PolicyChange } from '../rules/changes';
import type { Policy } from '../schemas';

/** `document` is parsed by whoever reads it: it may be of an older version of this program. */
export type PolicyRow = { zoneId: string; version: number; document: unknown; updatedBy: string | null; createdAt: Date; updatedAt: Date };
export type VersionRow = { version: number; updatedBy: string | null; createdAt: Date; changes: PolicyChange[] };

const columns = `zone_id as "zoneId", version, document, updated_by as "updatedBy", created_at as "createdAt", updated_at as "updatedAt"`;

/** Null: nothing was ever written for the zone. */
export async function findPolicy(db: Db, zoneId: string): Promise<PolicyRow | null> {
  const [row] = await rows<PolicyRow>(db, `select ${columns} from gateway_policy where zone_id = $1`, zoneId);
  return row ?? null;
}

/** The same; writers of the zone's policy come one after the other until the transaction ends. */
export async function lockPolicy(tx: Tx, zoneId: string): Promise<PolicyRow | null> {
  await execute(tx, `select pg_advisory_xact_lock(hashtext('gateway-policy'), hashtext($1))`, zoneId);
  return findPolicy(tx, zoneId);
}

export type NewVersion = { zoneId: string; version: number; policy: Policy; changes: readonly PolicyChange[]; updatedBy: string | null };

/** The policy is at this version, which follows the one before; null when somebody else wrote it meanwhile. The gateway hears of it with the commit. */
export async function writePolicy(tx: Tx, { zoneId, version, policy, changes, updatedBy }: NewVersion): Promise<PolicyRow | null> {
  const [row] = await rows<PolicyRow>(tx, `
    with written as (
      insert into gateway_policy as p (zone_id, version, mode, document, updated_by, created_at, updated_at)
      select $1, $2::int, $3, $4::jsonb, $5, clock_timestamp(), clock_timestamp() where $2::int = 1 or exists (select from gateway_policy where zone_id = $1)
      on conflict (zone_id) do update set version = excluded.version, mode = excluded.mode, document = excluded.document, updated_by = excluded.updated_by, updated_at = clock_timestamp()
        where p.version = $2::int - 1
      returning ${columns}),
    kept as (
      insert into gateway_policy_version (zone_id, version, document, changes, updated_by, created_at)
      select "zoneId", version, document, $6::jsonb, "updatedBy", "updatedAt" from written)
    select * from written`, zoneId, version, policy.mode, JSON.stringify(policy), updatedBy, JSON.stringify(changes));
  return row ?? null;
}

/** Of a zone's versions the last so many are kept. */
export const versionsKept = 100;
const isKept = `version > (select max(version) from gateway_policy where zone_id = $1) - ${versionsKept}`;

/** Newest first, after the key. */
export function listVersions(db: Db, zoneId: string, page: { after: PageKey | null; limit: number }): Promise<VersionRow[]> {
  return rows<VersionRow>(db, `select version, updated_by as "updatedBy", created_at as "createdAt", changes from gateway_policy_version
    where zone_id = $1 and ${isKept} and ($2::int is null or version < $2::int) order by version desc limit $3::int`, zoneId, page.after?.[0] ?? null, page.limit);
}

/** A version that is still kept, with its time. */
export async function findVersion(db: Db, zoneId: string, version: number): Promise<PolicyRow | null> {
  const [row] = await rows<PolicyRow>(db, `select zone_id as "zoneId", version, document, updated_by as "updatedBy", created_at as "createdAt", created_at as "updatedAt"
    from gateway_policy_version where zone_id = $1 and version = $2::int and ${isKept}`, zoneId, version);
  return row ?? null;
}

export type Applied = { instances: number; applied: number; appliedAt: Date | null };

/** A gateway worker that has sent no heartbeat for this long is not waited for. */
export const instanceLiveSeconds = 15;

/** How many of the live workers judge by this version or a later one; `appliedAt` once all of them do. */
export async function readApplied(db: Db, zoneId: string, version: number): Promise<Applied> {
  const [row] = await rows<Applied>(db, `
    select count(*)::int as instances, count(a.at)::int as applied, case when count(*) = count(a.at) then max(a.at) end as "appliedAt"
    from gateway_instance i left join gateway_ack a on a.instance_id = i.id and a.zone_id = $1 and a.policy_version >= $2::int
    where i.heartbeat_at > now() - interval '${instanceLiveSeconds} seconds' and i.state <> 'draining'`, zoneId, version);
  return row ?? { instances: 0, applied: 0, appliedAt: null };
}
