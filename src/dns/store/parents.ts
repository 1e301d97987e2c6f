import { rows, type Db } from '../../db/client';

export type ParentDelegation = { domain: string; token: string; customNameservers: string[]; nameservers: string[]; ttl: number };

/** The closest zone above that is answered here and whose own delegation leads here, with its NS records for the domain; null without one. */
export async function findParentDelegation(db: Db, domain: string): Promise<ParentDelegation | null> {
  const labels = domain.split('.');
  const above = labels.slice(1).map((_, i) => labels.slice(i + 1).join('.')).filter((name) => name.includes('.'));
  const [row] = await rows<ParentDelegation>(db, `
    select z.domain, n.token, z.custom_nameservers as "customNameservers",
      coalesce(array_agg(r.value order by r.value) filter (where r.id is not null), '{}') as nameservers, coalesce(min(r.ttl), 0)::int as ttl
    from dns_zone z join dns_nameserver_assignment n on n.project_id = z.project_id and n.domain = z.domain
    left join dns_record r on r.zone_id = z.id and r.type = 'NS' and r.deleted_at is null and r.name || '.' || z.domain = $1
    where z.domain = any($2::text[]) and z.served and z.status in ('active', 'degraded')
    group by z.domain, n.token, z.custom_nameservers order by length(z.domain) desc limit 1`, domain, above);
  return row ?? null;
}
