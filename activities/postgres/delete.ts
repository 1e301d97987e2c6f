import { inTransaction } from '../../src/db/transaction';
import { markDeleted } from '../../src/postgres/service';
import { destroyCredentials } from '../../src/postgres/store/credentials';
import { releaseHost } from '../../src/postgres/store/hosts';
import { cancelledRuns } from '../../src/postgres/store/changes';
import { closeAccess, enterPhase, lockRun, type Run } from '../../src/postgres/store/runs';
import type { ServiceRow } from '../../src/postgres/store/services';
import { workflowIds } from '../../src/temporal/ids';
import { isPlaced, onBackend, ownedBy, refOf, requireRun, type PostgresActivityDeps } from './work';

const ending = ['deleting', 'deleted'] as const;
/** A provisioning that is undone destroys as well; what is available is never destroyed but by a deletion. */
const undoing = ['provisioning', 'failed', ...ending] as const;

/** What a deletion does, and the undo of provisioning (contract postgres.md §5.3). Absent is success; every one is safe twice. */
export function createDeleteActivities(deps: PostgresActivityDeps) {
  return {
    blockAccess: (run: Run) => blockAccess(deps, run),
    cancelOtherRuns: (run: Run) => cancelOtherRuns(deps, run),
    retainInstance: (run: Run) => retainInstance(deps, run),
    destroyInstance: (run: Run) => destroyInstance(deps, run),
    /** No secret of the service is left with us. */
    destroyCredentials: (run: Run) => inTransaction(deps.db, async (tx) => {
      ownedBy(await lockRun(tx, run, undoing));
      await destroyCredentials(tx, run.serviceId);
    }),
    markDeleted: (run: Run) => markDeleted(deps, run),
  };
}

/** Of a deletion or a suspension: sessions are cut, nobody gets in, and no work of a lower generation can change that. `retain`: there is data worth keeping. */
async function blockAccess(deps: PostgresActivityDeps, run: Run): Promise<{ retain: boolean }> {
  const service = await requireRun(deps, run, [...ending, 'updating']);
  if (!isPlaced(service)) return { retain: false };
  if (service.status === 'updating') {
    ownedBy(await enterPhase(deps.db.prisma, run, null));
    ownedBy(await closeAccess(deps.db.prisma, run));
  }
  await onBackend(deps, run, () => deps.postgresBackend.setAccessMode({ ...refOf(service), mode: 'blocked', stop: false }));
  return { retain: service.availableAt !== null && !service.purge };
}

/** Other runs for the service are told to end; what they still do is refused by guard and fence. */
async function cancelOtherRuns(deps: PostgresActivityDeps, run: Run): Promise<void> {
  await requireRun(deps, run, ending);
  const others = await cancelledRuns(deps.db.prisma, run.serviceId);
  for (const id of new Set([workflowIds.provisionPostgres(run.serviceId), ...others])) await deps.cancelRun(id);
}

/** Of a deletion, or the undo of an undelete: nothing runs; the data is kept where an undelete finds it. */
async function retainInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = await requireRun(deps, run, [...ending, 'provisioning']);
  if (isPlaced(service)) await onBackend(deps, run, () => deps.postgresBackend.destroy({ ...refOf(service), generation: fenceOf(service), retain: true }));
}

/** Nothing of the instance is left and its room is free. */
async function destroyInstance(deps: PostgresActivityDeps, run: Run): Promise<void> {
  const service = await requireRun(deps, run, undoing);
  if (!isPlaced(service)) return;
  const generation = fenceOf(service);
  await onBackend(deps, run, () => deps.postgresBackend.destroy({ ...refOf(service), generation, retain: false }));
  await inTransaction(deps.db, async (tx) => {
    ownedBy(await lockRun(tx, run, undoing));
    await releaseHost(tx, run.serviceId);
  });
}

/**
 * An undo speaks for the next generation: a call of the undone run that arrives late is refused, and the next intent,
 * which has that generation, is not.
 */
function fenceOf({ status, generation }: ServiceRow): number {
  return status === 'provisioning' || status === 'failed' ? generation + 1 : generation;
}
