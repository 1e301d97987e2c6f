import type { CheckDeps } from './check-facts';
import { findAddresses } from './nameservers';
import type { Delegation } from './ports';
import type { Report } from './report';
import { nameserversOf, ourAddresses, tokenNames } from './rules/platform';
import { findParentDelegation } from './store/parents';
import type { ZoneRow } from './store/zones';
import { verificationRecord } from './view';

export type Seen = Delegation & { source: 'network' | 'hosted_parent' };

/** The closest zone above that is answered here delegates by its own NS records; else the parent's servers say. */
export async function delegationOf(deps: CheckDeps, zone: ZoneRow, budgetMs: number): Promise<Seen> {
  const parent = await findParentDelegation(deps.db.prisma, zone.domain);
  if (!parent) return { ...await deps.dnsResolver.delegation(zone.domain, { budgetMs }), source: 'network' };
  const tokens = tokenNames(deps.dnsPlatform, zone.token);
  const nameservers = await Promise.all(parent.nameservers.map(async (name) => {
    const index = tokens.indexOf(name);
    return { name, addresses: index >= 0 ? [...deps.dnsPlatform.servers[index]?.addresses ?? []] : [...(await findAddresses(deps, name, budgetMs)).addresses] };
  }));
  return {
    source: 'hosted_parent', outcome: nameservers.length > 0 ? 'answer' : 'nodata', conclusive: true, consistent: true, ttl: parent.ttl, parentZone: parent.domain,
    parentServers: nameserversOf(deps.dnsPlatform, parent), nameservers,
  };
}

/** As reports show it; null when nothing at all was learnt. */
export function shownDelegation({ outcome, parentZone, parentServers, nameservers, ttl, consistent, source }: Seen): Report['delegation'] {
  if (outcome !== 'answer' && nameservers.length === 0 && parentZone === '') return null;
  return { parentZone, parentServers, nameservers: nameservers.map(({ name }) => name), ttl, consistent, source };
}

export type TxtProof = { name: string; found: string[]; proves: boolean; conclusive: boolean };

/**
 * The TXT record that proves a claim, as the domain's own servers have it: not as ours do, and not by an alias that leads to
 * somebody else's zone.
 */
export async function readTxt(deps: CheckDeps, zone: ZoneRow, budgetMs: number): Promise<TxtProof> {
  const { name, value } = verificationRecord(zone);
  const answer = await deps.dnsResolver.resolve(name, 'TXT', { freshness: 'live', budgetMs });
  const found = answer.records.filter((record) => record.type === 'TXT' && record.name === name).map((record) => record.value.slice(0, 512));
  const isOurs = answer.server !== null && ourAddresses(deps.dnsPlatform).has(answer.server);
  return { name, found: found.slice(0, 5), conclusive: answer.conclusive, proves: answer.conclusive && !isOurs && found.some((text) => text.trim() === value) };
}
