import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type Reputation = { serviceId: string; attempted: number; hardBounced: number; complained: number };

/** Live mail of active services within seven days, and since an operator last lifted a suspension. */
export function readReputations(db: Db, attemptedMin: number): Promise<Reputation[]> {
  return rows<Reputation>(db, `
    select h.mail_service_id as "serviceId", sum(h.live_attempted)::float8 as attempted, sum(h.live_hard_bounced)::float8 as "hardBounced", sum(h.live_complained)::float8 as complained
    from mail_stats_hour h join mail_service s on s.id = h.mail_service_id and s.status = 'active'
    where h.hour > now() - interval '7 days' and (s.reputation_since is null or h.hour >= s.reputation_since)
    group by h.mail_service_id having sum(h.live_attempted) >= $1::int order by 1`, attemptedMin);
}

/** True once a day. */
export async function takeWarning(tx: Tx, serviceId: string): Promise<boolean> {
  return await execute(tx, `update mail_service set warned_at = now() where id = $1 and status = 'active' and (warned_at is null or warned_at < now() - interval '1 day')`, serviceId) === 1;
}
