import { rows, type Db } from '../../db/client';
import { instanceLiveSeconds } from './policies';

export type OriginHealth = { hostname: string; address: string; healthy: boolean; lastError: string | null; checkedAt: Date };

/** How the live workers found the origins of a zone: healthy where all of them say so; the error is the last one seen. */
export function readOriginHealth(db: Db, zoneId: string): Promise<OriginHealth[]> {
  return rows<OriginHealth>(db, `select hostname, address, bool_and(healthy) as healthy,
      (array_agg(last_error order by o.checked_at desc) filter (where not healthy))[1] as "lastError", max(checked_at) as "checkedAt"
    from gateway_origin o join gateway_instance i on i.id = o.instance_id and i.heartbeat_at > now() - interval '${instanceLiveSeconds} seconds'
    where o.zone_id = $1 group by hostname, address order by hostname, address`, zoneId);
}
