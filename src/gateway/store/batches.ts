import { execute, rows, type Database, type Db } from '../../db/client';
import { inTransaction, type Tx } from '../../db/transaction';
import type { Decision, RuleMatch, SuggestedExclusion } from '../ports';
import type { Policy } from '../schemas';

/** An event by its columns; times as RFC 3339. */
export type EventRecord = {
  id: string; zone_id: string; created_at: string; updated_at: string; count: number;
  action: Exclude<Decision['outcome'], 'clean'>; would_have: Decision['wouldHave']; mode: Policy['mode']; policy_version: number; rule_set_version: string | null;
  source: NonNullable<Decision['source']>; rule_id: string | null; rule_name: string | null; rules: readonly RuleMatch[];
  anomaly_score: number | null; threshold: number | null; suggested_exclusion: SuggestedExclusion | null;
  ip: string; country: string | null; asn: number | null;
  request_id: string; method: string; scheme: string; host: string; path: string; query: string | null;
  http_version: string; tls_version: string | null; user_agent: string | null; referer: string | null;
  status: number; origin_status: number | null; duration_ms: number; bytes_in: number;
};
/** More requests of a row that was stored before. */
export type EventRaise = { id: string; zone_id: string; created_at: string; updated_at: string; count: number };
export type MinuteCount = { zone_id: string; minute: string; outcome: Decision['outcome']; source: string; requests: number; bytes: number };
export type TopCount = { zone_id: string; hour: string; dimension: string; key: string; name: string | null; country: string | null; asn: number | null; requests: number; last_seen_at: string };

export type BatchCounts = { requests: number; eventsLost: number; firstAt: string | null; lastAt: string | null; minutes: readonly MinuteCount[]; tops: readonly TopCount[] };
export type BatchDetails = { rows: readonly EventRecord[]; raises: readonly EventRaise[] };
/** What one worker counted in a moment. (instanceId, seq) is stored once, however often it comes. */
export type EventBatch = { instanceId: string; seq: number; counts: BatchCounts; details: BatchDetails };

export const topKeysMax = 200;

const dimensionsOfLock = 64;
const eventColumns = `created_at, id, zone_id, updated_at, count, action, would_have, mode, policy_version, rule_set_version, source, rule_id, rule_name, rules, anomaly_score, threshold, suggested_exclusion,
  ip, country, asn, request_id, method, scheme, host, path, query, http_version, tls_version, user_agent, referer, status, origin_status, duration_ms, bytes_in`;

/** Stores all of a batch in one transaction; false when it was stored before. `retentionOf`: days an event of a zone is kept; a zone that is gone keeps one. */
export async function storeBatch(database: Database, batch: EventBatch, retentionOf: (zoneIds: readonly string[]) => Promise<ReadonlyMap<string, number>>): Promise<boolean> {
  const { counts, details } = batch;
  const retention = details.rows.length === 0 ? new Map<string, number>() : await retentionOf([...new Set(details.rows.map((row) => row.zone_id))]);
  return inTransaction(database, async (tx) => {
    const isNew = await execute(tx, `insert into gateway_batch (instance_id, seq, requests, events_lost, first_at, last_at) values ($1, $2::bigint, $3::int, $4::int, $5::timestamptz, $6::timestamptz) on conflict do nothing`,
      batch.instanceId, batch.seq, counts.requests, counts.eventsLost, counts.firstAt, counts.lastAt);
    if (isNew === 0) return false;
    await lockZones(tx, counts);
    await addMinutes(tx, counts.minutes);
    await addTops(tx, counts.tops);
    await insertEvents(tx, details.rows.map((row) => ({ ...row, retention_days: retention.get(row.zone_id) ?? 1 })));
    await raiseEvents(tx, details.raises);
    return true;
  });
}

/** Organisations of the zones that are there. */
export function listZoneOwners(db: Db, zoneIds: readonly string[]): Promise<{ zoneId: string; orgId: string }[]> {
  return rows(db, 'select id as "zoneId", org_id as "orgId" from dns_zone where id = any($1::text[])', zoneIds);
}

/** Workers add to the same rows: they take turns by zone, in one order. */
async function lockZones(tx: Tx, { tops, minutes }: BatchCounts): Promise<void> {
  const zoneIds = [...new Set([...tops, ...minutes].map((count) => count.zone_id))];
  if (zoneIds.length === 0) return;
  await rows(tx, `select pg_advisory_xact_lock(hashtext('holdfast-gateway-counts'), place) from (select distinct abs(hashtext(zone) % ${dimensionsOfLock}) as place from unnest($1::text[]) as zone order by place) as places`, zoneIds);
}

async function addMinutes(tx: Tx, minutes: readonly MinuteCount[]): Promise<void> {
  if (minutes.length === 0) return;
  await execute(tx, `insert into gateway_minute (zone_id, minute, outcome, source, requests, bytes)
    select zone_id, minute, outcome, source, requests, bytes from json_to_recordset($1::json) as given (zone_id text, minute timestamptz, outcome text, source text, requests bigint, bytes bigint) order by 1, 2, 3, 4
    on conflict (zone_id, minute, outcome, source) do update set requests = gateway_minute.requests + excluded.requests, bytes = gateway_minute.bytes + excluded.bytes`, json(minutes));
}

/** Keys beyond the first 200 of a zone, hour and dimension are added up under ''. */
async function addTops(tx: Tx, tops: readonly TopCount[]): Promise<void> {
  if (tops.length === 0) return;
  await execute(tx, `with given as (
      select * from json_to_recordset($1::json) as given (zone_id text, hour timestamptz, dimension text, key text, name text, country text, asn bigint, requests bigint, last_seen_at timestamptz)),
    held as (
      select zone_id, hour, dimension, count(*) filter (where key <> '') as keys from gateway_top_hour where (zone_id, hour, dimension) in (select zone_id, hour, dimension from given) group by 1, 2, 3),
    placed as (
      select given.*, known.key is not null as is_known, coalesce(held.keys, 0) as keys,
        row_number() over (partition by given.zone_id, given.hour, given.dimension, known.key is not null or given.key = '' order by given.requests desc, given.key) as place
      from given left join held using (zone_id, hour, dimension) left join gateway_top_hour known using (zone_id, hour, dimension, key)),
    kept as (
      select *, case when is_known or keys + place <= ${topKeysMax} then key else '' end as kept_key from placed)
    insert into gateway_top_hour (zone_id, hour, dimension, key, name, country, asn, requests, last_seen_at)
    select zone_id, hour, dimension, kept_key, max(name) filter (where kept_key <> ''), max(country) filter (where kept_key <> ''), max(asn) filter (where kept_key <> ''), sum(requests), max(last_seen_at)
    from kept group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (zone_id, hour, dimension, key) do update set requests = gateway_top_hour.requests + excluded.requests, last_seen_at = greatest(gateway_top_hour.last_seen_at, excluded.last_seen_at),
      name = coalesce(excluded.name, gateway_top_hour.name), country = coalesce(excluded.country, gateway_top_hour.country), asn = coalesce(excluded.asn, gateway_top_hour.asn)`, json(tops));
}

/** A row that is there already was stored by an earlier request of the same row. */
async function insertEvents(tx: Tx, records: readonly (EventRecord & { retention_days: number })[]): Promise<void> {
  if (records.length === 0) return;
  await execute(tx, `insert into gateway_event (retention_days, ${eventColumns})
    select retention_days, ${eventColumns} from json_to_recordset($1::json) as given (retention_days smallint, created_at timestamptz, id text, zone_id text, updated_at timestamptz, count int, action text, would_have text,
      mode text, policy_version int, rule_set_version text, source text, rule_id text, rule_name text, rules json, anomaly_score int, threshold int, suggested_exclusion json, ip inet, country text, asn bigint,
      request_id text, method text, scheme text, host text, path text, query text, http_version text, tls_version text, user_agent text, referer text, status int, origin_status int, duration_ms double precision, bytes_in bigint)
    on conflict (retention_days, created_at, id) do update set count = gateway_event.count + excluded.count, updated_at = greatest(gateway_event.updated_at, excluded.updated_at)`, json(records));
}

async function raiseEvents(tx: Tx, raises: readonly EventRaise[]): Promise<void> {
  if (raises.length === 0) return;
  await execute(tx, `update gateway_event e set count = e.count + given.count, updated_at = greatest(e.updated_at, given.updated_at)
    from json_to_recordset($1::json) as given (id text, zone_id text, created_at timestamptz, updated_at timestamptz, count int)
    where e.zone_id = given.zone_id and e.created_at = given.created_at and e.id = given.id`, json(raises));
}

/** As PostgreSQL reads it: U+0000 and half characters, which it refuses, become U+FFFD. One such text would cost the whole batch. */
function json(records: readonly unknown[]): string {
  return JSON.stringify(records).replace(/\\u(?:0000|d[89a-f][0-9a-f]{2})/g, '\\ufffd');
}
