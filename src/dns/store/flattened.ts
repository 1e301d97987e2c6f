import type { Id } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type Addresses = { ipv4: string[]; ipv6: string[]; ttl: number };
/** `lease`: when the row comes due again unless it is written before. */
export type DueTarget = { zoneId: Id<'zone'>; target: string; lease: string };

/** Targets of apex CNAME records that are due, the longest due first; nobody else is given them for `leaseSeconds`. Those of no record any more are dropped. */
export async function claimDueTargets(db: Db, limit: number, leaseSeconds: number): Promise<DueTarget[]> {
  await execute(db, `delete from dns_flattened f where f.next_refresh_at <= now() and f.created_at < now() - interval '1 hour'
    and not exists (select from dns_record r where r.zone_id = f.zone_id and r.name = '@' and r.type = 'CNAME' and r.value = f.target and r.deleted_at is null)`);
  return rows<DueTarget>(db, `update dns_flattened f set next_refresh_at = clock_timestamp() + $2::int * interval '1 second'
    from (select d.zone_id, d.target from dns_flattened d join dns_zone z on z.id = d.zone_id
      where d.next_refresh_at <= now() and z.deleted_at is null and z.mode = 'full_hosting' order by d.next_refresh_at limit $1::int for update of d skip locked) due
    where f.zone_id = due.zone_id and f.target = due.target returning f.zone_id as "zoneId", f.target, f.next_refresh_at::text as lease`, limit, leaseSeconds);
}

/** Milliseconds until the next one is due; null without any, which `greatest` would hide: it passes over nulls. */
export async function nextTargetDueInMs(db: Db): Promise<number | null> {
  const [row] = await rows<{ ms: number | null }>(db, `select (extract(epoch from min(d.next_refresh_at) - clock_timestamp()) * 1000)::float8 as ms
    from dns_flattened d join dns_zone z on z.id = d.zone_id where z.deleted_at is null and z.mode = 'full_hosting'`);
  return row?.ms == null ? null : Math.max(0, row.ms);
}

/** What is known of a target, locked; `stale`: nobody could tell for 24 hours, or ever. Null: the row is gone. */
export async function lockTarget(tx: Tx, zoneId: string, target: string): Promise<(Addresses & { stale: boolean }) | null> {
  const [row] = await rows<Addresses & { stale: boolean }>(tx, `select ipv4, ipv6, ttl, coalesce(resolved_at < now() - interval '24 hours', true) as stale
    from dns_flattened where zone_id = $1 and target = $2 for update`, zoneId, target);
  return row ?? null;
}

/** What is answered from this version of the zone on. */
export async function writeTarget(tx: Tx, { zoneId, target }: Pick<DueTarget, 'zoneId' | 'target'>, { ipv4, ipv6, ttl }: Addresses, version: number): Promise<void> {
  await execute(tx, 'update dns_flattened set ipv4 = $3::text[], ipv6 = $4::text[], ttl = $5::int, version = $6::int where zone_id = $1 and target = $2', zoneId, target, ipv4, ipv6, ttl, version);
}

/** When it is asked about next; one that was woken meanwhile stays due. `resolved`: its servers have answered now. */
export async function planTarget(db: Db, { zoneId, target, lease }: DueTarget, { resolved, seconds }: { resolved: boolean; seconds: number }): Promise<void> {
  await execute(db, `update dns_flattened set resolved_at = case when $4::boolean then now() else resolved_at end,
    next_refresh_at = case when next_refresh_at = $3::timestamptz then now() + $5::int * interval '1 second' else next_refresh_at end where zone_id = $1 and target = $2`, zoneId, target, lease, resolved, seconds);
}

/** A target that is about to be written: the write finds its addresses. */
export async function insertTarget(db: Db, { zoneId, target }: Pick<DueTarget, 'zoneId' | 'target'>, { ipv4, ipv6, ttl }: Addresses, seconds: number): Promise<void> {
  await execute(db, `insert into dns_flattened (zone_id, target, ipv4, ipv6, ttl, resolved_at, next_refresh_at) values ($1, $2, $3::text[], $4::text[], $5::int, now(), now() + $6::int * interval '1 second')
    on conflict do nothing`, zoneId, target, ipv4, ipv6, ttl, seconds);
}

/** Addresses of the zone's apex CNAME; null without such a record, and while none are known. */
export async function readFlattened(db: Db, zoneId: string): Promise<Addresses | null> {
  const [row] = await rows<Addresses>(db, `select f.ipv4, f.ipv6, f.ttl from dns_record c join dns_flattened f on f.zone_id = c.zone_id and f.target = c.value
    where c.zone_id = $1 and c.name = '@' and c.type = 'CNAME' and c.deleted_at is null and f.ipv4 || f.ipv6 <> '{}'`, zoneId);
  return row ?? null;
}
