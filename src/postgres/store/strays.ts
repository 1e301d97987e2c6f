import { execute, rows, type Db } from '../../db/client';
import type { Id } from '../../core/ids';
import type { Plan } from '../rules';
import type { Status } from '../state';

export type Owner = { id: string; orgId: Id<'org'>; projectId: Id<'prj'>; status: Status; plan: Plan; generation: number; hostId: string | null; purged: boolean };

/** Hosts of a backend that can be asked. */
export async function listReporting(db: Db, backend: string): Promise<string[]> {
  return (await rows<{ name: string }>(db, `select name from postgres_host where backend = $1 and state <> 'down' order by name`, backend)).map(({ name }) => name);
}

/** What our rows say of these services; a service we never had is missing. */
export function findOwners(db: Db, serviceIds: readonly string[]): Promise<Owner[]> {
  return rows<Owner>(db, `select id, org_id as "orgId", project_id as "projectId", status, plan, generation, host_id as "hostId", anonymised_at is not null as purged
    from postgres_service where id = any($1::text[])`, serviceIds);
}

/** Minutes for which this instance has been without a living row. */
export async function noteStray(db: Db, { hostId, instanceRef, serviceId }: { hostId: string; instanceRef: string; serviceId: string | null }): Promise<number> {
  const [row] = await rows<{ minutes: number }>(db, `insert into postgres_stray as s (host_id, instance_ref, service_id) values ($1, $2, $3)
    on conflict (host_id, instance_ref) do update set last_seen_at = now() returning (extract(epoch from now() - s.first_seen_at) / 60)::float8 as minutes`, hostId, instanceRef, serviceId);
  return row?.minutes ?? 0;
}

/** What is no stray now begins anew should it become one. */
export async function forgetStrays(db: Db, hostId: string, except: readonly string[]): Promise<void> {
  await execute(db, 'delete from postgres_stray where host_id = $1 and instance_ref <> all($2::text[])', hostId, except);
}
