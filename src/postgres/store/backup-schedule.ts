import type { Id } from '../../core/ids';
import { rows, type Db } from '../../db/client';
import type { Plan } from '../rules';
import type { BackupRow } from './backups';

/**
 * Services whose base backup is due (contract postgres.md §5.2): the first at once, then once a day at a minute made from the id, if anything was
 * written since. One that failed is tried again after half an hour.
 */
export function listDue(db: Db, plans: readonly Plan[], limit: number): Promise<{ id: string; projectId: string }[]> {
  return rows(db, `
    select s.id, s.project_id as "projectId" from postgres_service s
    left join lateral (select b.started_at, b.completed_at from postgres_backup b where b.service_id = s.id and b.status = 'complete' and b.kind <> 'final' order by b.started_at desc limit 1) last on true
    cross join lateral (select date_trunc('day', now(), 'UTC') + (abs(hashtext(s.id)::bigint) % 1440) * interval '1 minute' as today) slot
    where s.status = 'available' and s.isolation = 'instance' and s.plan = any($1::text[])
      and not exists (select from postgres_backup b where b.service_id = s.id and (b.status = 'running' or (b.status = 'failed' and b.started_at > now() - interval '30 minutes')))
      and (last.started_at is null
        or (last.started_at < case when slot.today > now() then slot.today - interval '1 day' else slot.today end and s.archived_until > last.completed_at))
    order by last.started_at nulls first, s.id limit $2::int`, plans, limit);
}

/**
 * Backups past their time, and expired ones that are still on their host. One is needed as long as no later backup reaches back over the plan's whole window: a promise of three days holds on
 * every day, and the newest stays.
 */
export function listExpiring(db: Db, keptDays: Readonly<Record<Plan, number>>, limit: number): Promise<Pick<BackupRow, 'id' | 'serviceId'>[]> {
  return rows(db, `
    select b.id, b.service_id as "serviceId" from postgres_backup b join postgres_service s on s.id = b.service_id
    cross join lateral (select ($1::jsonb->>s.plan)::int * interval '1 day' as kept) plan
    where b.kind <> 'final' and s.status in ('available', 'updating', 'suspended') and (b.status = 'expired' and b.dropped_at is null or b.status = 'complete' and b.expires_at < now()
      and exists (select from postgres_backup later where later.service_id = b.service_id and later.status = 'complete' and later.kind <> 'final'
        and later.restore_from > b.restore_from and later.restore_from <= now() - plan.kept)
      and not exists (select from postgres_service made where made.restore_backup_id = b.id and made.status = 'provisioning'))
    order by b.expires_at limit $2::int`, JSON.stringify(keptDays), limit);
}

export type Picked = Pick<BackupRow, 'id' | 'serviceId' | 'systemId'> & { orgId: Id<'org'>; projectId: Id<'prj'> };

/** Any backup that can be restored, with a host to do it; null: there is none. */
export async function pickForDrill(db: Db): Promise<Picked | null> {
  const [row] = await rows<Picked>(db, `
    select b.id, b.service_id as "serviceId", b.system_id as "systemId", s.org_id as "orgId", s.project_id as "projectId"
    from postgres_backup b join postgres_service s on s.id = b.service_id
    where b.status = 'complete' and b.kind <> 'final' and s.status in ('available', 'updating', 'suspended') order by random() limit 1`);
  return row ?? null;
}
