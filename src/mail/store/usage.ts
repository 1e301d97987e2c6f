import { execute, rows, type Db } from '../../db/client';

export type UsageRow = { mailServiceId: string; recipients: number; included: number; ceiling: number | null; periodStart: Date; periodEnd: Date };

/** What these services have used in the period that holds the instant; none for a service that has not been asked about in it. */
export function readUsage(db: Db, serviceIds: readonly string[], at: Date): Promise<UsageRow[]> {
  return rows<UsageRow>(db, `select mail_service_id as "mailServiceId", recipients::float8 as recipients, included::float8 as included, ceiling::float8 as ceiling,
    period_start as "periodStart", period_end as "periodEnd" from mail_usage
    where mail_service_id = any($1::text[]) and period_start <= $2::timestamptz and period_end > $2::timestamptz`, serviceIds, at);
}

type NewUsage = { mailServiceId: string; periodStart: Date; periodEnd: Date; included: number; paysForMore: boolean };

/**
 * The period's row is there; one that is there keeps its counts. Who pays for more may use any number, unless the organisation has
 * a spend limit: then what is included until billing has worked out the rest.
 */
export async function insertUsage(db: Db, { mailServiceId, periodStart, periodEnd, included, paysForMore }: NewUsage): Promise<void> {
  await execute(db, `insert into mail_usage (mail_service_id, period_start, period_end, included, ceiling, ceiling_reason)
    select s.id, $2::timestamptz, $3::timestamptz, $4::bigint, case when not $5::boolean or a.spend_limit_minor is not null then $4::bigint end,
      case when $5::boolean and a.spend_limit_minor is not null then 'spend_limit' else 'included' end
    from mail_service s left join billing_account a on a.org_id = s.org_id where s.id = $1 on conflict (mail_service_id, period_start) do nothing`,
  mailServiceId, periodStart, periodEnd, included, paysForMore);
}
