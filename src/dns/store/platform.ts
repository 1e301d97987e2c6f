import { execute, rows, type Db } from '../../db/client';
import type { ZoneRef } from './retention';

/** What was configured when the zones' answers were last made from it. */
export type KnownPlatform = { servers: string[][]; gatewayAddresses: string[] };

/** Null before the first worker started. */
export async function readPlatform(db: Db): Promise<KnownPlatform | null> {
  const [row] = await rows<KnownPlatform>(db, 'select servers, gateway_addresses as "gatewayAddresses" from dns_platform');
  return row ?? null;
}

export async function writePlatform(db: Db, { servers, gatewayAddresses }: KnownPlatform): Promise<void> {
  await execute(db, `insert into dns_platform (servers, gateway_addresses) values ($1::json, $2::text[])
    on conflict (id) do update set servers = excluded.servers, gateway_addresses = excluded.gateway_addresses, updated_at = now()`, JSON.stringify(servers), gatewayAddresses);
}

export type Concern = {
  /** Another number of servers: zones with our names have another NS set. */ count: boolean;
  /** Other addresses: those of names inside the zone. */ addresses: boolean;
  /** Proxied names are answered with others. */ gateway: boolean;
};

/** Live claims after an id whose answers depend on what has changed. */
export function listConcerned(db: Db, after: string, { count, addresses, gateway }: Concern, limit: number): Promise<ZoneRef[]> {
  return rows(db, `select id, org_id as "orgId", project_id as "projectId", domain from dns_zone where id > $1 and deleted_at is null and mode = 'full_hosting' and (
      ($2::boolean and custom_nameservers = '{}')
      or ($3::boolean and exists (select from unnest(custom_nameservers) name where right(name, length(domain) + 1) = '.' || domain))
      or ($4::boolean and proxied_count > 0 and status <> 'pending'))
    order by id limit $5::int`, after, count, addresses, gateway, limit);
}
