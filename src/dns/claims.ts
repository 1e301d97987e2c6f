import type { Tx } from '../db/transaction';
import { tokenNames, type Platform } from './rules/platform';
import { isAtOrBelow } from './rules/domains';
import { holderOf, isServed } from './rules/holder';
import { grouped } from './rules/rrset';
import { isLive } from './state';
import { listClaims, listDelegations, listEverLive, writeServed, type ClaimRow, type DelegationRow } from './store/claims';
import { loadZone, lockClaims } from './store/zones';
import { bumpWhole } from './versions';

/**
 * Who is answered under a registrable domain follows from the claims as they are in this transaction (contract dns.md
 * §2.3). Called by everything that creates, deletes, restores or moves a zone or writes NS records. `changing`: the zone whose
 * new version is written in this transaction in any case; every other whose answers begin or end gets one here.
 */
export async function settleClaims(tx: Tx, platform: Platform, registrable: string, changing: string | null = null): Promise<void> {
  await lockClaims(tx, registrable);
  const claims = (await listClaims(tx, registrable)).map((claim) => ({ ...claim, nameservers: [...tokenNames(platform, claim.token), ...(claim.proven ? claim.customNameservers : [])] }));
  const everLive = await listEverLive(tx, [...new Set(claims.map(({ domain }) => domain))]);
  const served = servedClaims(claims, everLive, await listDelegations(tx, registrable));
  const ending = claims.filter((claim) => claim.served && !served.has(claim.zoneId)).map(({ zoneId }) => zoneId);
  const beginning = claims.filter((claim) => !claim.served && served.has(claim.zoneId)).map(({ zoneId }) => zoneId);
  await writeServed(tx, ending, false);
  await writeServed(tx, beginning, true);
  for (const zoneId of [...ending, ...beginning].filter((id) => id !== changing)) {
    const zone = await loadZone(tx, zoneId);
    if (zone) await bumpWhole(tx, zone);
  }
}

/** `nameservers`: names that show whose zone it is. Custom ones do once they are proven: anybody can choose those that a parent delegates to. */
type NamedClaim = ClaimRow & { nameservers: readonly string[] };

/** Ids of the claims our servers answer; names from the top down, for a zone above decides by its delegation. */
function servedClaims(claims: readonly NamedClaim[], everLive: readonly { projectId: string; domain: string }[], delegations: readonly DelegationRow[]): Set<string> {
  const served: NamedClaim[] = [];
  for (const [domain, there] of [...grouped(claims, (claim) => claim.domain)].toSorted(([a], [b]) => a.length - b.length)) {
    const holder = holderOf(there, new Set(everLive.filter((entry) => entry.domain === domain).map(({ projectId }) => projectId)));
    if (holder && isServed(holder, closestAbove(holder, served, delegations))) served.push(holder);
  }
  return new Set(served.map(({ zoneId }) => zoneId));
}

function closestAbove(claim: NamedClaim, served: readonly NamedClaim[], delegations: readonly DelegationRow[]): { domain: string; delegatedTo: string[] } | null {
  const above = served.findLast(({ domain, status }) => domain !== claim.domain && isAtOrBelow(claim.domain, domain) && isLive(status));
  if (!above) return null;
  const name = claim.domain.slice(0, -above.domain.length - 1);
  return { domain: above.domain, delegatedTo: delegations.filter((row) => row.domain === above.domain && row.name === name).map(({ value }) => value) };
}
