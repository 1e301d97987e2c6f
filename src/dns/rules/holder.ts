import type { ZoneStatus } from '../state';
import { isAtOrBelow } from './domains';

/** A zone row for a name, as far as it matters for who holds it. Deleted rows are no claims. */
export type Claim = {
  zoneId: string;
  projectId: string;
  mode: 'full_hosting' | 'external';
  status: ZoneStatus;
  /** It moved because another claim was proven. */
  claimedElsewhere: boolean;
  activatedAt: Date | null;
  /** Its last conclusive check found a delegation that leads to our addresses without proving it. */
  leadsHereUnproven: boolean;
};

/**
 * The claim that holds a name (contract dns.md §2.3), null when nobody does: the active or degraded one; else the moved one
 * last activated, never one that lost the name to another; else the only pending one of full_hosting, if no other project
 * was ever live here with this name and no foreign delegation already leads here. `everLive`: projects that were.
 */
export function holderOf<C extends Claim>(claims: readonly C[], everLive: ReadonlySet<string>): C | null {
  const live = claims.find(({ status }) => status === 'active' || status === 'degraded');
  if (live) return live;
  const moved = claims.filter(({ status, claimedElsewhere }) => status === 'moved' && !claimedElsewhere);
  const [lastActivated] = moved.toSorted((a, b) => (b.activatedAt?.getTime() ?? 0) - (a.activatedAt?.getTime() ?? 0));
  if (lastActivated) return lastActivated;
  const [pending, ...others] = claims.filter(({ status, mode }) => status === 'pending' && mode === 'full_hosting');
  if (!pending || others.length > 0 || pending.leadsHereUnproven) return null;
  return [...everLive].some((projectId) => projectId !== pending.projectId) ? null : pending;
}

/**
 * Whether our servers answer for the holder of a name. `above`: the closest live served zone above it, with the targets of its
 * NS records at this name: below such a zone an owner of that zone decides by delegating to this zone's own name servers.
 */
export function isServed(holder: Pick<Claim, 'mode'> & { domain: string; nameservers: readonly string[] }, above: { domain: string; delegatedTo: readonly string[] } | null): boolean {
  if (holder.mode !== 'full_hosting') return false;
  if (!above || above.domain === holder.domain || !isAtOrBelow(holder.domain, above.domain)) return true;
  return above.delegatedTo.some((target) => holder.nameservers.includes(target));
}
