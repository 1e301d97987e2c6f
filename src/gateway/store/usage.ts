import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type HourOfZone = { zoneId: string; orgId: string; requests: string };

/** Up to where billing was told; the row is locked: one tells at a time. */
export async function lockReport(tx: Tx): Promise<Date> {
  const [row] = await rows<{ until: Date }>(tx, 'select reported_until as until from gateway_usage_report for update');
  return row?.until ?? new Date();
}

export async function advanceReport(tx: Tx, until: Date): Promise<void> {
  await execute(tx, 'update gateway_usage_report set reported_until = $1 where reported_until < $1::timestamptz', until);
}

/** Requests of every zone that had any within the hour that begins here. */
export function readHour(db: Db, hour: Date): Promise<HourOfZone[]> {
  return rows<HourOfZone>(db, `select m.zone_id as "zoneId", z.org_id as "orgId", sum(m.requests)::text as requests from gateway_minute m join dns_zone z on z.id = m.zone_id
    where m.minute >= $1::timestamptz and m.minute < $1::timestamptz + interval '1 hour' group by 1, 2 having sum(m.requests) > 0 order by 1`, hour);
}
