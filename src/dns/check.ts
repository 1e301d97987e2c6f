import { checkExternal } from './check-external';
import type { Check, CheckDeps } from './check-facts';
import { checkHosted } from './check-hosted';
import type { ZoneRow } from './store/zones';

/** Asks DNS who answers for the domain (contract dns.md §4.5): never longer than 8 s, never throws for what DNS says. */
export async function checkZone(deps: CheckDeps, zone: ZoneRow): Promise<Check> {
  const startedAt = deps.clock.now();
  const { report, ...rest } = zone.mode === 'external' ? await checkExternal(deps, zone) : await checkHosted(deps, zone);
  return { ...rest, report: { ...report, checkedAt: startedAt.toISOString(), durationMs: deps.clock.now().getTime() - startedAt.getTime(), result: rest.result } };
}
