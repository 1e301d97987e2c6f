import { prepared, rows, type Database, type Db } from '../../db/client';
import type { Count } from '../rules/summary';

export type TopRow = { dimension: string; key: string; name: string | null; country: string | null; asn: number | null; count: number; lastSeenAt: Date };

/** Requests of a window by bucket, outcome and source. `from` and `to` are whole minutes. */
export function readCounts(database: Database, window: { zoneId: string; from: Date; to: Date; bucketSeconds: number }): Promise<Count[]> {
  return prepared<Count>(database, `
    select floor(extract(epoch from minute - $2::timestamptz) / $4::int)::int as bucket, outcome, source, sum(requests)::float8 as requests
    from gateway_minute where zone_id = $1 and minute >= $2::timestamptz and minute < $3::timestamptz group by 1, 2, 3`,
  [window.zoneId, window.from.toISOString(), window.to.toISOString(), window.bucketSeconds]);
}

/** The ten most frequent keys of every dimension within the whole hours that touch the window, and whether a rest was cut off. */
export async function readTops(database: Database, window: { zoneId: string; from: Date; to: Date }): Promise<{ tops: TopRow[]; truncated: boolean }> {
  const found = await prepared<TopRow & { rest: boolean }>(database, `
    with summed as (
      select dimension, key, (array_agg(name order by hour desc) filter (where name is not null))[1] as name, (array_agg(country order by hour desc) filter (where country is not null))[1] as country,
        (array_agg(asn order by hour desc) filter (where asn is not null))[1] as asn, sum(requests) as requests, max(last_seen_at) as last_seen_at
      from gateway_top_hour where zone_id = $1 and hour >= date_trunc('hour', $2::timestamptz, 'UTC') and hour < $3::timestamptz and dimension <> 'host' group by dimension, key),
    ranked as (
      select *, row_number() over (partition by dimension order by requests desc, key) as place, bool_or(key = '' and requests > 0) over () as rest from summed)
    select dimension, key, name, country, asn::float8 as asn, requests::float8 as count, last_seen_at as "lastSeenAt", rest from ranked
    where key = '' or place <= 11 order by dimension, requests desc, key`, [window.zoneId, window.from.toISOString(), window.to.toISOString()]);
  return { tops: found.filter(({ key }) => key !== ''), truncated: found.some(({ rest }) => rest) };
}

/** Whether details of events of that time were given up while the database was away. */
export async function hasLostEvents(db: Db, from: Date, to: Date): Promise<boolean> {
  const [row] = await rows<{ lost: boolean }>(db, `select exists (select from gateway_batch
    where events_lost > 0 and coalesce(last_at, at) >= $1::timestamptz and coalesce(first_at, at) < $2::timestamptz) as lost`, from, to);
  return row?.lost ?? false;
}

/** Requests by name over the last sixty minutes: of the hour before, the share that is still within them. */
export function readHostRequests(db: Db, zoneId: string): Promise<{ host: string; requests: number }[]> {
  return rows(db, `
    select key as host, round(sum(requests * case when hour = date_trunc('hour', now(), 'UTC') then 1 else 1 - extract(epoch from now() - date_trunc('hour', now(), 'UTC')) / 3600 end))::float8 as requests
    from gateway_top_hour where zone_id = $1 and dimension = 'host' and key <> '' and hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour' group by key`, zoneId);
}
