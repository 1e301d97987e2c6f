import { execute, rows, type Db } from '../../db/client';
import type { Tx } from '../../db/transaction';

export type NewHost = { name: string; region: string; backend: string; capacityBytes: number; maxServices: number };

/** The host carries services from now on. Run at every start and as its heartbeat; what it has promised is never below what it offers. */
export async function registerHost(db: Db, host: NewHost): Promise<void> {
  await execute(db, `insert into postgres_host as h (name, region, backend, capacity_bytes, max_services) values ($1, $2, $3, $4::bigint, $5::int)
    on conflict (name) do update set region = excluded.region, backend = excluded.backend,
      state = case when h.state = 'down' then 'active' else h.state end,
      capacity_bytes = greatest(excluded.capacity_bytes, h.reserved_bytes), max_services = greatest(excluded.max_services, h.services),
      last_seen_at = now(), updated_at = now()`, host.name, host.region, host.backend, host.capacityBytes, host.maxServices);
}

export type NewServer = Omit<NewHost, 'backend'> & { dsnSealed: string; publicHost: string; publicPort: number; sslmode: 'verify-full' | 'require'; caCertificate: string | null };

/** The server is registered as the operator's file says; false when another kind of host has its name. */
export async function registerServer(tx: Tx, server: NewServer): Promise<boolean> {
  return 1 === await execute(tx, `insert into postgres_host as h (name, region, backend, capacity_bytes, max_services, dsn_sealed, public_host, public_port, sslmode, ca_certificate)
    values ($1, $2, 'host_pool', $3::bigint, $4::int, $5, $6, $7::int, $8, $9)
    on conflict (name) do update set region = excluded.region, state = 'active', dsn_sealed = excluded.dsn_sealed, public_host = excluded.public_host,
      public_port = excluded.public_port, sslmode = excluded.sslmode, ca_certificate = excluded.ca_certificate,
      capacity_bytes = greatest(excluded.capacity_bytes, h.reserved_bytes), max_services = greatest(excluded.max_services, h.services), last_seen_at = now(), updated_at = now()
    where h.backend = 'host_pool'`,
  server.name, server.region, server.capacityBytes, server.maxServices, server.dsnSealed, server.publicHost, server.publicPort, server.sslmode, server.caCertificate);
}

/** Registered servers of other names take no new services. */
export async function drainAllBut(tx: Tx, names: readonly string[]): Promise<void> {
  await execute(tx, `update postgres_host set state = 'draining', updated_at = now() where backend = 'host_pool' and state = 'active' and name <> all($1::text[])`, names);
}

type ServerRow = Pick<NewServer, 'dsnSealed' | 'publicHost' | 'publicPort' | 'sslmode' | 'caCertificate' | 'capacityBytes' | 'maxServices'>;

/** A registered server, also one that drains; null for any other host. */
export async function findServer(db: Db, name: string): Promise<ServerRow | null> {
  const [row] = await rows<ServerRow>(db, `select dsn_sealed as "dsnSealed", public_host as "publicHost", public_port as "publicPort", sslmode, ca_certificate as "caCertificate",
    capacity_bytes::float8 as "capacityBytes", max_services as "maxServices" from postgres_host where name = $1 and backend = 'host_pool'`, name);
  return row ?? null;
}

/** What kind of host this is; null when there is none of that name. */
export async function findBackendOf(db: Db, name: string): Promise<string | null> {
  const [row] = await rows<{ backend: string }>(db, 'select backend from postgres_host where name = $1', name);
  return row?.backend ?? null;
}

/** Regions where this backend takes services. */
export async function listRegions(db: Db, backend: string): Promise<string[]> {
  const found = await rows<{ region: string }>(db, `select distinct region from postgres_host where state = 'active' and backend = $1 order by region`, backend);
  return found.map(({ region }) => region);
}

/**
 * Reserves room for the service on the emptiest host of its region and names it; null when none has room. A busy host is
 * passed over first, then waited for: with one host, eight placements at once all find it. What it filled up meanwhile
 * another may still take, so they are asked once more.
 */
export async function reserveHost(
  tx: Tx, wish: { serviceId: string; region: string; backend: string; bytes: number; except: readonly string[] },
): Promise<string | null> {
  for (const wait of ['skip locked', '', 'skip locked']) {
    const [host] = await rows<{ name: string }>(tx, `
      with host as (
        select name from postgres_host
        where region = $2 and backend = $3 and state = 'active' and services < max_services and reserved_bytes + $4::bigint <= capacity_bytes
          and name <> all($5::text[]) and exists (select from postgres_service where id = $1 and host_id is null) order by reserved_bytes, name limit 1 for update ${wait}),
      reserved as (
        update postgres_host h set reserved_bytes = h.reserved_bytes + $4::bigint, services = h.services + 1, updated_at = now()
        from host where h.name = host.name returning h.name)
      update postgres_service s set host_id = reserved.name, reserved_bytes = $4::bigint from reserved
      where s.id = $1 and s.host_id is null returning reserved.name`, wish.serviceId, wish.region, wish.backend, wish.bytes, wish.except);
    if (host) return host.name;
  }
  return null;
}

/** Gives back what the service had reserved. Safe twice: the second finds nothing reserved. */
export async function releaseHost(tx: Tx, serviceId: string): Promise<void> {
  await execute(tx, `with freed as (
      update postgres_service s set host_id = null, reserved_bytes = 0, instance_ref = null, system_id = null
      from (select id, host_id, reserved_bytes from postgres_service where id = $1 and host_id is not null for update) old
      where s.id = old.id returning old.host_id, old.reserved_bytes)
    update postgres_host h set reserved_bytes = h.reserved_bytes - freed.reserved_bytes, services = h.services - 1, updated_at = now()
    from freed where h.name = freed.host_id`, serviceId);
}

/** The service's reservation on its host becomes so many bytes; false when the host has no room for more. Safe twice. */
export async function resizeReservation(tx: Tx, serviceId: string, bytes: number): Promise<boolean> {
  return 1 === await execute(tx, `with old as (
      select id, host_id, reserved_bytes from postgres_service where id = $1 and host_id is not null for update),
    host as (
      update postgres_host h set reserved_bytes = h.reserved_bytes + $2::bigint - old.reserved_bytes, updated_at = now()
      from old where h.name = old.host_id and h.reserved_bytes + $2::bigint - old.reserved_bytes <= h.capacity_bytes returning h.name)
    update postgres_service s set reserved_bytes = $2::bigint from host where s.id = $1`, serviceId, bytes);
}
