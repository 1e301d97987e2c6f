import { execute, rows, type Db } from '../../db/client';

export type UsageRow = { mailServiceId: string; recipients: number; included: number; ceiling: number | null; periodStart: Date; periodEnd: Date };

/** What these services have used in the period that holds the instant; none for a service that has not been asked about in it. */
export function readUsage(db: Db, serviceIds: readonly string[], at: Date): Promise<UsageRow[]> {
  return rows<UsageRow>(db, `select mail_service_id as "mailServiceId", recipients::float8 as recipients, included::float8 as included, ceiling::float8 as ceiling,
    period_start as "periodStart", period_end as "periodEnd" from mail_usage
    where mail_service_id = any($1::text[]) and period_start <= $2::timestamptz and period_end > $2::timestamptz`, serviceIds, at);
}

/** The period's row is there; one that is there keeps its counts. */
export async function insertUsage(db: Db, usage: { mailServiceId: string; periodStart: Date; periodEnd: Date; included: number; ceiling: number | null }): Promise<void> {
  await execute(db, `insert into mail_usage (mail_service_id, period_start, period_end, included, ceiling) values ($1, $2::timestamptz, $3::timestamptz, $4::bigint, $5::bigint)
    on conflict (mail_service_id, period_start) do nothing`, usage.mailServiceId, usage.periodStart, usage.periodEnd, usage.included, usage.ceiling);
}

/** What may be used from now on, in the present period and later ones. */
export async function setCeiling(db: Db, serviceId: string, { included, ceiling }: { included: number; ceiling: number | null }): Promise<void> {
  await execute(db, `update mail_usage set included = $2::bigint, ceiling = $3::bigint, updated_at = now() where mail_service_id = $1 and period_end > now()`, serviceId, included, ceiling);
}
