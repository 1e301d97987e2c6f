import { newId } from '../../core/ids';
import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Metric } from '../schemas';

/** One measurement. `occurredAt` must be a function of the key: then a repeat finds the first, however late it comes. */
export type UsageFact = { source: string; key: string; metric: Metric; orgId: string; resourceId: string; quantity: string; occurredAt: Date };
export type Ingested = { stored: number; repeated: number; conflicts: number; rejected: number };

/**
 * Stores up to 1,000 measurements. Known ones are left alone; the same key with another payload is kept aside as a
 * conflict; what is more than 35 days old or 5 minutes ahead is refused.
 */
export async function insertUsage(tx: Tx, facts: readonly UsageFact[]): Promise<Ingested> {
  const columns = columnsOf(facts);
  const [row] = await rows<{ stored: number; rejected: number }>(tx, `
    with ${given}, owner as (
      select distinct on (r.resource_id) r.resource_id, s.id, s.project_id from (select distinct resource_id from timely) r
        join subscription s on s.resource_id = r.resource_id order by r.resource_id, s.created_at desc, s.id desc),
    stored as (
      insert into usage_event (id, org_id, project_id, resource_id, subscription_id, metric, source, key, quantity, occurred_at)
      select t.id, t.org_id, o.project_id, t.resource_id, o.id, t.metric, t.source, t.key, t.quantity, t.occurred_at
      from timely t left join owner o on o.resource_id = t.resource_id order by t.source, t.key, t.id
      on conflict (source, key, occurred_at) do nothing returning 1)
    select (select count(*) from stored)::int as stored, ((select count(*) from given) - (select count(*) from timely))::int as rejected`, ...columns);
  const { stored = 0, rejected = 0 } = row ?? {};
  const known = facts.length - stored - rejected;
  const conflicts = known === 0 ? 0 : await keepConflicts(tx, columns);
  return { stored, rejected, conflicts, repeated: known - conflicts };
}

const given = `
  given as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::numeric[], $8::timestamptz[])
      as g (id, source, key, metric, org_id, resource_id, quantity, occurred_at)),
  timely as (select * from given where occurred_at > now() - interval '35 days' and occurred_at <= now() + interval '5 minutes')`;

function columnsOf(facts: readonly UsageFact[]): string[][] {
  return [
    facts.map(() => newId('use')), facts.map((fact) => fact.source), facts.map((fact) => fact.key), facts.map((fact) => fact.metric), facts.map((fact) => fact.orgId),
    facts.map((fact) => fact.resourceId), facts.map((fact) => fact.quantity), facts.map((fact) => fact.occurredAt.toISOString()),
  ];
}

function keepConflicts(tx: Tx, columns: readonly string[][]): Promise<number> {
  return execute(tx, `
    with ${given} insert into usage_conflict (source, key, occurred_at, stored, refused)
    select t.source, t.key, t.occurred_at, jsonb_build_object('metric', e.metric, 'resourceId', e.resource_id, 'quantity', e.quantity),
      jsonb_build_object('metric', t.metric, 'resourceId', t.resource_id, 'quantity', t.quantity)
    from timely t join usage_event e on e.source = t.source and e.key = t.key and e.occurred_at = t.occurred_at
    where (e.metric, e.resource_id, e.quantity) is distinct from (t.metric, t.resource_id, t.quantity::numeric(20,6))`, ...columns);
}

/** The hours of these events say what the events say. A changed hour has a new revision. */
export async function rebuildBuckets(tx: Tx, facts: readonly UsageFact[]): Promise<void> {
  const hours = new Map(facts.map(({ orgId, resourceId, metric, occurredAt }) => {
    const hour = new Date(Math.floor(occurredAt.getTime() / hourMs) * hourMs).toISOString();
    return [`${orgId} ${resourceId} ${metric} ${hour}`, { orgId, resourceId, metric, hour }] as const;
  }));
  const touched = [...hours.values()];
  await execute(tx, `
    insert into usage_bucket as b (id, org_id, project_id, resource_id, subscription_id, metric, hour, quantity)
    select min(e.id), e.org_id, e.project_id, e.resource_id, e.subscription_id, e.metric, h.hour, sum(e.quantity)
    from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[]) h (org_id, resource_id, metric, hour)
      join usage_event e on e.org_id = h.org_id and e.resource_id = h.resource_id and e.metric = h.metric
        and e.occurred_at >= h.hour and e.occurred_at < h.hour + interval '1 hour'
    where e.subscription_id is not null
    group by e.org_id, e.project_id, e.resource_id, e.subscription_id, e.metric, h.hour order by e.subscription_id, e.metric, h.hour
    on conflict (subscription_id, metric, hour) do update set quantity = excluded.quantity, revision = b.revision + 1, updated_at = now()
      where b.quantity <> excluded.quantity`,
  touched.map((row) => row.orgId), touched.map((row) => row.resourceId), touched.map((row) => row.metric), touched.map((row) => row.hour));
}

const hourMs = 3_600_000;

export type UsageRow = { metric: Metric; resourceId: string; start: Date; quantity: string };
export type UsageFilter = {
  orgId: string; projectId: string | null; from: Date; to: Date; metric: string | null; resourceId: string | null; granularity: 'hour' | 'day'; timeZone: string;
};

/** Use by hour, or by day of the given zone; hours that begin within [from, to). */
export function readUsage(db: Db, filter: UsageFilter): Promise<UsageRow[]> {
  return rows<UsageRow>(db, `
    select metric, resource_id as "resourceId", date_trunc($7, hour, $8) as start, trim_scale(sum(quantity))::text as quantity from usage_bucket
    where org_id = $1 and ($2::text is null or project_id = $2 or project_id is null) and hour >= $3::timestamptz and hour < $4::timestamptz
      and ($5::text is null or metric = $5) and ($6::text is null or resource_id = $6)
    group by 1, 2, 3 order by 3, 1, 2`,
  filter.orgId, filter.projectId, filter.from, filter.to, filter.metric, filter.resourceId, filter.granularity, filter.timeZone);
}

/** How far the hours are known: the last time one was rebuilt, else null. */
export async function usageAsOf(db: Db, orgId: string): Promise<Date | null> {
  const [row] = await rows<{ asOf: Date | null }>(db, `select max(updated_at) as "asOf" from usage_bucket where org_id = $1`, orgId);
  return row?.asOf ?? null;
}
