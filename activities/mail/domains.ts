import { heartbeat } from '@temporalio/activity';
import { ensureDomainChecked, recheckDue, type VerificationDeps } from '../../src/mail/service';

export type DomainRun = { domainId: string };

/** Between two checks of a domain whose next one is overdue. */
const pauseMinMs = 1_000;
const page = 200;
/** Of one run of the schedule, within its five minutes. */
const recheckMs = 3.5 * 60_000;

/** Checks of sender domains, on the queue `mail`. */
export function createMailDomainActivities(deps: VerificationDeps) {
  return {
    /** The domain has been checked; `delayMs` to the next check of a pending one, null when there is nothing to wait for. */
    async ensureDomainChecked({ domainId }: DomainRun): Promise<{ status: string | null; delayMs: number | null }> {
      const domain = await ensureDomainChecked(deps, domainId);
      if (domain?.status !== 'pending' || !domain.nextCheckAt) return { status: domain?.status ?? null, delayMs: null };
      return { status: domain.status, delayMs: Math.max(pauseMinMs, domain.nextCheckAt.getTime() - deps.clock.now().getTime()) };
    },

    /** Verified and degraded domains that were due have been checked; how many. What is left is for the next run. */
    async recheckDueDomains(): Promise<{ checked: number }> {
      let checked = 0;
      for (const until = Date.now() + recheckMs; Date.now() < until;) {
        const done = await recheckDue(deps, page, () => heartbeat());
        checked += done;
        if (done < page) break;
      }
      return { checked };
    },
  };
}
