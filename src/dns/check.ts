import { checkExternal } from './check-external';
import type { Check, CheckDeps } from './check-facts';
import { checkHosted } from './check-hosted';
import { withinBudget } from './query-budget';
import type { ZoneRow } from './store/zones';

const queriesMax = 60;

/** Asks DNS who answers for the domain (contract dns.md §4.5): never longer than 8 s nor with more than 60 queries, never throws for what DNS says. */
export async function checkZone(deps: CheckDeps, zone: ZoneRow): Promise<Check> {
  const startedAt = deps.clock.now();
  const asking = { ...deps, dnsResolver: withinBudget(deps.dnsResolver, { queriesLeft: queriesMax }) };
  const { report, ...rest } = zone.mode === 'external' ? await checkExternal(asking, zone) : await checkHosted(asking, zone);
  return { ...rest, report: { ...report, checkedAt: startedAt.toISOString(), durationMs: deps.clock.now().getTime() - startedAt.getTime(), result: rest.result } };
}
