import { execute, rows } from '../../db/client';
import type { Tx } from '../../db/transaction';
import type { Claim } from '../rules/holder';

/** A live claim with what decides who holds its name. */
export type ClaimRow = Claim & { domain: string; served: boolean; token: string; customNameservers: string[]; proven: boolean };
export type DelegationRow = { domain: string; name: string; value: string };

/** All live claims under a registrable domain. */
export function listClaims(tx: Tx, registrable: string): Promise<ClaimRow[]> {
  return rows<ClaimRow>(tx, `select z.id as "zoneId", z.project_id as "projectId", z.domain, z.mode, z.status, coalesce(z.status_reason = 'claimed_elsewhere', false) as "claimedElsewhere",
      z.activated_at as "activatedAt", z.served, z.misdelegated as "leadsHereUnproven", n.token, z.custom_nameservers as "customNameservers", z.proven_at is not null as proven
    from dns_zone z join dns_nameserver_assignment n on n.project_id = z.project_id and n.domain = z.domain
    where z.registrable = $1 and z.deleted_at is null order by z.id`, registrable);
}

/** Projects that were ever live here with one of these names. */
export function listEverLive(tx: Tx, domains: readonly string[]): Promise<{ projectId: string; domain: string }[]> {
  return rows(tx, `select project_id as "projectId", domain from dns_nameserver_assignment where ever_live and domain = any($1::text[])`, domains);
}

/** Active NS records of the zones under a registrable domain: they delegate names below. */
export function listDelegations(tx: Tx, registrable: string): Promise<DelegationRow[]> {
  return rows<DelegationRow>(tx, `select z.domain, r.name, r.value from dns_record r join dns_zone z on z.id = r.zone_id
    where z.registrable = $1 and z.deleted_at is null and r.deleted_at is null and r.type = 'NS'`, registrable);
}

/** Served is stored where the servers and the unique index see it; end what ends first, so a name never has two. */
export async function writeServed(tx: Tx, zoneIds: readonly string[], served: boolean): Promise<void> {
  if (zoneIds.length > 0) await execute(tx, `update dns_zone set served = $2::boolean, updated_at = now() where id = any($1::text[])`, zoneIds, served);
}
