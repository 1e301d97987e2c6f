import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';
import { versionsKept } from './policies';

/** Partitions exist for the days to come, those past their time are dropped; answers how many. A lock that is not free soon ends the attempt. */
export async function turnPartitions(tx: Tx): Promise<number> {
  await execute(tx, `set local lock_timeout = '5s'`);
  await rows(tx, `select ensure_gateway_partitions(now() - interval '1 day', now() + interval '3 days')::text`);
  const [row] = await rows<{ dropped: number }>(tx, 'select drop_gateway_partitions(now()) as dropped');
  return row?.dropped ?? 0;
}

/** Versions beyond the last hundred of a zone, batches and orders of last week, proofs of the last hour, workers not heard of for a day. */
export const pruneSteps: readonly ((db: Db, rowsMax: number) => Promise<number>)[] = [
  (db, max) => execute(db, `delete from gateway_policy_version v using gateway_policy p where p.zone_id = v.zone_id and v.version <= p.version - ${versionsKept}
    and (v.zone_id, v.version) in (select o.zone_id, o.version from gateway_policy_version o join gateway_policy c on c.zone_id = o.zone_id and o.version <= c.version - ${versionsKept} limit $1::int)`, max),
  (db, max) => execute(db, `delete from gateway_batch where (instance_id, seq) in (select instance_id, seq from gateway_batch where at < now() - interval '7 days' limit $1::int)`, max),
  (db, max) => execute(db, `delete from gateway_certificate_order where id in (select id from gateway_certificate_order where ordered_at < now() - interval '7 days' limit $1::int)`, max),
  (db, max) => execute(db, `delete from gateway_acme_token where token in (select token from gateway_acme_token where created_at < now() - interval '1 hour' limit $1::int)`, max),
  (db, max) => execute(db, `delete from gateway_instance where id in (select id from gateway_instance where heartbeat_at < now() - interval '1 day' limit $1::int)`, max),
];
