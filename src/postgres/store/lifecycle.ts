import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { serviceColumns, type ServiceRow } from './services';

/** Days after which a deleted service that kept no data is anonymised; what kept data goes when it can no longer be brought back. */
const plainDays = 7;

const expired = `s.status = 'deleted' and s.anonymised_at is null
  and coalesce(s.recoverable_until, s.deleted_at + interval '${plainDays} days') <= now()`;

/** Deleted services whose time to come back has passed, longest first. No undelete is accepted from then on, so nothing races with a purge. */
export function listExpired(db: Db, limit: number): Promise<ServiceRow[]> {
  return rows<ServiceRow>(db, `select ${serviceColumns}, null as "operationId" from postgres_service s
    where ${expired} order by s.recoverable_until nulls last, s.id limit $1::int`, limit);
}

/** deleted → anonymised: id, project, plan and times stay. False when another was faster. */
export async function anonymise(tx: Tx, serviceId: string): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service s set anonymised_at = now(), updated_at = now(), display_name = null, allowed_cidrs = '{}',
    host = null, port = null, used_bytes = null, measured_at = null where s.id = $1 and ${expired}`, serviceId);
}
