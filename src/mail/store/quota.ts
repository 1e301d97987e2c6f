import { rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type Period = { used: number; ceiling: number | null; ceilingReason: 'included' | 'spend_limit'; periodEnd: Date };

/** The running period of a service; null before its first use. */
export async function readPeriod(db: Db, serviceId: string): Promise<Period | null> {
  const [row] = await rows<Period>(db, `select recipients::float8 as used, ceiling::float8 as ceiling, ceiling_reason as "ceilingReason", period_end as "periodEnd"
    from mail_usage where mail_service_id = $1 and period_start <= now() and now() < period_end`, serviceId);
  return row ?? null;
}

export type Noted = { serviceId: string; reached: boolean; used: number; ceiling: number; periodEnd: Date };

/** Share of the ceiling that is worth a warning. */
export const warningShare = 0.8;

/** Marks the running periods of these services that have come to four fifths or to the end, each once; answers those. */
export function markQuotaNoted(tx: Tx, serviceIds: readonly string[]): Promise<Noted[]> {
  return rows<Noted>(tx, `
    with due as (
      select mail_service_id, period_start, recipients >= ceiling as reached from mail_usage
      where mail_service_id = any($1::text[]) and period_start <= now() and now() < period_end
        and (recipients >= ceiling and reached_at is null or recipients >= ceiling * ${warningShare} and warned_at is null) order by mail_service_id for update)
    update mail_usage u set warned_at = coalesce(u.warned_at, now()), reached_at = case when d.reached then now() end, updated_at = now()
    from due d where u.mail_service_id = d.mail_service_id and u.period_start = d.period_start
    returning u.mail_service_id as "serviceId", d.reached, u.recipients::float8 as used, u.ceiling::float8 as ceiling, u.period_end as "periodEnd"`, serviceIds);
}
