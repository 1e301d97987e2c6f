import { AppError } from '../core/errors';
import { Semaphore } from '../core/keyed-queue';
import type { Log } from '../core/log';
import { isDrift } from './rules/drift';
import { observeZone, type PublishDeps } from './observation';
import { listServedZones } from './store/sync';

export type DriftPage = { drifted: string[]; next: string | null };

const pageSize = 500;
/** Zones of a push backend compared at once. */
const width = 8;

/**
 * Served zones after an id, a page of them, that are not answered as they are here: with a push backend all are compared, our
 * own servers are asked only by their acknowledgements. `next`: where the next page begins. A backend that does not answer
 * has no drift to tell of.
 */
export async function listDrifted(deps: PublishDeps & { log: Log }, after: string, beat: () => void): Promise<DriftPage> {
  const page = await listServedZones(deps.db.prisma, after, pageSize);
  const next = page.length === pageSize ? page.at(-1)?.id ?? null : null;
  if (!deps.dnsBackend.pushed) return { drifted: page.filter(({ behind }) => behind).map(({ id }) => id), next };
  const semaphore = new Semaphore(width);
  let silent = false;
  const drifted = await Promise.all(page.map(({ id }) => semaphore.run(async () => {
    beat();
    try {
      const seen = silent ? null : await observeZone(deps, id);
      return seen && seen.zone.appliedVersion >= seen.wanted.version && isDrift(seen.changes) ? [id] : [];
    } catch (error) {
      silent ||= !(error instanceof AppError);
      deps.log.warn({ err: error, zoneId: id }, 'the DNS backend could not be compared');
      return [];
    }
  })));
  return { drifted: drifted.flat(), next: silent ? null : next };
}
