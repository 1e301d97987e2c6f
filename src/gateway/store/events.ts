import type { PageKey } from '../../core/cursor';
import { rows, type Db } from '../../db/client';
import type { EventView } from '../schemas';

export type EventRow = Omit<EventView, 'createdAt' | 'updatedAt' | 'asn' | 'bytesIn'> & { retentionDays: number; createdAt: Date; updatedAt: Date; asn: bigint | null; bytesIn: bigint };

const columns = `retention_days as "retentionDays", id, zone_id as "zoneId", created_at as "createdAt", updated_at as "updatedAt", count, action, would_have as "wouldHave", mode,
  policy_version as "policyVersion", rule_set_version as "ruleSetVersion", source, rule_id as "ruleId", rule_name as "ruleName", rules, anomaly_score as "anomalyScore", threshold,
  suggested_exclusion as "suggestedExclusion", host(ip) as ip, country, asn, request_id as "requestId", method, scheme, host, path, query, http_version as "httpVersion",
  tls_version as "tlsVersion", user_agent as "userAgent", referer, status, origin_status as "originStatus", duration_ms as "durationMs", bytes_in as "bytesIn"`;

/** Half open: from included, to not. Absent members do not filter. */
export type EventFilter = {
  zoneId: string; from: Date; to: Date; actions: readonly string[] | null; sources: readonly string[] | null; ruleId: string | null; ip: string | null; country: string | null;
  host: string | null; pathLike: string | null; method: string | null; requestId: string | null;
};

/** Newest first, after the key. Days outside the window are not read. */
export function listEvents(db: Db, filter: EventFilter, page: { after: PageKey | null; limit: number }): Promise<EventRow[]> {
  const [createdAt, id] = page.after ?? [null, null];
  return rows<EventRow>(db, `select ${columns} from gateway_event
    where zone_id = $1 and created_at >= $2::timestamptz and created_at < $3::timestamptz
      and ($4::text[] is null or action = any($4::text[])) and ($5::text[] is null or source = any($5::text[])) and ($6::text is null or rule_id = $6::text)
      and ($7::inet is null or ip <<= $7::inet) and ($8::text is null or country = $8::text) and ($9::text is null or host = $9::text)
      and ($10::text is null or path like $10::text) and ($11::text is null or method = $11::text) and ($12::text is null or request_id = $12::text)
      and ($13::timestamptz is null or (created_at, id) < ($13::timestamptz, $14::text))
    order by created_at desc, id desc limit $15::int`,
  filter.zoneId, filter.from, filter.to, filter.actions, filter.sources, filter.ruleId, filter.ip, filter.country, filter.host, filter.pathLike, filter.method, filter.requestId,
  createdAt, id, page.limit);
}

/** `at` is the time in the id: only that day is read. */
export async function findEvent(db: Db, key: { zoneId: string; id: string; at: Date }): Promise<EventRow | null> {
  const [row] = await rows<EventRow>(db, `select ${columns} from gateway_event
    where zone_id = $1 and id = $2 and created_at between $3::timestamptz - interval '1 second' and $3::timestamptz + interval '1 second' limit 1`, key.zoneId, key.id, key.at);
  return row ?? null;
}
