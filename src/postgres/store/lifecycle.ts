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

export type TrialStep = 'notice' | 'suspend' | 'relabel' | 'delete';

/** Days before the end at which owners are told; what was missed is told late, once. */
const noticeDays = `case when s.trial_expires_at <= now() + interval '1 day' then 1 when s.trial_expires_at <= now() + interval '3 days' then 3 else 7 end`;

/** Trials time has something to do to, the earliest end first. A suspended one is deleted seven days after its trial suspended it. */
export function listTrialsDue(db: Db, limit: number): Promise<{ id: string; step: TrialStep; days: number }[]> {
  return rows(db, `select id, step, case step when 'notice' then days else 0 end as days from (
      select s.id, s.trial_expires_at, ${noticeDays} as days, case
          when s.trial_expires_at > now() then case when s.trial_expires_at <= now() + interval '7 days' and coalesce(s.trial_notice, 8) > ${noticeDays} then 'notice' end
          when s.status = 'available' then 'suspend'
          when s.status = 'suspended' and s.status_reason = 'user' then 'relabel'
          when s.status = 'suspended' and s.status_reason = 'trial_expired' and s.suspended_at <= now() - interval '7 days' then 'delete' end as step
      from postgres_service s where s.trial_expires_at is not null and s.status not in ('deleting', 'deleted', 'failed')) due
    where step is not null order by trial_expires_at, id limit $1::int`, limit);
}

/** Owners are told of so many days; false when they were before. */
export async function setTrialNotice(tx: Tx, serviceId: string, days: number): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set trial_notice = $2::int
    where id = $1 and trial_expires_at is not null and coalesce(trial_notice, 8) > $2::int and status not in ('deleting', 'deleted', 'failed')`, serviceId, days);
}

/** What its customer had suspended when the trial ended is suspended for that from now on. */
export async function setTrialEnded(tx: Tx, serviceId: string): Promise<boolean> {
  return 1 === await execute(tx, `update postgres_service set status_reason = 'trial_expired', suspended_at = now(), updated_at = now()
    where id = $1 and status = 'suspended' and status_reason = 'user' and trial_expires_at <= now()`, serviceId);
}

/** Available services with a former password whose time is over, longest first. */
export function listEndedOverlaps(db: Db, limit: number): Promise<ServiceRow[]> {
  return rows<ServiceRow>(db, `select ${serviceColumns}, null as "operationId" from postgres_service s join postgres_credential c on c.service_id = s.id
    where c.state = 'previous' and c.valid_until <= now() and s.status = 'available' order by c.valid_until limit $1::int`, limit);
}
